"""What is in a store: lines against limits, entries by layer, findings that wait. For `status`; decides nothing."""

from __future__ import annotations

from echod.jobs.counted import Counted
from echod.status_report import FINDINGS_COUNTED, GateReport, RoleInfo, StoreInfo
from echod.store import layout
from echod.store.layout import Role, Roles, Store


class Survey:
    """Counts what is in stores."""

    def __init__(self, counted: Counted) -> None:
        self._counted = counted

    def of(self, store: Store, roles: Roles, limit: int, gate: GateReport | None) -> StoreInfo:
        """One store with its roles. `limit` is its line limit for memory files; the verdict is passed through."""
        if roles.problem is not None:
            problem = f"It cannot be listed: {roles.problem.strerror}. Check the permissions of {store.root}."
            return StoreInfo(path=store.key, gate=gate, problem=problem)
        infos = tuple(self._role(role, limit) for role in roles.found)
        return StoreInfo(path=store.key, roles=infos, gate=gate, quarantined=sum(map(_quarantined, roles.found)))

    def _role(self, role: Role, limit: int) -> RoleInfo:
        count = self._counted.of(role.memory)
        try:
            findings = len(layout.findings_of(role, FINDINGS_COUNTED))
            problem = count.problem or self._counted.of(role.knowledge).problem
        except OSError as error:
            findings, problem = 0, f"{role.path} cannot be listed: {error.strerror}."
        return RoleInfo(
            name=role.name,
            lines=count.lines,
            limit=limit,
            entries=dict(count.entries),
            findings=findings,
            problem=problem,
        )


def _quarantined(role: Role) -> int:
    try:
        return sum(1 for path in (role.path / layout.QUARANTINE).iterdir() if path.name != layout.REASONS)
    except OSError:
        return 0

"""What is in a store: lines against limits, entries by layer, findings that wait. For `status`; decides nothing."""

from __future__ import annotations

from echod.contract.status import FINDINGS_COUNTED, GateReport, RoleInfo, StoreInfo
from echod.inspection.counts import Counted
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
        seen = [self._role(role, limit) for role in roles.found]
        infos = tuple(info for info, _ in seen)
        return StoreInfo(path=store.key, roles=infos, gate=gate, quarantined=sum(number for _, number in seen))

    def _role(self, role: Role, limit: int) -> tuple[RoleInfo, int]:
        """A role, and how many files are in its quarantine."""
        count = self._counted.of(role.memory)
        findings, quarantined, problem = 0, 0, count.problem
        try:
            inside = layout.contents_of(role, FINDINGS_COUNTED)
        except OSError as error:
            problem = f"{role.path} cannot be listed: {error.strerror}."
        else:
            findings = inside.findings
            if inside.knowledge:
                problem = problem or self._counted.of(role.knowledge).problem
            if inside.quarantine:
                quarantined = _quarantined(role)
        info = RoleInfo(
            name=role.name,
            lines=count.lines,
            limit=limit,
            entries=dict(count.entries),
            findings=findings,
            problem=problem,
        )
        return info, quarantined


def _quarantined(role: Role) -> int:
    try:
        return sum(1 for path in (role.path / layout.QUARANTINE).iterdir() if path.name != layout.REASONS)
    except OSError:
        return 0

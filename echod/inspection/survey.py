"""What is in a store: lines against limits, entries by layer, findings that wait. For `status`; decides nothing."""

from __future__ import annotations

from echod.contract.status import MAX_COUNTED_FINDINGS, GateReport, RoleInfo, StoreInfo
from echod.inspection.counts import FileStatsCache
from echod.store import layout
from echod.store.layout import Role, RoleListing, Store


class StoreInspector:
    """Counts what is in stores."""

    def __init__(self, stats_cache: FileStatsCache) -> None:
        self._stats_cache = stats_cache

    def inspect(self, store: Store, roles: RoleListing, limit: int, gate: GateReport | None) -> StoreInfo:
        """One store with its roles. `limit` is its line limit for memory files; the verdict is passed through."""
        if roles.error is not None:
            problem = f"It cannot be listed: {roles.error.strerror}. Check the permissions of {store.root}."
            return StoreInfo(path=store.key, gate=gate, problem=problem)
        seen = [self._inspect_role(role, limit) for role in roles.roles]
        infos = tuple(info for info, _ in seen)
        return StoreInfo(path=store.key, roles=infos, gate=gate, quarantined=sum(number for _, number in seen))

    def _inspect_role(self, role: Role, limit: int) -> tuple[RoleInfo, int]:
        """A role, and how many files are in its quarantine."""
        count = self._stats_cache.get(role.memory)
        findings, quarantined, problem = 0, 0, count.problem
        try:
            summary = layout.summarize_role(role, MAX_COUNTED_FINDINGS)
        except OSError as error:
            problem = f"{role.path} cannot be listed: {error.strerror}."
        else:
            findings = summary.findings_count
            if summary.has_knowledge:
                problem = problem or self._stats_cache.get(role.knowledge).problem
            if summary.has_quarantine:
                quarantined = _count_quarantined(role)
        info = RoleInfo(
            name=role.name,
            lines=count.lines,
            limit=limit,
            entries=dict(count.entries),
            findings=findings,
            problem=problem,
        )
        return info, quarantined


def _count_quarantined(role: Role) -> int:
    try:
        return sum(1 for path in (role.path / layout.QUARANTINE).iterdir() if path.name != layout.QUARANTINE_REASONS)
    except OSError:
        return 0

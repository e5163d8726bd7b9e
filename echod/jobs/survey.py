"""What is in a store: lines against limits, entries by layer, findings that wait. For `status`; decides nothing.

Looking at a hundred projects must cost little, so what was counted in a file is kept as long as the file is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import stat_result
from pathlib import Path
from stat import S_ISREG

from echod.jobs.stamps import Stamp, stamp_of
from echod.memory.document import SIZE_LIMIT, Unreadable, parse
from echod.plain_file import read_plain
from echod.status_report import GateReport, RoleInfo, StoreInfo
from echod.store import layout
from echod.store.layout import Role, Store

_COUNTED = 10_000
"""Findings files are counted up to here; nobody needs the number of more, and counting takes time."""


@dataclass(frozen=True, slots=True)
class _Count:
    lines: int | None
    entries: dict[str, int]
    problem: str | None


class Survey:
    """Counts what is in stores; remembers the counts of files that have not changed since."""

    def __init__(self) -> None:
        self._counts: dict[Path, tuple[Stamp, _Count]] = {}

    def of(self, store: Store, limit: int, gate: GateReport | None) -> StoreInfo:
        """One store. `limit` is its line limit for memory files; the gate's verdict is passed through."""
        try:
            roles = layout.roles_of(store)
        except OSError as error:
            problem = f"It cannot be listed: {error.strerror}. Check the permissions of {store.root}."
            return StoreInfo(path=store.key, gate=gate, problem=problem)
        infos = tuple(self._role(role, limit) for role in roles)
        return StoreInfo(path=store.key, roles=infos, gate=gate, quarantined=sum(map(_quarantined, roles)))

    def _role(self, role: Role, limit: int) -> RoleInfo:
        count = self._count(role.memory)
        try:
            findings = len(layout.findings_of(role, _COUNTED))
            problem = count.problem or self._count(role.knowledge).problem
        except OSError as error:
            findings, problem = 0, f"{role.path} cannot be listed: {error.strerror}."
        return RoleInfo(
            name=role.name,
            lines=count.lines,
            limit=limit,
            entries=count.entries,
            findings=findings,
            problem=problem,
        )

    def _count(self, file: Path) -> _Count:
        try:
            status = file.lstat()
        except FileNotFoundError:
            return _Count(0, {}, None)
        except OSError as error:
            return _Count(None, {}, f"{file.name} cannot be read: {error.strerror}.")
        same = stamp_of(status)
        known = self._counts.get(file)
        if known is not None and known[0] == same:
            return known[1]
        count = _count(file, status)
        self._counts[file] = (same, count)
        return count


def _count(file: Path, status: stat_result) -> _Count:
    if not S_ISREG(status.st_mode):
        return _Count(None, {}, f"{file.name} is not a plain file; echod leaves it alone.")
    if status.st_size > SIZE_LIMIT:
        return _Count(None, {}, f"{file.name} has {status.st_size:,} bytes, more than echod reads.")
    try:
        data = read_plain(file, SIZE_LIMIT)
    except OSError as error:
        return _Count(None, {}, f"{file.name} cannot be read: {error.strerror}.")
    document = parse(data)
    if isinstance(document, Unreadable):
        return _Count(None, {}, f"{file.name} is left alone: {document.reason}")
    entries: dict[str, int] = {}
    for block in document.blocks:
        if block.entry is not None:
            layer = block.entry.layer.value if block.entry.layer is not None else "unknown"
            entries[layer] = entries.get(layer, 0) + 1
    return _Count(data.count(b"\n") + (not data.endswith(b"\n") and bool(data)), entries, None)


def _quarantined(role: Role) -> int:
    try:
        return sum(1 for path in (role.path / layout.QUARANTINE).iterdir() if path.name != layout.REASONS)
    except OSError:
        return 0

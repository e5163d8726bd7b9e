"""What does the present state of a store call for? Looks at names, sizes and times only; decides no content.

Level-triggered: events say *look here*, this says what there is to do. The same answer comes at start, after lost
events and from `run --once`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from os import stat_result
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from echod.errors import reason_of
from echod.projects.maintenance import Care
from echod.state.job import JobKind, Need
from echod.store import layout
from echod.store.layout import Role, Store

_NAMED = 3
NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})


class NeedRules(NamedTuple):
    """What decides whether something found on the disk is work: opt-outs, numbers, how long a file must be still.

    `mode` is part of an input's name: what was only reported has not been done when the mode changes.
    """

    quiet_seconds: float
    consolidate: bool
    mode: str
    care: Care


class Trouble(NamedTuple):
    """A place that could not be looked at: unreadable is not empty."""

    place: str
    text: str


class Look(NamedTuple):
    """What one look at a store found."""

    needs: tuple[Need, ...]
    troubles: tuple[Trouble, ...]


def look(store: Store, rules: NeedRules, now: float, observations: Mapping[str, Sequence[str]] = NOTHING) -> Look:
    """The work that `store` calls for at `now` (Unix seconds).

    A findings file is ready when it has been still for `rules.quiet_seconds`; the need is due when the first one is.
    `observations` names what waits in the inbox, by role; that is ready at once.
    """
    needs: list[Need] = []
    troubles: list[Trouble] = []
    try:
        roles = layout.roles_of(store)
    except OSError as error:
        return Look((), (trouble(store.root, error),))
    for role in roles:
        try:
            if rules.consolidate and (need := _consolidation(role, rules, now)):
                needs.append(need)
        except OSError as error:
            troubles.append(trouble(role.path, error))
    needs += [_observation(store, role, names, rules, now) for role, names in observations.items()]
    return Look(tuple(needs), tuple(troubles))


def still_since(status: stat_result, now: float) -> float:
    """When a file was last touched. A time in the future is no evidence; the change time, which no tool sets, is."""
    if status.st_mtime <= now:
        return status.st_mtime
    return status.st_ctime if status.st_ctime <= now else 0.0


def _consolidation(role: Role, rules: NeedRules, now: float) -> Need | None:
    findings = [(path, status) for path in layout.findings_of(role) if (status := _stat(path)) is not None]
    if not findings:
        return None
    # Of more than are looked at here, others may come and go: that shows in the directory.
    looked_at = [*findings, (role.memory, _stat(role.memory))]
    looked_at += [(role.path, _stat(role.path))] if len(findings) == layout.MANY else []
    due = min(still_since(status, now) for _, status in findings) + rules.quiet_seconds
    agents = ", ".join(layout.agent_of(path) for path, _ in findings[:_NAMED])
    agents += ", ..." if len(findings) > _NAMED else ""
    return Need(
        kind=JobKind.CONSOLIDATE,
        store=role.store.key,
        role=role.name,
        fingerprint=_fingerprint(rules.mode, looked_at),
        reason=f"{_number(len(findings))} findings {'file' if len(findings) == 1 else 'files'} from {agents}",
        due=due,
    )


def _number(files: int) -> str:
    return f"{files} or more" if files == layout.MANY else str(files)


def _observation(store: Store, role: str, names: Sequence[str], rules: NeedRules, now: float) -> Need:
    return Need(
        kind=JobKind.OBSERVE,
        store=store.key,
        role=role,
        fingerprint=hashlib.sha256("\n".join([rules.mode, *sorted(names)]).encode()).hexdigest()[:16],
        reason=f"{len(names)} completed {'task' if len(names) == 1 else 'tasks'} reported by agents",
        due=now,
    )


def _fingerprint(mode: str, files: Iterable[tuple[Path, stat_result | None]]) -> str:
    parts = [mode] + [
        f"{path.name}\0absent"
        if status is None
        else f"{path.name}\0{status.st_ino}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_mode:o}"
        for path, status in files
    ]
    return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]


def _stat(path: Path) -> stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def trouble(path: Path, error: OSError, what: str = "listed") -> Trouble:
    """What the operating system said about a place that was looked at."""
    return Trouble(str(path), f"{path} cannot be {what}: {reason_of(error)}")

"""Find the work that the present state of a store calls for, from names, sizes and times of files only.

Level-triggered: an event only selects the store, and the needs are derived from the disk. The result is the same at
start, after lost events, and in `echod run --once`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from os import stat_result
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from echod.errors import os_reason
from echod.isolation import left_alone_text
from echod.log import get_logger
from echod.projects.settings import MaintenancePolicy
from echod.state.job import JobKind, Need
from echod.store import layout
from echod.store.layout import Role, Store
from echod.workflows.reports import find_reports

log = get_logger(__name__)

_MAX_NAMED_AGENTS = 3
NO_OBSERVATIONS: Mapping[str, Sequence[str]] = MappingProxyType({})


class NeedSettings(NamedTuple):
    """The settings that decide which findings on the disk are work.

    Attributes:
        quiet_seconds: the time for which a findings file must be unchanged.
        sync_minutes: the time between two exchanges with the project's remote; 0 for none.
        ingest: whether the reports of workflows become memory.
        mode: "report" or "maintain". It is part of a fingerprint, so that reported work is done when the mode changes.
    """

    quiet_seconds: float
    consolidate: bool
    mode: str
    maintenance: MaintenancePolicy
    sync_minutes: float = 0.0
    ingest: bool = False


class ReadProblem(NamedTuple):
    """A path that could not be read. Unreadable is not empty."""

    path: str
    text: str


class NeedsReport(NamedTuple):
    """The needs of a store, and the problems in finding them."""

    needs: tuple[Need, ...]
    problems: tuple[ReadProblem, ...]


def find_needs(
    store: Store, settings: NeedSettings, now: float, observations: Mapping[str, Sequence[str]] = NO_OBSERVATIONS
) -> NeedsReport:
    """Return the work that `store` needs at `now` (Unix seconds).

    A findings file is ready when it has been unchanged for `settings.quiet_seconds`. The need is due when the first
    file is ready. `observations` are the names of the pending events by role, which are ready at once.
    """
    needs: list[Need] = []
    problems: list[ReadProblem] = []
    try:
        roles = layout.find_roles(store)
    except OSError as error:
        return NeedsReport((), (read_problem(store.root, error),))
    for role in roles:
        try:
            if settings.consolidate and (need := _consolidate_need(role, settings, now)):
                needs.append(need)
        except OSError as error:
            problems.append(read_problem(role.path, error))
        except Exception as error:
            log.exception("role_left_alone", role=str(role.path))
            problems.append(ReadProblem(str(role.path), left_alone_text(str(role.path), error)))
    needs += [_observe_need(store, role, names, settings, now) for role, names in observations.items()]
    if settings.sync_minutes and store == layout.find_stores_in_resolved_root(store.project)[0]:
        needs.append(_sync_need(store, settings.sync_minutes, settings.mode, now))
    try:
        if settings.ingest and roles and (ingest_need := _ingest_need(store, settings, now)):
            needs.append(ingest_need)
    except OSError as error:
        problems.append(read_problem(Path(error.filename or store.project), error))
    return NeedsReport(tuple(needs), tuple(problems))


def last_changed(status: stat_result, now: float) -> float:
    """Return when a file was last changed: for a future modification time the change time, which no tool sets."""
    if status.st_mtime <= now:
        return status.st_mtime
    return status.st_ctime if status.st_ctime <= now else 0.0


def _consolidate_need(role: Role, settings: NeedSettings, now: float) -> Need | None:
    findings = [
        (path, status) for path in layout.list_findings_files(role) if (status := stat_if_present(path)) is not None
    ]
    if not findings:
        return None
    # The list is limited. A change of the files beyond the limit shows in the directory.
    inputs = [*findings, (role.memory, stat_if_present(role.memory))]
    inputs += [(role.path, stat_if_present(role.path))] if len(findings) == layout.MAX_SORTED_FINDINGS else []
    due = min(last_changed(status, now) for _, status in findings) + settings.quiet_seconds
    count = len(findings) if len(findings) < layout.MAX_SORTED_FINDINGS else f"{len(findings)} or more"
    agents = ", ".join(layout.agent_name(path) for path, _ in findings[:_MAX_NAMED_AGENTS])
    agents += ", ..." if len(findings) > _MAX_NAMED_AGENTS else ""
    return Need(
        kind=JobKind.CONSOLIDATE,
        store=role.store.key,
        role=role.name,
        fingerprint=_fingerprint(settings.mode, inputs),
        reason=f"{count} findings {'file' if len(findings) == 1 else 'files'} from {agents}",
        due=due,
    )


def _observe_need(store: Store, role: str, names: Sequence[str], settings: NeedSettings, now: float) -> Need:
    return Need(
        kind=JobKind.OBSERVE,
        store=store.key,
        role=role,
        fingerprint=hashlib.sha256("\n".join([settings.mode, *sorted(names)]).encode()).hexdigest()[:16],
        reason=f"{len(names)} completed {'task' if len(names) == 1 else 'tasks'} reported by agents",
        due=now,
    )


def _sync_need(store: Store, minutes: float, mode: str, now: float) -> Need:
    """Return the need of an exchange with the remote, which is another one in each period."""
    period = int(now // (minutes * 60))
    reason = f"exchanged with its remote every {minutes:g} minutes"
    return Need(JobKind.SYNC, store.key, "", f"{mode} {minutes:g} {period}", reason, now)


def _ingest_need(store: Store, settings: NeedSettings, now: float) -> Need | None:
    """Return the need to read the reports of the project. The first of its stores takes them."""
    reports = find_reports(store.project)
    if not reports or store != layout.find_stores_in_resolved_root(store.project)[0]:
        return None
    inputs = [settings.mode, *(f"{each.path}\0{each.inode}\0{each.size}\0{each.modified}" for each in reports)]
    return Need(
        kind=JobKind.INGEST,
        store=store.key,
        role="",
        fingerprint=hashlib.sha256("\n".join(inputs).encode(errors="surrogateescape")).hexdigest()[:16],
        reason=f"{len(reports)} {'report' if len(reports) == 1 else 'reports'} of workflows",
        due=min(reports[0].modified, now) + settings.quiet_seconds,
    )


def _fingerprint(mode: str, files: Iterable[tuple[Path, stat_result | None]]) -> str:
    parts = [mode] + [
        f"{path.name}\0absent"
        if status is None
        else f"{path.name}\0{status.st_ino}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_mode:o}"
        for path, status in files
    ]
    return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:16]


def stat_if_present(path: Path) -> stat_result | None:
    """Return the status of a path without following a link; None if it does not exist."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def read_problem(path: Path, error: OSError, action: str = "listed") -> ReadProblem:
    """Return the problem for an error of the operating system."""
    return ReadProblem(str(path), f"{path} cannot be {action}: {os_reason(error)}")

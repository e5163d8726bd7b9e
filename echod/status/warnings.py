"""The status warnings about pauses, projects, jobs, stores and echod's own files.

Functions of what `status.collect` read. Only `read_pauses` and `own_file_warnings` read files themselves.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from echod.contract.status import GateReason, QueueInfo, RoleInfo, Severity, StatusWarning, StoreInfo
from echod.errors import StateError
from echod.inspection import RestoredFindings
from echod.paths import Paths
from echod.projects.discovery import DiscoveredStores
from echod.projects.registry import PausedProjects, ProjectRegistry
from echod.runtime.system import MIN_FREE_BYTES, has_free_space
from echod.state.job import Job, JobState
from echod.state.repair import list_damaged_copies

PAUSE_MARKER = "paused"
"""Marks a pause among the reasons of a gate. It is not a workflow's marker and never holds the gate itself."""

QUEUE_STALLED_SECONDS = 900.0


def read_pauses(projects: ProjectRegistry, now: float) -> tuple[PausedProjects | None, tuple[StatusWarning, ...]]:
    """Return the paused projects, or None and a warning if they cannot be read. Unknown is not "none"."""
    try:
        return projects.pauses(), ()
    except StateError as error:
        return None, (
            StatusWarning("pauses-unreadable", Severity.WARNING, now, str(error), "No job runs until it is readable."),
        )


def pause_warnings(pauses: PausedProjects, missing: Collection[Path], now: float) -> Iterator[StatusWarning]:
    """Yield a notice for the pause of all projects and for that of each project which is not missing."""
    since = now if pauses.since is None else min(pauses.since, now)
    if pauses.all_projects:
        text = "Everything is paused: no memory is written."
        yield StatusWarning("paused", Severity.NOTICE, since, text, "Resume with: echod resume")
    for root in pauses.roots:
        if root not in missing:
            text = f"{root} is paused: its memory is not written."
            yield StatusWarning("paused", Severity.NOTICE, since, text, f"Resume with: {_resume_command(root)}")


def pause_reasons(pauses: PausedProjects, project: Path) -> Iterator[GateReason]:
    """Yield the pauses that hold this project, each with the command that ends it."""
    if pauses.all_projects:
        text = "Everything is paused. Resume with: echod resume"
        yield GateReason(PAUSE_MARKER, text, holds=False, since=pauses.since)
    if pauses.lists(project):
        text = f"This project is paused. Resume with: {_resume_command(project)}"
        yield GateReason(PAUSE_MARKER, text, holds=False, since=pauses.since)


def _resume_command(root: Path) -> str:
    return f"echod resume {shlex.quote(str(root))}"


def own_file_warnings(paths: Paths, now: float) -> Iterator[StatusWarning]:
    """Yield warnings about echod's own disk and database."""
    if not has_free_space(paths.state):
        text = f"Less than {MIN_FREE_BYTES >> 20} MiB free on the disk holding {paths.state}. Jobs are paused."
        yield StatusWarning("disk-full", Severity.ERROR, now, text, "Free some space. echod resumes by itself.")
    if copies := list_damaged_copies(paths.database):
        text = "The state database was damaged and rebuilt. The damaged one was kept. No memory was touched."
        yield StatusWarning(
            "database-copies", Severity.NOTICE, now, text, f"Delete it if you do not need it: {copies[-1]}"
        )


def project_warnings(discovered: DiscoveredStores, now: float) -> Iterator[StatusWarning]:
    """Yield warnings about projects whose directory or store is missing."""
    for project in discovered.missing:
        yield StatusWarning(
            "project-missing",
            Severity.WARNING,
            now,
            f"The project {project} is missing (deleted, moved or not mounted). It stays registered.",
            f"If it was deleted for good: echod remove {project}",
        )
    for project in discovered.without_store:
        text = f"The project {project} has no memory directory. echod starts when one appears."
        yield StatusWarning("project-without-store", Severity.NOTICE, now, text, "")


def job_warnings(jobs: Iterable[Job], queue: QueueInfo, now: float) -> Iterator[StatusWarning]:
    """Yield warnings about jobs that fail or failed, and about a queue that nothing processes."""
    for job in jobs:
        if job.state is JobState.DEAD:
            yield StatusWarning(
                "job-failed",
                Severity.WARNING,
                job.finished_at or now,
                f"{job.kind.value} of {job.role} in {job.store} was given up: {job.result}",
                f"It runs again when its input changes, or with: echod jobs retry {job.id}",
            )
        elif job.state is JobState.QUEUED and job.attempts and job.result:
            yield StatusWarning(
                "job-failing",
                Severity.WARNING,
                now,
                f"{job.kind.value} of {job.role} in {job.store} failed: {job.result}",
                "It is retried automatically, and given up if that does not help.",
            )
    if queue.oldest_due_seconds is not None and queue.oldest_due_seconds > QUEUE_STALLED_SECONDS:
        yield StatusWarning(
            "queue-stalled",
            Severity.ERROR,
            now - queue.oldest_due_seconds,
            "A job has been due for too long and nothing has run it.",
            "Restart the service: echod service restart, or echod run.",
        )


def store_warnings(stores: Iterable[StoreInfo], now: float) -> Iterator[StatusWarning]:
    """Yield warnings about stores, their roles and their gates."""
    projects: dict[Path, int] = {}
    for store in stores:
        project = Path(store.path).parents[1]
        projects[project] = projects.get(project, 0) + 1
        if store.problem:
            yield StatusWarning("store-unreadable", Severity.WARNING, now, f"{store.path}: {store.problem}", "")
        for role in store.roles:
            yield from _role_warnings(store, project, role, now)
        for reason in store.gate.reasons if store.gate else ():
            if not reason.holds:
                text = f"{project}: {reason.text}"
                yield StatusWarning("stale-marker", Severity.NOTICE, reason.since or now, text, "")
    for project, number in projects.items():
        if number > 1:
            text = f"{project} has two memory directories. Each is maintained on its own."
            yield StatusWarning("two-stores", Severity.NOTICE, now, text, "")


def _role_warnings(store: StoreInfo, project: Path, role: RoleInfo, now: float) -> Iterator[StatusWarning]:
    if role.problem:
        text = f"{store.path}/{role.name}: {role.problem}"
        yield StatusWarning(
            "memory-unreadable", Severity.WARNING, now, text, "echod leaves the file alone until it is repaired."
        )
    if role.lines is not None and role.lines > role.limit:
        text = f"{store.path}/{role.name}: its memory file has {role.lines} lines, the limit is {role.limit}."
        command = f"echod prune {shlex.quote(str(project))} --role {role.name} --dry-run"
        fix = f"Show which entries can be removed, and why the others stay: {command}"
        yield StatusWarning("memory-too-long", Severity.NOTICE, now, text, fix)


def restored_findings_warnings(restored_findings: Iterable[RestoredFindings]) -> Iterator[StatusWarning]:
    """Yield a notice for each findings file that an undo restored."""
    for restored in restored_findings:
        text = f"{restored.role.store.key}/{restored.role.name}: {restored.reason}"
        yield StatusWarning("findings-restored", Severity.NOTICE, restored.since, text, restored.remedy)


def settings_warnings(texts: Iterable[str], now: float) -> Iterator[StatusWarning]:
    """Yield a warning for each problem in the projects' own settings."""
    for text in texts:
        yield StatusWarning("project-settings", Severity.WARNING, now, text, "")

"""`echod remove`: a project is left alone from now on; with `--purge` also forgotten. Its memory stays as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from echod.app.forget_project import ProjectData, close_commits, delete_project_data, find_project_data, possible_stores
from echod.app.services import open_services
from echod.cli.by_hand import confirm
from echod.cli.context import CommandContext
from echod.cli.output import pluralize, short_path, wrap
from echod.cli.wake import notify_daemon
from echod.daemon.main import this_process
from echod.errors import UsageError
from echod.inbox.spool import Spool
from echod.projects.registry import ProjectRegistry, expand_globs
from echod.runtime.locks import worker_lock
from echod.state.database import Database

_LOCK_TIMEOUT_SECONDS = 30.0
_KIB = 1024


def remove_project(context: CommandContext, path: Path, *, purge: bool, dry_run: bool, yes: bool) -> None:
    """Take a project off the list, which may be gone from the disk, and forget it if that is wanted.

    Raises:
        UsageError: it is not registered, or there is no terminal to ask at.
        FileStillOpenError: it cannot be forgotten yet, since another program may still write; it was not removed.
    """
    projects = ProjectRegistry(context.paths.projects)
    root, registered = _find_registered(context, projects, path)
    data = _read_project_data(context, root) if purge else None
    if not registered and not data:
        no_data_text = ", and echod keeps nothing of it" if purge else ""
        raise UsageError(f"{short_path(str(root))} is not registered{no_data_text}; `echod projects` lists what is.")
    if dry_run or data is not None:
        context.print_plan("\n".join(_removal_lines(root, data, registered=registered)), always=dry_run or not yes)
    if dry_run:
        return
    if data and not yes:
        confirm("Forget all that? This cannot be undone.")
    if data is None:
        projects.remove(root)
        _withdraw_jobs(context, root)
    else:
        _purge_project(context, projects, root)
    notify_daemon(context)
    deleted_text = " and forgotten" if data is not None else ""
    context.print_info(
        wrap(f"{short_path(str(root))} is not maintained any more{deleted_text}. Its memory stays as it is.")
    )
    if root in expand_globs(context.settings.projects):
        context.print_info(wrap("But `projects` in the settings matches it, so it is maintained all the same."))


def _find_registered(context: CommandContext, projects: ProjectRegistry, path: Path) -> tuple[Path, bool]:
    """The registered project at or above `path`, and True; else `path` itself, and False."""
    start = Path(os.path.realpath(context.cwd / path.expanduser()))
    roots = projects.roots()
    found = next((place for place in (start, *start.parents) if place in roots), None)
    return (start, False) if found is None else (found, True)


def _read_project_data(context: CommandContext, root: Path) -> ProjectData:
    database = Database.open_readonly(context.paths.database)
    spool = Spool(context.paths.spool)
    if database is None:
        return find_project_data(root, context.paths.journal, None, spool, context.now)
    with database:
        return find_project_data(root, context.paths.journal, database, spool, context.now)


def _removal_lines(root: Path, data: ProjectData | None, *, registered: bool) -> Iterator[str]:
    yield short_path(str(root))
    if registered:
        yield "  goes off the list of projects"
    if data is not None and data.journal_bytes:
        size = f"{max(1, data.journal_bytes // _KIB)} KiB"
        changes = pluralize(data.commits, "change")
        yield f"  {changes} can be neither listed nor undone any more ({size} of journal go)"
    if data is not None and data.rows:
        yield f"  {pluralize(data.rows, 'row')} of the database go: jobs, references, ages, pins"
    if data is not None and data.event_names:
        yield f"  {pluralize(len(data.event_names), 'report')} of agents that wait are dropped"
    yield "  its memory, archives and settings stay where they are"


def _withdraw_jobs(context: CommandContext, root: Path) -> None:
    """Let nothing be done there that was queued before."""
    if not context.paths.database.exists():
        return
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        for store in possible_stores(root):
            services.queue.withdraw(store.key, context.now(), "the project is not maintained any more")


def _purge_project(context: CommandContext, projects: ProjectRegistry, root: Path) -> None:
    with (
        open_services(context.paths, context.settings, context.environ, context.now) as services,
        # As the one worker, so that the service begins nothing there meanwhile.
        worker_lock(context.paths.worker_lock, this_process(), _LOCK_TIMEOUT_SECONDS),
    ):
        close_commits(root, context.paths.journal, context.now)
        projects.remove(root)
        notify_daemon(context)
        delete_project_data(
            root, context.paths.journal, services.checked_database.database, services.read_context.spool
        )

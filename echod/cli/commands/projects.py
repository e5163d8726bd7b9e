"""Commands about the list of projects: `add`, `projects`, `pause`, `resume`, `move` and `remove`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import click

from echod.app.context import ReadContext
from echod.app.moved_projects import (
    MovedProject,
    ProjectData,
    close_commits,
    delete_project_data,
    find_project_data,
    possible_stores,
)
from echod.cli.commands.prune import RoleFilePlan, plan_role_file
from echod.cli.context import CommandContext, check_liveness
from echod.cli.execute import (
    LOCK_TIMEOUT_SECONDS,
    Confirmation,
    adopt_if_moved,
    confirm,
    moved_text,
    report_already_so,
    settle_and_report,
)
from echod.cli.output import problem_line, sanitize, short_path, wrap
from echod.cli.status_screen import findings_count_text
from echod.cli.targets import select_project_to_change
from echod.clock import local_date
from echod.contract.codec import to_json
from echod.contract.commands import ProjectInfo, ProjectsReport
from echod.contract.status import RoleInfo
from echod.errors import EchodError, UsageError
from echod.inbox.spool import Spool
from echod.memory.text import capitalize, pluralize
from echod.projects.registry import ProjectRegistry, expand_globs
from echod.projects.settings import request_only_reason
from echod.runtime.locks import this_process, worker_lock
from echod.search.finder import DocumentFinder
from echod.service.paths import start_hint
from echod.state.database import Database
from echod.state.jobs import JobKind
from echod.status.collect import inspect_store
from echod.store.layout import Role, Store, find_linked_stores, find_skipped, list_roles

_KIB = 1024


def add(context: CommandContext, *, path: Path) -> None:
    """Run `echod add`."""
    project = context.find_project(path)
    context.paths.create_directories()
    adopt_if_moved(context, project)
    is_new = _project_registry(context).add(project)
    context.notify_daemon()
    short_root = short_path(str(project))
    context.print_info(f"Registered {short_root}." if is_new else f"{short_root} is registered already.")
    with context.open_read_context() as read_context:
        for store in context.list_stores(project):
            _print_store(context, read_context, store)
            for item in find_skipped(store):
                click.echo(problem_line(item.describe(), indent="  "))
    for item in find_linked_stores(project):
        click.echo(problem_line(item.describe(), indent="  "))
    here = context.current_project() == project
    where = "" if here else f" {_typed_path(project)}"
    context.print_info(f"Preview:  echod prune --dry-run{where}")
    if not check_liveness(context).is_answering:
        context.print_info(f"Once:     echod run --once{where}")
        context.print_info(f"Start:    {start_hint(sys.platform, context.environ)}")


def _typed_path(path: Path) -> str:
    """Return a path as a user types it, with `~` where a shell expands it."""
    text = short_path(str(path))
    return text if shlex.quote(text.removeprefix("~")) == text.removeprefix("~") else shlex.quote(str(path))


def _print_store(context: CommandContext, read_context: ReadContext, store: Store) -> None:
    """Print the size of a store and what its first maintenance will do."""
    name = store.root.relative_to(store.project)
    line_limit = read_context.line_limit(store.project)
    info = inspect_store(read_context.inspections, store, list_roles(store), line_limit, None)
    if info.problem:
        click.echo(wrap(f"{name}: {info.problem}", indent="  ! "))
        return
    context.print_info(f"  {name}: {pluralize(len(info.roles), 'role')}, {findings_count_text(info.roles)}")
    calm = 0
    reasons: set[str] = set()
    with context.progress_line() as progress:
        for number, role in enumerate(info.roles, start=1):
            progress.show(f"reading file {number} of {len(info.roles)}: {role.name}")
            lines = list(
                _first_prune_lines(read_context, Role(store, role.name), role, local_date(context.now()), reasons)
            )
            calm += not lines
            if lines:
                progress.clear()
                context.print_info("\n".join(lines))
    for reason in sorted(reasons):
        context.print_info(wrap(reason, indent="    "))
    if calm:
        others = f"{pluralize(calm, 'other role')}" if calm < len(info.roles) else "All of them"
        context.print_info(f"    {others}: within the limit of {line_limit} lines")


def _first_prune_lines(
    read_context: ReadContext, role: Role, info: RoleInfo, today: date, reasons: set[str]
) -> Iterator[str]:
    """Describe the first prune of a role, and why it may wait; nothing if there is none. Read-only.

    Why no role of the store is pruned by itself goes to `reasons`, to be printed once.
    """
    problem = info.problem
    plan = None
    if not problem:
        try:
            plan = plan_role_file(read_context, JobKind.PRUNE, role, today)
        except EchodError as error:
            problem = str(error)
    if plan is None:
        yield problem_line(f"{role.name}: {problem}", indent="    ")
        return
    if not plan.has_changes and not plan.file.note:
        return
    yield wrap(_first_prune_sentence(info, plan), indent=f"    {role.name}  ", hang="      ")
    if not plan.has_changes:
        return
    if plan.refusal is not None:
        yield problem_line(plan.refusal, indent="      ")
    elif (reason := _store_reason(read_context, role)) is not None:
        reasons.add(reason)
    elif plan.hold_reason is not None:
        yield wrap(f"It {plan.hold_reason}, so it waits a day for your review: echod review", indent="      ")


def _first_prune_sentence(info: RoleInfo, plan: RoleFilePlan) -> str:
    size = f"{info.lines}/{info.limit} lines"
    if not plan.has_changes:
        return f"{size}; {sanitize(plan.file.note or '')}"
    return f"{size}; the first maintenance: {plan.summary}"


def _store_reason(read_context: ReadContext, role: Role) -> str | None:
    """Return why the store is not pruned without a request, or None if it is."""
    if read_context.settings.mode != "maintain":
        return 'Nothing will be written, since the settings contain mode = "report".'
    maintenance = read_context.maintenance_policy(role.store.project)
    if reason := request_only_reason(JobKind.PRUNE, role, maintenance):
        return f"{capitalize(reason)}."
    return None


def projects(context: CommandContext, *, json: bool) -> None:
    """Run `echod projects`."""
    registry = _project_registry(context)
    listing, pauses = registry.list_projects(), registry.pauses()
    registered = {project.root: project.missing for project in listing.projects}
    matched = {root: False for root in expand_globs(context.settings.projects) if root not in registered}
    infos = tuple(
        ProjectInfo(str(root), registered=root in registered, missing=missing, paused=pauses.covers(root))
        for root, missing in (*registered.items(), *matched.items())
    )
    if json:
        click.echo(to_json(ProjectsReport(infos)))
        return
    for info in infos:
        marks = [
            "missing" if info.missing else "",
            "paused" if info.paused else "",
            "" if info.registered else "from the settings",
        ]
        marks_text = ", ".join(mark for mark in marks if mark)
        click.echo(f"{short_path(info.path)}{f'  ({marks_text})' if marks_text else ''}")
    for warning in listing.warnings:
        click.echo(f"! {warning}", err=True)
    if not infos:
        click.echo("No project is registered. Add one with: echod add PATH")


def pause(context: CommandContext, *, path: Path | None, in_all: bool) -> None:
    """Run `echod pause`."""
    root = select_project_to_change(context, path, in_all=in_all)
    context.paths.create_directories()
    is_new = _project_registry(context).pause(root)
    context.notify_daemon()
    name = "Everything" if root is None else short_path(str(root))
    command = "echod resume --all" if root is None else f"echod resume {_typed_path(root)}"
    context.print_info(f"{name} is paused until `{command}`." if is_new else f"{name} is paused already.")


def resume(context: CommandContext, *, path: Path | None, in_all: bool) -> None:
    """Run `echod resume`."""
    root = select_project_to_change(context, path, in_all=in_all)
    registry = _project_registry(context)
    if not registry.resume(root):
        context.print_info("Nothing was paused." if root is None else f"{short_path(str(root))} was not paused.")
        if root is not None and registry.pauses().all_projects:
            click.echo("! Everything is paused. Resume with: echod resume --all")
        return
    with context.open_services() as services:
        discovered = services.read_context.discover_stores()
        for store in discovered.stores if root is None else discovered.stores_in(root):
            services.queue.wake_deferred(store.key, context.now())
    context.notify_daemon()
    context.print_info("Work continues." if root is None else f"Work on {short_path(str(root))} continues.")


def move(context: CommandContext, *, old: Path, new: Path, dry_run: bool) -> None:
    """Run `echod move`."""
    old_root, new_root = context.absolute_path(old), context.existing_path(new)
    with context.open_services() as services:
        recorded = services.recorded_projects
        moves = [MovedProject(root, new_root / root.relative_to(old_root)) for root in recorded.known_below(old_root)]
        if not moves:
            if recorded.knows(new_root):
                context.print_info(f"{short_path(str(new_root))} is known already. Nothing is left at the old path.")
                return
            raise UsageError(f"Nothing is recorded of {old_root}. `echod projects` lists the registered projects.")
        for moved in moves:
            _check_move(context, moved)
        for moved in moves:
            if dry_run:
                click.echo(f"{short_path(str(moved.old))} would become {short_path(str(moved.new))}.")
                continue
            recorded.move(moved, lock_seconds=LOCK_TIMEOUT_SECONDS)
            context.print_info(moved_text(moved.old, moved.new))
    context.notify_daemon()


def _check_move(context: CommandContext, moved: MovedProject) -> None:
    """Check that a project is at its new path and not at its old one any more. Raises UsageError."""
    if any(os.path.lexists(store.root) for store in possible_stores(moved.old)):
        raise UsageError(
            f"The memory of {moved.old} is still there. Move the directory first: "
            f"mv {shlex.quote(str(moved.old))} {shlex.quote(str(moved.new))}"
        )
    if not context.list_stores(moved.new):
        raise UsageError(f"{moved.new} has no memory, so {moved.old} was not moved there.")


def remove(context: CommandContext, *, path: Path, purge: bool, dry_run: bool, yes: bool) -> None:
    """Run `echod remove`."""
    registry = _project_registry(context)
    root, registered = _find_registered(context, registry, path)
    data = _read_project_data(context, root) if purge else None
    if not registered and not data:
        no_data_text = ", and echod has no data about it" if purge else ""
        text = f"{short_path(str(root))} is not registered{no_data_text}"
        if root.is_dir():
            report_already_so(context, text)
        raise UsageError(f"{text}. `echod projects` lists the registered projects.")
    if dry_run or (data is not None and not (yes and context.quiet)):
        click.echo("\n".join(_removal_lines(root, data, registered=registered)))
    if dry_run:
        return
    if data and not yes:
        confirm(context, Confirmation("Delete all that? This cannot be undone."))
    if data is None:
        registry.remove(root)
        _withdraw_jobs(context, root)
    else:
        _purge_project(context, registry, root)
    settle_and_report(context, context.list_stores(root))
    context.notify_daemon()
    purged_text = ", and its data is deleted" if data is not None else ""
    context.print_info(
        wrap(f"{short_path(str(root))} is not maintained any more{purged_text}. Its memory stays as it is.")
    )
    if root in expand_globs(context.settings.projects):
        context.print_info(wrap("But `projects` in the settings matches it, so it is still maintained."))


def _find_registered(context: CommandContext, registry: ProjectRegistry, path: Path) -> tuple[Path, bool]:
    """Return the registered project at or above `path` and True, or `path` itself and False."""
    start = context.absolute_path(path)
    roots = registry.roots()
    root = next((directory for directory in (start, *start.parents) if directory in roots), None)
    return (start, False) if root is None else (root, True)


def _read_project_data(context: CommandContext, root: Path) -> ProjectData:
    database = Database.open_readonly(context.paths.database)
    spool = Spool(context.paths.spool)
    with context.open_read_context() as read_context:
        session_roots = read_context.session_projects.roots(root)
    if database is None:
        return find_project_data(root, context.paths.journal, None, spool, context.now, session_roots)
    with database:
        return find_project_data(root, context.paths.journal, database, spool, context.now, session_roots)


def _removal_lines(root: Path, data: ProjectData | None, *, registered: bool) -> Iterator[str]:
    yield short_path(str(root))
    if registered:
        yield "  is removed from the list of projects"
    if data is not None and data.journal_bytes:
        size = f"{max(1, data.journal_bytes // _KIB)} KiB"
        yield f"  {pluralize(data.commits, 'change')} can no longer be listed or undone ({size} of journal deleted)"
    if data is not None and data.rows:
        yield f"  {pluralize(data.rows, 'database row')} deleted: jobs, references, ages, pins"
    if data is not None and data.event_names:
        yield f"  {pluralize(len(data.event_names), 'unread hook event')} deleted"
    if data is not None and data.session_bytes:
        size = f"{max(1, data.session_bytes // _KIB)} KiB"
        yield f"  changes of its conversation archives can no longer be undone ({size} deleted)"
    yield "  its memory, archives and settings stay"


def _withdraw_jobs(context: CommandContext, root: Path) -> None:
    """Withdraw the queued jobs of a project."""
    if not context.paths.database.exists():
        return
    with context.open_services() as services:
        for store in possible_stores(root):
            services.queue.withdraw(store.key, context.now(), "the project is not maintained any more")


def _purge_project(context: CommandContext, registry: ProjectRegistry, root: Path) -> None:
    with (
        context.open_services() as services,
        # With the worker's lock, so that the service starts no job there meanwhile.
        worker_lock(context.paths.worker_lock, this_process(), LOCK_TIMEOUT_SECONDS),
    ):
        close_commits(root, context.paths.journal, context.now)
        registry.remove(root)
        context.notify_daemon()
        sessions = services.read_context.session_projects
        database, spool = services.checked_database.database, services.read_context.spool
        delete_project_data(root, context.paths.journal, database, spool, sessions.roots(root))
        sessions.switch_off(root)
    if context.paths.search_index.exists():
        finder = DocumentFinder(context.paths.search_index)
        finder.forget_project(str(root))
        finder.close()


def _project_registry(context: CommandContext) -> ProjectRegistry:
    return ProjectRegistry(context.paths.projects)

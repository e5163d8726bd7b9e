"""Commands about the list of projects: `init` (can be repeated), `add`, `projects`, `pause`, `resume` and `remove`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import click

from echod.app.context import ReadContext
from echod.app.forget_project import ProjectData, close_commits, delete_project_data, find_project_data, possible_stores
from echod.cli import options
from echod.cli.commands.prune import RoleFilePlan, plan_role_file
from echod.cli.commands.status import check_liveness, findings_count_text
from echod.cli.context import CommandContext
from echod.cli.execute import LOCK_TIMEOUT_SECONDS, Confirmation, confirm, report_already_so
from echod.cli.leftovers import settle_and_report
from echod.cli.options import PATH
from echod.cli.output import capitalize, pluralize, problem_line, sanitize, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.clock import local_date
from echod.contract.commands import ProjectInfo, ProjectsReport
from echod.contract.status import RoleInfo, to_json
from echod.errors import EchodError, UsageError
from echod.files import read_regular
from echod.inbox.spool import Spool
from echod.projects.maintenance import request_only_reason
from echod.projects.registry import ProjectRegistry, expand_globs
from echod.projects.settings import read_project_settings
from echod.projects.worktrees import main_worktree_path
from echod.runtime.locks import this_process, worker_lock
from echod.service.paths import start_hint
from echod.state.database import Database
from echod.state.job import JobKind
from echod.status.collect import inspect_store
from echod.store.create import DEFAULT_ROLES, create_roles, roles_without_memory
from echod.store.layout import Role, Store, find_stores, list_roles, project_root

_KIB = 1024


@click.command(epilog=example("echod add ~/src/my-project"))
@options.project_path
@pass_command_context
def add(context: CommandContext, *, path: Path) -> None:
    """Register a project for maintenance."""
    project = context.find_project(path)
    context.paths.create_directories()
    is_new = _project_registry(context).add(project)
    context.notify_daemon()
    short_root = short_path(str(project))
    context.print_info(f"{short_root} is maintained from now on." if is_new else f"{short_root} is registered already.")
    with context.open_read_context() as read_context:
        for store in context.list_stores(project):
            _print_store(context, read_context, store)
    quoted = shlex.quote(str(project))
    context.print_info(f"To list every entry that would be removed: echod prune {quoted} --dry-run")
    if not check_liveness(context).is_answering:
        context.print_info(
            f"The service is not running. To start it: {start_hint(sys.platform, context.environ)}; "
            f"or work once: echod run --once {quoted}"
        )


def _print_store(context: CommandContext, read_context: ReadContext, store: Store) -> None:
    """Print the size of a store and what its first maintenance will do."""
    name = store.root.relative_to(store.project)
    line_limit = read_context.line_limit(store.project)
    info = inspect_store(read_context.inspections, store, list_roles(store), line_limit, None)
    if info.problem:
        click.echo(wrap(f"{name}: {info.problem}", indent="  ! "))
        return
    context.print_info(f"  {name}: {pluralize(len(info.roles), 'role')}, {findings_count_text(info.roles)}")
    for role in info.roles:
        lines = _first_prune_lines(read_context, Role(store, role.name), role, local_date(context.now()))
        context.print_info("\n".join(lines))


def _first_prune_lines(read_context: ReadContext, role: Role, info: RoleInfo, today: date) -> Iterator[str]:
    """Describe the first prune of a role, and why it may wait. Read-only."""
    problem = info.problem
    if not problem:
        try:
            plan = plan_role_file(read_context, JobKind.PRUNE, role, today)
        except EchodError as error:
            problem = str(error)
    if problem:
        yield problem_line(f"{role.name}: {problem}", indent="    ")
        return
    yield wrap(_first_prune_sentence(info, plan), indent=f"    {role.name}: ", hang="      ")
    if plan.has_changes and (delay_reason := _delay_reason(read_context, role, plan)) is not None:
        yield wrap(delay_reason, indent="      ")


def _first_prune_sentence(info: RoleInfo, plan: RoleFilePlan) -> str:
    size = f"{info.lines} of {info.limit} lines"
    if not plan.has_changes:
        return f"{size}; {sanitize(plan.file.note)}" if plan.file.note else f"{size}; nothing to remove"
    return f"{size}; the first maintenance: {plan.summary}"


def _delay_reason(read_context: ReadContext, role: Role, plan: RoleFilePlan) -> str | None:
    """Return why the prune is not done at once, or None if it is."""
    if read_context.settings.mode != "maintain":
        return 'Nothing will be written, since the settings contain mode = "report".'
    maintenance = read_context.maintenance_policy(role.store.project)
    if reason := request_only_reason(JobKind.PRUNE, role, maintenance):
        return f"{capitalize(reason)}."
    if plan.hold_reason is not None:
        return f"It {plan.hold_reason}, so it waits a day for your review: echod review"
    return None


@click.command(epilog=example("echod projects --json"))
@options.json
@pass_command_context
def projects(context: CommandContext, *, json: bool) -> None:
    """List the registered projects."""
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


@click.command(epilog=example("echod pause ~/src/my-project"))
@options.optional_project_path
@pass_command_context
def pause(context: CommandContext, *, path: Path | None) -> None:
    """Stop writing to memory until `echod resume`.

    New work stays queued.
    """
    root = None if path is None else context.find_project(path)
    context.paths.create_directories()
    is_new = _project_registry(context).pause(root)
    context.notify_daemon()
    name = "Everything" if root is None else short_path(str(root))
    context.print_info(f"{name} is paused until `echod resume`." if is_new else f"{name} is paused already.")


@click.command(epilog=example("echod resume ~/src/my-project"))
@options.optional_project_path
@pass_command_context
def resume(context: CommandContext, *, path: Path | None) -> None:
    """Resume writing to memory."""
    root = None if path is None else context.find_project(path)
    if not _project_registry(context).resume(root):
        context.print_info("Nothing was paused." if root is None else f"{short_path(str(root))} was not paused.")
        return
    with context.open_services() as services:
        discovered = services.read_context.discover_stores()
        for store in discovered.stores if root is None else discovered.stores_in(root):
            services.queue.wake_deferred(store.key, context.now())
    context.notify_daemon()
    context.print_info("Work continues." if root is None else f"Work on {short_path(str(root))} continues.")


@click.command(epilog=example("echod remove ~/src/my-project --purge --dry-run"))
@click.argument("path", type=PATH, help="A registered project, which may be deleted from the disk.")
@click.option("--purge", is_flag=True, help="Also delete all data about the project.")
@options.dry_run
@options.yes
@pass_command_context
def remove(context: CommandContext, *, path: Path, purge: bool, dry_run: bool, yes: bool) -> None:
    """Unregister a project.

    With --purge no change of the project can be undone any more: its jobs, references and ages are deleted from the
    database, and the texts of its changes from the journal. Its memory and archives stay in any case.
    """
    registry = _project_registry(context)
    root, registered = _find_registered(context, registry, path)
    data = _read_project_data(context, root) if purge else None
    if not registered and not data and root.is_dir():
        report_already_so(context, f"{short_path(str(root))} is not registered")
    if not registered and not data:
        no_data_text = ", and echod has no data about it" if purge else ""
        raise UsageError(
            f"{short_path(str(root))} is not registered{no_data_text}. `echod projects` lists the registered projects."
        )
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
    settle_and_report(context, find_stores(root))
    context.notify_daemon()
    purged_text = ", and its data is deleted" if data is not None else ""
    context.print_info(
        wrap(f"{short_path(str(root))} is not maintained any more{purged_text}. Its memory stays as it is.")
    )
    if root in expand_globs(context.settings.projects):
        context.print_info(wrap("But `projects` in the settings matches it, so it is still maintained."))


def _find_registered(context: CommandContext, registry: ProjectRegistry, path: Path) -> tuple[Path, bool]:
    """Return the registered project at or above `path` and True, or `path` itself and False."""
    start = Path(os.path.realpath(context.cwd / path.expanduser()))
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


def _project_registry(context: CommandContext) -> ProjectRegistry:
    return ProjectRegistry(context.paths.projects)


LAYOUTS = {"rune": Path(".rune/echoes"), "claude": Path(".claude/echoes")}
"""The memory directory for each value of `--layout`."""

_MAX_GITIGNORE_BYTES = 1024 * 1024


@click.command(epilog=example("echod init ~/src/my-project --roles reviewer,workers,team"))
@click.argument("path", type=PATH, required=False, help="The project; default: the current one.")
@click.option("--roles", metavar="A,B,...", help="Create only these roles.")
@click.option("--layout", metavar="rune|claude", help="The directory: .rune/echoes or .claude/echoes.")
@click.option("--sessions", is_flag=True, help="Also archive conversations about the project (docs/sessions.md).")
@click.option("--dry-run", is_flag=True, help="Only show what would be created.")
@pass_command_context
def init(
    context: CommandContext, *, path: Path | None, roles: str | None, layout: str | None, sessions: bool, dry_run: bool
) -> None:
    """Create a project's memory directory with its roles.

    An existing memory directory is kept. The default is .claude/echoes if there is only .claude, else .rune/echoes.
    """
    project = _find_init_root(context, path)
    store = _choose_store(project, layout)
    names = [name.strip() for name in roles.split(",")] if roles is not None else list(DEFAULT_ROLES)
    missing = roles_without_memory(store, names)
    shown, role_names = short_path(str(store.root)), ", ".join(role.name for role in missing)
    if dry_run:
        click.echo(f"{shown}: would create {role_names}." if missing else f"{shown}: nothing is missing.")
        return
    create_roles(missing, os.getpid())
    created_text = f"created {pluralize(len(missing), 'role')}: {role_names}" if missing else "nothing was missing"
    context.print_info(f"{shown}: {created_text}.")
    if message := _update_gitignore(project, store):
        context.print_info(message)
    context.paths.create_directories()
    is_new = ProjectRegistry(context.paths.projects).add(project)
    context.notify_daemon()
    context.print_info("It is maintained from now on." if is_new else "It is registered already.")
    if sessions:
        from echod.cli.commands.sessions import switch_on

        with context.open_read_context() as read_context:
            switch_on(context, read_context, project)


def _find_init_root(context: CommandContext, path: Path | None) -> Path:
    project = project_root(context.cwd / (path or Path()).expanduser())
    if not project.is_dir():
        raise UsageError(f"{project} is not a directory. Name the root of a project.")
    main = main_worktree_path(project)
    if main != project:
        raise UsageError(
            f"{project} is a worktree of {main}, and memory in it is deleted with it. Use: echod init {main}"
        )
    if path is None:
        # Below the root of a project with memory, that project is meant, not a second memory further down.
        return next((above for above in (project, *project.parents) if find_stores(above)), project)
    return project


def _choose_store(project: Path, layout: str | None) -> Store:
    if layout is not None:
        if layout not in LAYOUTS:
            raise UsageError(f"There is no layout {layout!r}. Use rune (.rune/echoes) or claude (.claude/echoes).")
        return Store(project, project / LAYOUTS[layout])
    existing = find_stores(project)
    if existing:
        return existing[0]
    only_claude = (project / ".claude").is_dir() and not (project / ".rune").is_dir()
    return Store(project, project / LAYOUTS["claude" if only_claude else "rune"])


def _update_gitignore(project: Path, store: Store) -> str:
    """Make git ignore the memory, unless the project's settings want it tracked. Return a sentence about the change."""
    line = f"{store.root.relative_to(project).as_posix()}/"
    file = project / ".gitignore"
    if file.is_symlink():
        return f".gitignore is a symbolic link, which git does not follow. Add {line} where you ignore files."
    try:
        text = _read_gitignore(file)
        own_lines = {line, f"/{line}", line.rstrip("/"), f"/{line.rstrip('/')}"}
        present = any(own.strip() in own_lines for own in text.splitlines())
        if read_project_settings(project).settings.version_controlled:
            if not present:
                return ""
            others = [other for other in text.splitlines(keepends=True) if other.strip() not in own_lines]
            _replace_gitignore(file, "".join(others))
            return (
                f"git tracks the memory from now on, as the project's settings require: removed {line} from .gitignore."
            )
        if present:
            return ""
        _replace_gitignore(file, text + ("" if not text or text.endswith("\n") else "\n") + f"{line}\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise EchodError(f"{file} cannot be changed: {reason}. Add the line {line} yourself.") from error
    return f"git ignores the memory from now on (.gitignore: {line})."


def _read_gitignore(file: Path) -> str:
    if not file.exists():
        return ""
    if not file.is_file() or file.stat().st_size > _MAX_GITIGNORE_BYTES:
        raise EchodError(f"{file} is not a small regular file. Check it first.")
    return read_regular(file, _MAX_GITIGNORE_BYTES).decode()  # with its own line ends


def _replace_gitignore(file: Path, text: str) -> None:
    # Never in place: another name of the same file (a hard link) keeps its content.
    temporary = file.with_name(f".gitignore.echod-{os.urandom(6).hex()}")
    try:
        with temporary.open("xb") as stream:
            stream.write(text.encode())
        if file.exists():
            temporary.chmod(file.stat().st_mode & 0o7777)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)

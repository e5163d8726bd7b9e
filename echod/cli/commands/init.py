"""`echod init`: give a project a memory, and register it. Never asks; may be said again at will.

What the first maintenance of a project will do, said when it is added: the plan of prune, and why it may wait.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import click

from echod.app.context import ReadContext
from echod.cli.commands.prune import RoleFilePlan, plan_role_file
from echod.cli.context import CommandContext
from echod.cli.output import pluralize, sanitize, short_path, wrap
from echod.contract.status import RoleInfo
from echod.errors import EchodError, UsageError
from echod.files import read_regular
from echod.inspection.review_items import removes_majority
from echod.projects.maintenance import request_only_reason
from echod.projects.settings import read_project_settings
from echod.state.job import JobKind
from echod.store import layout
from echod.store.create import DEFAULT_ROLES, create_roles, roles_without_memory
from echod.store.layout import Role, Store

LAYOUTS = {"rune": Path(".rune/echoes"), "claude": Path(".claude/echoes")}
"""Where the memory is, by the name that `--layout` takes."""

_MAX_GITIGNORE_BYTES = 1024 * 1024


def init_project(
    context: CommandContext, path: Path | None, roles: str | None, layout_name: str | None, *, dry_run: bool
) -> None:
    """Make what is missing and say what was made."""
    project = _find_init_root(context, path)
    store = _choose_store(project, layout_name)
    names = [name.strip() for name in roles.split(",")] if roles is not None else list(DEFAULT_ROLES)
    new = roles_without_memory(store, names)
    shown = short_path(str(store.root))
    if dry_run:
        role_names = ", ".join(role.name for role in new)
        click.echo(f"{shown}: would make {role_names}." if new else f"{shown}: nothing is missing.")
        return
    create_roles(new, os.getpid())
    summary = f"made {pluralize(len(new), 'role')}: {', '.join(role.name for role in new)}"
    context.print_info(f"{shown}: {summary if new else 'nothing was missing'}.")
    if said := _update_gitignore(project, store):
        context.print_info(said)
    _register_project(context, project)


def _find_init_root(context: CommandContext, path: Path | None) -> Path:
    from echod.projects.worktrees import main_worktree_path

    project = layout.project_root(context.cwd / (path or Path()).expanduser())
    if not project.is_dir():
        raise UsageError(f"{project} is not a directory; name the root of a project.")
    main = main_worktree_path(project)
    if main != project:
        raise UsageError(f"{project} is a copy of {main} and goes with it when deleted; say: echod init {main}")
    if path is None:
        # Somewhere in a project that has a memory, that project is meant, not a second memory further down.
        return next((above for above in (project, *project.parents) if layout.find_stores(above)), project)
    return project


def _choose_store(project: Path, name: str | None) -> Store:
    if name is not None:
        if name not in LAYOUTS:
            raise UsageError(f"There is no layout {name!r}; say rune (.rune/echoes) or claude (.claude/echoes).")
        return Store(project, project / LAYOUTS[name])
    found = layout.find_stores(project)
    if found:
        return found[0]
    only_claude = (project / ".claude").is_dir() and not (project / ".rune").is_dir()
    return Store(project, project / LAYOUTS["claude" if only_claude else "rune"])


def _update_gitignore(project: Path, store: Store) -> str:
    """Keep git from tracking the memory, unless the project's settings want it tracked; what was changed, in words."""
    line = f"{store.root.relative_to(project).as_posix()}/"
    file = project / ".gitignore"
    if file.is_symlink():
        return f".gitignore is a symbolic link, which git does not follow; add {line} where you keep what is ignored."
    try:
        text = _read_gitignore(file)
        own_lines = {line, f"/{line}", line.rstrip("/"), f"/{line.rstrip('/')}"}
        present = any(found.strip() in own_lines for found in text.splitlines())
        if read_project_settings(project).settings.version_controlled:
            if not present:
                return ""
            _replace_gitignore(
                file, "".join(found for found in text.splitlines(keepends=True) if found.strip() not in own_lines)
            )
            return f"git tracks the memory from now on, as the project's settings say: took {line} out of .gitignore."
        if present:
            return ""
        with file.open("a", encoding="utf-8") as stream:
            stream.write(("" if not text or text.endswith("\n") else "\n") + f"{line}\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise EchodError(f"{file} cannot be changed: {reason}; add the line {line} yourself.") from error
    return f"git ignores the memory from now on (.gitignore: {line})."


def _read_gitignore(file: Path) -> str:
    if not file.exists():
        return ""
    if not file.is_file() or file.stat().st_size > _MAX_GITIGNORE_BYTES:
        raise EchodError(f"{file} is no plain small file; look at it first.")
    return read_regular(file, _MAX_GITIGNORE_BYTES).decode()  # with the line ends that it has


def _replace_gitignore(file: Path, text: str) -> None:
    temporary = file.with_name(f".gitignore.echod-{os.getpid()}")
    try:
        temporary.write_bytes(text.encode())
        temporary.chmod(file.stat().st_mode & 0o7777)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _register_project(context: CommandContext, project: Path) -> None:
    from echod.cli.context import notify_daemon
    from echod.projects.registry import ProjectRegistry

    context.paths.create_directories()
    new = ProjectRegistry(context.paths.projects).add(project)
    notify_daemon(context)
    context.print_info("It is maintained from now on." if new else "It was registered already.")


def first_prune_lines(read_context: ReadContext, role: Role, info: RoleInfo, today: date) -> Iterator[str]:
    """Lines about a role; `info` is what was counted in it. Writes nothing."""
    if info.problem:
        yield wrap(f"{role.name}: {sanitize(info.problem)}", indent="    ! ")
        return
    try:
        plan = plan_role_file(read_context, JobKind.PRUNE, role, today)
    except EchodError as error:
        yield wrap(f"{role.name}: {sanitize(str(error))}", indent="    ! ")
        return
    yield wrap(_first_prune_sentence(info, plan), indent=f"    {role.name}: ", hang="      ")
    if plan.has_changes and (waits := _delay_reason(read_context, role, plan)) is not None:
        yield wrap(waits, indent="      ")


def _first_prune_sentence(info: RoleInfo, plan: RoleFilePlan) -> str:
    size = f"{info.lines} of {info.limit} lines"
    if not plan.has_changes:
        return f"{size}; {sanitize(plan.file.note)}" if plan.file.note else f"{size}; nothing is to leave it"
    return f"{size}; the first maintenance: {plan.summary}"


def _delay_reason(read_context: ReadContext, role: Role, plan: RoleFilePlan) -> str | None:
    """Why it is not done at once; None if it is."""
    if read_context.settings.mode != "maintain":
        return 'Nothing will be written, since the settings say mode = "report".'
    if asked := request_only_reason(JobKind.PRUNE, role, read_context.maintenance_policy(role.store.project)):
        return f"{asked[:1].upper()}{asked[1:]}."
    if removes_majority(plan.file.lines_before, plan.file.lines_after):
        return "That is more than half of the file, so the service holds it for a day, for you to look."
    return None

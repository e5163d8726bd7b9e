"""`echod init`: create the memory directory of a project and register the project. Can be repeated."""

from __future__ import annotations

import os
from pathlib import Path

import click

from echod.cli.context import CommandContext
from echod.cli.options import PATH
from echod.cli.output import pluralize, short_path
from echod.cli.root import example, pass_command_context
from echod.errors import EchodError, UsageError
from echod.files import read_regular
from echod.projects.registry import ProjectRegistry
from echod.projects.settings import read_project_settings
from echod.projects.worktrees import main_worktree_path
from echod.store.create import DEFAULT_ROLES, create_roles, roles_without_memory
from echod.store.layout import Store, find_stores, project_root

LAYOUTS = {"rune": Path(".rune/echoes"), "claude": Path(".claude/echoes")}
"""The memory directory for each value of `--layout`."""

_MAX_GITIGNORE_BYTES = 1024 * 1024


@click.command(epilog=example("echod init ~/src/my-project --roles reviewer,workers,team"))
@click.argument("path", type=PATH, required=False, help="The project; default: the current one.")
@click.option("--roles", metavar="A,B,...", help="Create only these roles.")
@click.option("--layout", metavar="rune|claude", help="The directory: .rune/echoes or .claude/echoes.")
@click.option("--dry-run", is_flag=True, help="Only show what would be created.")
@pass_command_context
def init(context: CommandContext, *, path: Path | None, roles: str | None, layout: str | None, dry_run: bool) -> None:
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
        with file.open("a", encoding="utf-8") as stream:
            stream.write(("" if not text or text.endswith("\n") else "\n") + f"{line}\n")
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
    temporary = file.with_name(f".gitignore.echod-{os.getpid()}")
    try:
        temporary.write_bytes(text.encode())
        temporary.chmod(file.stat().st_mode & 0o7777)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)

"""`echod init`: create the memory directory of a project, let git ignore it, and register it. Can be repeated."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import click

from echod.cli import commands
from echod.cli.context import CommandContext
from echod.cli.execute import adopt_if_moved
from echod.cli.output import short_path, wrap
from echod.errors import EchodError, UsageError
from echod.files import read_regular
from echod.memory.text import pluralize
from echod.projects.discovery import main_worktree_path, repository_root
from echod.projects.registry import ProjectRegistry
from echod.projects.settings import read_project_settings
from echod.store.create import DEFAULT_ROLES, create_roles, roles_without_memory
from echod.store.layout import Store, find_linked_stores, is_real_directory

LAYOUTS = {"rune": Path(".rune/echoes"), "claude": Path(".claude/echoes")}
"""The memory directory for each value of `--layout`."""

_MAX_GITIGNORE_BYTES = 1024 * 1024


def init(
    context: CommandContext,
    *,
    path: Path | None,
    roles: str | None,
    layout: str | None,
    no_ignore: bool,
    sessions: bool,
    dry_run: bool,
) -> None:
    """Run `echod init`."""
    project = _find_init_root(context, path)
    store = _choose_store(context, project, layout)
    names = [name.strip() for name in roles.split(",")] if roles is not None else list(DEFAULT_ROLES)
    missing = roles_without_memory(store, names)
    gitignore = None if no_ignore else _plan_gitignore(project, store)
    shown, role_names = short_path(str(store.root)), ", ".join(role.name for role in missing)
    if dry_run:
        text = f"{shown}: would create {role_names}." if missing else f"{shown}: nothing is missing."
        click.echo(wrap(text, hang="  "))
        if gitignore is not None and gitignore.text is not None:
            click.echo(wrap(f"Also: {gitignore.sentence}", hang="  "))
        return
    context.paths.create_directories()
    create_roles(missing, os.getpid())
    created_text = f"created {pluralize(len(missing), 'role')}: {role_names}" if missing else "nothing was missing"
    context.print_info(wrap(f"{shown}: {created_text}.", hang="  "))
    if gitignore is not None:
        _write_gitignore(gitignore)
        context.print_info(gitignore.sentence)
    adopt_if_moved(context, project)
    is_new = ProjectRegistry(context.paths.projects).add(project)
    context.notify_daemon()
    context.print_info("It is maintained from now on." if is_new else "It is registered already.")
    if sessions:
        with context.open_read_context() as read_context:
            commands.sessions.switch_on(context, read_context, project)


def _find_init_root(context: CommandContext, path: Path | None) -> Path:
    start = context.existing_path(path or Path())
    if not start.is_dir():
        raise UsageError(f"{start} is not a directory. Name the root of a project.")
    main = main_worktree_path(start)
    if main != start:
        raise UsageError(
            f"{start} is a worktree of {main}, and memory in it is deleted with it. Use: echod init {main}"
        )
    project = context.locator.find_project(start)
    if project is not None:
        return project
    root = context.locator.find_init_root(start)
    if (reason := context.locator.exclusion_reason(root)) is not None:
        raise UsageError(f"{root} cannot be a project: {reason}. Name the directory of a project: echod init PATH")
    if root != start:
        context.print_info(wrap(f"{short_path(str(root))} is the root of the repository, so its memory is there."))
    return root


def _choose_store(context: CommandContext, project: Path, layout: str | None) -> Store:
    if layout is not None:
        if layout not in LAYOUTS:
            raise UsageError(f"There is no layout {layout!r}. Use rune (.rune/echoes) or claude (.claude/echoes).")
        return Store(project, project / LAYOUTS[layout])
    existing = context.list_stores(project)
    if existing:
        return existing[0]
    if links := find_linked_stores(project):
        raise UsageError(f"{links[0].describe()} Or create a separate memory: echod init --layout rune")
    only_claude = is_real_directory(project / ".claude") and not (project / ".rune").is_dir()
    return Store(project, project / LAYOUTS["claude" if only_claude else "rune"])


class _GitignorePlan(NamedTuple):
    """The new text of a `.gitignore` (None: it stays as it is), and a sentence about it."""

    file: Path
    text: str | None
    sentence: str


def _plan_gitignore(project: Path, store: Store) -> _GitignorePlan | None:
    """Plan that git ignores the memory, unless the project's settings want it tracked. None outside of a repository."""
    if repository_root(project) is None:
        return None
    line = f"{store.root.relative_to(project).as_posix()}/"
    file = project / ".gitignore"
    if file.is_symlink():
        sentence = f".gitignore is a symbolic link, which git does not follow. Add {line} where you ignore files."
        return _GitignorePlan(file, None, sentence)
    try:
        text = _read_gitignore(file)
    except (OSError, UnicodeDecodeError) as error:
        raise _gitignore_error(file, line, error) from error
    own_lines = {line, f"/{line}", line.rstrip("/"), f"/{line.rstrip('/')}"}
    present = any(own.strip() in own_lines for own in text.splitlines())
    tracked = bool(read_project_settings(project).settings.version_controlled)
    if present != tracked:
        return None
    if tracked:
        others = "".join(other for other in text.splitlines(keepends=True) if other.strip() not in own_lines)
        sentence = (
            f"git tracks the memory from now on, as the project's settings require: removed {line} from .gitignore."
        )
        return _GitignorePlan(file, others, sentence)
    separator = "" if not text or text.endswith("\n") else "\n"
    sentence = f"git ignores the memory from now on (.gitignore: {line}). To leave .gitignore as it is: --no-ignore"
    return _GitignorePlan(file, f"{text}{separator}{line}\n", sentence)


def _write_gitignore(plan: _GitignorePlan) -> None:
    if plan.text is None:
        return
    try:
        _replace_gitignore(plan.file, plan.text)
    except OSError as error:
        raise _gitignore_error(plan.file, ".gitignore", error) from error


def _gitignore_error(file: Path, line: str, error: OSError | UnicodeDecodeError) -> EchodError:
    reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
    return EchodError(f"{file} cannot be changed: {reason}. Add the line {line} yourself, or use --no-ignore.")


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
        if file.exists():
            temporary.chmod(file.stat().st_mode & 0o7777)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)

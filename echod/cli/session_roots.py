"""Find the directory of archives that a command of `echod sessions` is about, and the changes that were made there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import ReadContext
from echod.cli.context import CommandContext
from echod.cli.options import PATH
from echod.errors import UsageError
from echod.sessions.journal import RootJournal, RootRecord
from echod.sessions.roots import MEMORY_DIRECTORY, SessionError, SessionRoot
from echod.store.layout import Role, Store

root_option = click.option(
    "--root", metavar="ROOT", type=PATH, help="The directory that has memory/; default: that of the current project."
)


class SelectedRoot(NamedTuple):
    """A directory of archives, and its project; None if the user named the directory."""

    root: SessionRoot
    project: Path | None


class SessionChange(NamedTuple):
    """A change in a directory of archives."""

    root: SessionRoot
    record: RootRecord


def select_root(context: CommandContext, read_context: ReadContext, root: Path | None) -> SelectedRoot:
    """Return the named directory, else that of the current project.

    Raises:
        UsageError: no directory is named, and the current directory is in no project.
    """
    if root is not None:
        return SelectedRoot(SessionRoot(absolute_root(context, root)), None)
    try:
        project = context.find_project(Path())
    except UsageError as error:
        raise UsageError(
            "The current directory is in no project with a memory. Name a directory with --root."
        ) from error
    return SelectedRoot(read_context.session_projects.root(project), project)


def absolute_root(context: CommandContext, root: Path) -> Path:
    """Return the absolute form of a directory that the user named."""
    return context.absolute_path(root)


def job_role(root: SessionRoot) -> Role:
    """Return the name of a directory in the queue: `echod jobs` shows it like a role of a store."""
    return Role(Store(root.entity, root.memory), "")


def list_changes(read_context: ReadContext, projects: Iterable[Path] | None) -> Iterator[SessionChange]:
    """Yield the changes in the directories of these projects (None: in all that are known), the oldest first in each.

    A directory whose records cannot be read is left out.
    """
    for root in _known_roots(read_context, projects):
        try:
            records = RootJournal(root).records()
        except SessionError:
            continue
        for record in records:
            if record.done and record.kind != "summary-failed":
                yield SessionChange(root, record)


def _known_roots(read_context: ReadContext, projects: Iterable[Path] | None) -> Iterator[SessionRoot]:
    selected = tuple(projects) if projects is not None else read_context.discover_stores().projects
    roots = [root for project in selected for root in read_context.session_projects.roots(project)]
    if projects is None and read_context.session_log is not None:
        # Also directories that the user named with --root.
        roots += [
            SessionRoot(path.parent)
            for key in read_context.session_log.list_roots()
            if (path := Path(key)).name == MEMORY_DIRECTORY
        ]
    yield from (root for root in dict.fromkeys(roots) if root.private.is_dir())

"""What commands that change memory share: which stores are meant, may they be written, does the person agree?"""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from echod.cli.context import CommandContext
from echod.cli.output import short_path
from echod.errors import EchodError, UsageError

if TYPE_CHECKING:
    from echod.scheduler.gate import ProjectGate
    from echod.store.changes import CommitGate
    from echod.store.layout import Store


class WriteOptions(NamedTuple):
    """How a command that changes memory was called: only to say what it would do, unasked, although a workflow runs."""

    dry_run: bool
    yes: bool
    force: bool

    @property
    def shows_plan(self) -> bool:
        """Whether what would be done has to be shown: it was asked for, or a question follows."""
        return self.dry_run or not self.yes


class GlobalScope(Enum):
    """Where entries are that belong to no project."""

    GLOBAL = "global"


EntryScope = Path | GlobalScope | None
"""Where an entry is meant: in a project, in the global memory and the doc packs, or (None) wherever we are."""


def parse_scope(path: Path | None, *, in_global: bool) -> EntryScope:
    """What `AGENT_PATH` and `--global` mean together.

    Raises:
        UsageError: both were said.
    """
    if in_global and path is not None:
        raise UsageError("Name a project or say --global, not both.")
    return GlobalScope.GLOBAL if in_global else path


class WriteNotAllowedError(EchodError):
    """A workflow runs, or the settings forbid to write."""


def select_stores(context: CommandContext, path: Path | None) -> tuple[Store, ...] | None:
    """The stores of the named project, else of the current directory's; None: it is in no project, so all are meant.

    Raises:
        UsageError: there is no project at `path`.
    """
    if path is not None:
        return context.list_stores(context.find_project(path))
    try:
        return context.list_stores(context.find_project(Path()))
    except UsageError:
        return None


def require_write_mode(context: CommandContext) -> None:
    """Whether a command may change memory at all.

    Raises:
        WriteNotAllowedError: the settings forbid it.
    """
    if context.settings.mode != "maintain":
        raise WriteNotAllowedError(
            'The settings say mode = "report", so nothing was changed; --dry-run shows the same.'
        )


def confirm(question: str) -> None:
    """Ask; who does not say yes has refused.

    Raises:
        UsageError: there is no terminal to ask at.
        click.exceptions.Exit: the person said no.
    """
    _require_terminal()
    if not click.confirm(question):
        click.echo("Nothing was changed.")
        raise click.exceptions.Exit(1)


def confirm_by_typing(expected: str, question: str) -> None:
    """Ask for a word to be typed, where a yes is too quickly said; who types another has refused.

    Raises:
        UsageError: there is no terminal to ask at.
        click.exceptions.Exit: something else was typed.
    """
    _require_terminal()
    if click.prompt(question).strip() != expected:
        click.echo("Nothing was changed.")
        raise click.exceptions.Exit(1)


def _require_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "There is no terminal to ask at, so nothing was changed; say --yes to go on without a question."
        )


def build_manual_gate(context: CommandContext, project_gate: ProjectGate, project: Path) -> CommitGate:
    """The gate for a person's command: a workflow that runs holds it, that something just ended does not."""
    from echod.scheduler.gate import describe_verdict
    from echod.workflows.model import GateState

    def gate() -> str | None:
        verdict = project_gate.check(project, context.list_stores(project), context.now())
        return describe_verdict(verdict) if verdict.state is GateState.ACTIVE else None

    return gate


def workflow_running_error(project: Path, reason: str) -> WriteNotAllowedError:
    """Why nothing was changed, with what to do."""
    project_path = short_path(str(project))
    return WriteNotAllowedError(
        f"A workflow is at work in {project_path}, so nothing was changed: {reason.rstrip('.')}. "
        "Try again when it is over (`echod gate` says so), or go on with --force."
    )

"""What commands that change memory share: which stores are meant, may they be written, does the person agree?"""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from echod.cli.shell import Shell
from echod.cli.text import short_path
from echod.errors import EchodError, UsageError

if TYPE_CHECKING:
    from echod.scheduler.gate import Gatekeeper
    from echod.store.changes import Gate
    from echod.store.layout import Store


class Wish(NamedTuple):
    """How a command that changes memory was called: only to say what it would do, unasked, although a workflow runs."""

    dry_run: bool
    yes: bool
    force: bool

    @property
    def told(self) -> bool:
        """Whether what would be done has to be shown: it was asked for, or a question follows."""
        return self.dry_run or not self.yes


class Commons(Enum):
    """Where entries are that belong to no project."""

    GLOBAL = "global"


Place = Path | Commons | None
"""Where an entry is meant: in a project, in the global memory and the doc packs, or (None) wherever we are."""


def place_meant(path: Path | None, *, in_global: bool) -> Place:
    """What `PATH` and `--global` mean together.

    Raises:
        UsageError: both were said.
    """
    if in_global and path is not None:
        raise UsageError("Name a project or say --global, not both.")
    return Commons.GLOBAL if in_global else path


class HeldError(EchodError):
    """A workflow runs, or the settings forbid to write."""


def stores_meant(shell: Shell, path: Path | None) -> tuple[Store, ...] | None:
    """The stores of the named project, else of the current directory's; None: it is in no project, so all are meant.

    Raises:
        UsageError: there is no project at `path`.
    """
    if path is not None:
        return shell.stores(shell.project(path))
    try:
        return shell.stores(shell.project(Path()))
    except UsageError:
        return None


def may_write(shell: Shell) -> None:
    """Whether a command may change memory at all.

    Raises:
        HeldError: the settings forbid it.
    """
    if shell.settings.mode != "maintain":
        raise HeldError('The settings say mode = "report", so nothing was changed; --dry-run shows the same.')


def agree(question: str) -> None:
    """Ask; who does not say yes has refused.

    Raises:
        UsageError: there is no terminal to ask at.
        click.exceptions.Exit: the person said no.
    """
    _ask_at_a_terminal()
    if not click.confirm(question):
        click.echo("Nothing was changed.")
        raise click.exceptions.Exit(1)


def agree_by_typing(name: str, question: str) -> None:
    """Ask for a word to be typed, where a yes is too quickly said; who types another has refused.

    Raises:
        UsageError: there is no terminal to ask at.
        click.exceptions.Exit: something else was typed.
    """
    _ask_at_a_terminal()
    if click.prompt(question).strip() != name:
        click.echo("Nothing was changed.")
        raise click.exceptions.Exit(1)


def _ask_at_a_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "There is no terminal to ask at, so nothing was changed; say --yes to go on without a question."
        )


def gate_of(shell: Shell, gatekeeper: Gatekeeper, project: Path) -> Gate:
    """The gate for a person's command: a workflow that runs holds it, that something just ended does not."""
    from echod.scheduler.gate import in_words
    from echod.workflows.model import GateState

    def gate() -> str | None:
        verdict = gatekeeper.ask(project, shell.stores(project), shell.now())
        return in_words(verdict) if verdict.state is GateState.ACTIVE else None

    return gate


def held(project: Path, reason: str) -> HeldError:
    """Why nothing was changed, with what to do."""
    where = short_path(str(project))
    return HeldError(
        f"A workflow is at work in {where}, so nothing was changed: {reason.rstrip('.')}. "
        "Try again when it is over (`echod gate` says so), or go on with --force."
    )

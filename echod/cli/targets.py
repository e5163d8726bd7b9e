"""Which entry does a person mean by the beginning of an id? The current project first, memory before archive.

Where several begin so, a person at a terminal is asked and a script is refused; both see the candidates.

What commands that change memory share: which stores are meant, may they be written, does the person agree?
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from echod.app.context import ReadContext
from echod.cli.context import CommandContext
from echod.cli.output import fit_path, role_label, sanitize, short_path
from echod.errors import EchodError, UsageError
from echod.jobs.archives import ArchivedCopy, list_archived_entries
from echod.memory.document import parse, parse_block
from echod.memory.identity import AmbiguousEntryError, UnknownEntryError, entry_ids, resolve_id
from echod.memory.model import Block, Document
from echod.store.layout import Role, Store, find_roles, global_root

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


_MAX_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """An entry that stands in a memory file."""

    role: Role
    document: Document
    id: str

    @property
    def block(self) -> Block:
        """Its block."""
        ids = entry_ids(self.role.name, self.document)
        return self.document.blocks[ids.index(self.id)]

    @property
    def title(self) -> str:
        """Its title."""
        return _block_title(self.block)


class ArchiveMatch(NamedTuple):
    """An entry that stands in no memory file any more: its copies in the archive of its role, oldest first."""

    role: Role
    id: str
    copies: tuple[ArchivedCopy, ...]

    @property
    def title(self) -> str:
        """The title of its newest copy."""
        return _block_title(parse_block(self.copies[-1].entry.text))


AnyMatch = TypeVar("AnyMatch", MemoryMatch, ArchiveMatch)


def find_in_memory(
    context: CommandContext, read_context: ReadContext, scope: EntryScope, prefixes: Sequence[str]
) -> list[MemoryMatch]:
    """The entries of memory files that these ids, or beginnings of ids, mean.

    Args:
        context: where the command was called.
        read_context: how files are looked at.
        scope: only entries there are meant. None: those of the current directory's project, then of the others.
        prefixes: ids or beginnings of ids.

    Raises:
        UsageError: there is none, or there are several and nobody to ask.
        EchodError: a file cannot be read.
    """
    role_groups = _role_groups(context, read_context, scope)
    return [_find_one_in_memory(read_context, role_groups, prefix, scope) for prefix in prefixes]


def find_entry(
    context: CommandContext, read_context: ReadContext, scope: EntryScope, prefix: str
) -> MemoryMatch | ArchiveMatch:
    """The entry that an id, or the beginning of one, means; one in a memory file before one in an archive.

    Raises:
        UsageError, EchodError: as `find_in_memory`.
    """
    for roles in _role_groups(context, read_context, scope):
        if found := _resolve_prefix(prefix, (hit for role in roles for hit in list_memory_matches(read_context, role))):
            return _choose_match(prefix, found)
        if kept := _resolve_prefix(prefix, (hit for role in roles for hit in list_archive_matches(role))):
            return _choose_match(prefix, kept)
    raise _entry_not_found_error(prefix, scope)


def list_memory_matches(read_context: ReadContext, role: Role) -> tuple[MemoryMatch, ...]:
    """The entries of a role's memory file, in file order; none where it cannot be understood.

    Raises:
        EchodError: it cannot be read.
    """
    document = parse(read_context.reader.read_role(role).memory.text)
    if not isinstance(document, Document):
        return ()
    return tuple(MemoryMatch(role, document, identity) for identity in entry_ids(role.name, document) if identity)


def list_archive_matches(role: Role) -> tuple[ArchiveMatch, ...]:
    """What the archive of a role holds, by id; also of entries that are in the memory again.

    Raises:
        EchodError: it cannot be read.
    """
    copies: dict[str, list[ArchivedCopy]] = {}
    for copy in list_archived_entries(role):
        if copy.entry.text:
            copies.setdefault(copy.entry.id, []).append(copy)
    return tuple(ArchiveMatch(role, identity, tuple(found)) for identity, found in copies.items() if identity)


def list_global_roles(read_context: ReadContext) -> tuple[Role, ...]:
    """The global memory and the doc packs, as far as they are there."""
    memory, packs = read_context.pack_locations.memory_role, read_context.pack_locations.stores[1]
    own = (memory,) if memory.path.is_dir() else ()
    return (*own, *(find_roles(packs) if packs.root.is_dir() else ()))


def global_flag(role: Role) -> str:
    """What a command about an entry of the role has to say beside its id, with a blank before it; mostly nothing."""
    return "" if global_root(role.store) is None else " --global"


def _role_groups(context: CommandContext, read_context: ReadContext, scope: EntryScope) -> tuple[tuple[Role, ...], ...]:
    """Where to look, the nearest roles first."""
    if isinstance(scope, GlobalScope):
        return (list_global_roles(read_context),)
    near = select_stores(context, scope) or ()
    far = (
        ()
        if scope is not None
        else tuple(store for store in read_context.discover_stores().stores if store not in near)
    )
    return tuple(ring for stores in (near, far) if (ring := _roles_in(stores)))


def _roles_in(stores: Iterable[Store]) -> tuple[Role, ...]:
    return tuple(role for store in stores for role in find_roles(store))


def _find_one_in_memory(
    read_context: ReadContext, role_groups: Sequence[Sequence[Role]], prefix: str, scope: EntryScope
) -> MemoryMatch:
    for roles in role_groups:
        if found := _resolve_prefix(prefix, (hit for role in roles for hit in list_memory_matches(read_context, role))):
            return _choose_match(prefix, found)
    for roles in role_groups:
        if kept := _resolve_prefix(prefix, (hit for role in roles for hit in list_archive_matches(role))):
            first = kept[0]
            raise UsageError(
                f"{first.id} stands in no memory file, but in the archive of {role_label(first.role.name)}. "
                f"To bring it back: echod restore {first.id}{global_flag(first.role)}"
            )
    raise _entry_not_found_error(prefix, scope)


def _resolve_prefix(prefix: str, candidates: Iterable[AnyMatch]) -> list[AnyMatch]:
    """What may be meant: nothing, one, or several."""
    by_id: dict[str, list[AnyMatch]] = {}
    for candidate in candidates:
        by_id.setdefault(candidate.id, []).append(candidate)
    try:
        ids: tuple[str, ...] = (resolve_id(prefix, by_id),)
    except UnknownEntryError:
        return []
    except AmbiguousEntryError as error:
        ids = error.candidates
    return [hit for identity in ids for hit in by_id[identity]]


def _choose_match(prefix: str, matches: Sequence[AnyMatch]) -> AnyMatch:
    if len(matches) == 1:
        return matches[0]
    lines: list[str] = [_match_line(hit) for hit in matches[:_MAX_CANDIDATES]]
    if len(matches) > _MAX_CANDIDATES:
        lines.append(f"  and {len(matches) - _MAX_CANDIDATES} more")
    heading = f"{sanitize(prefix)} could be {len(matches)} entries"
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        message = "\n".join([f"{heading}; give more digits of the id, or name the project.", *lines])
        raise UsageError(message)
    click.echo("\n".join([f"{heading}:", *(f"{n:>3}{line}" for n, line in enumerate(lines, 1))]))
    while True:
        number: int = click.prompt("Which one", type=int)
        if 1 <= number <= min(len(matches), _MAX_CANDIDATES):
            return matches[number - 1]


def _match_line(match: MemoryMatch | ArchiveMatch) -> str:
    title = textwrap.shorten(sanitize(match.title) or "(untitled)", 44, placeholder="...")
    return f"  {match.id}  {role_label(match.role.name)}: {title}  {fit_path(match.role.store.key, 40)}"


def _block_title(block: Block) -> str:
    return block.entry.title if block.entry else block.text.strip().partition("\n")[0]


def _entry_not_found_error(prefix: str, scope: EntryScope) -> UsageError:
    command = "echod show --global" if isinstance(scope, GlobalScope) else "echod show"
    return UsageError(f"No entry has an id that begins with {sanitize(prefix)!r}; `{command}` lists the entries.")

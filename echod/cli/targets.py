"""Find the stores, roles and entries that a command line names. Read-only.

An entry is named by its id or a unique prefix. The current project is searched before the others, and memory files
before archives. If several entries match, a user at a terminal chooses and a script gets an error with the list.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from echod.app.context import ReadContext
from echod.cli.context import CommandContext
from echod.cli.output import fit_path, role_label, sanitize, short_path, title_text, wrap
from echod.clock import local_date
from echod.errors import UsageError
from echod.jobs.base import ArchivedCopy, list_archived_entries
from echod.lazy import lazy_imports
from echod.memory.document import parse, parse_block
from echod.memory.identity import AmbiguousEntryError, UnknownEntryError, entry_ids, resolve_id
from echod.memory.model import Block, Document
from echod.store.errors import as_store_error
from echod.store.layout import Role, Store, find_roles, global_root

with lazy_imports(__name__):
    from echod.inspection import inspect as memory_inspection
    from echod.memory.policy import scoring

if TYPE_CHECKING:
    from echod.memory.policy import Facts  # loads the policies, which few commands need

_MAX_CANDIDATES = 20
_MAX_JOB_ID_DIGITS = 18
"""The database cannot hold a longer number, so it is not a job's."""


def is_job_id(text: str) -> bool:
    """Return whether an argument can be the number of a job."""
    return text.isascii() and text.isdigit() and len(text) <= _MAX_JOB_ID_DIGITS


def parse_as_of(text: str | None, now: float) -> date:
    """Parse the local day of `--as-of`; None is today. Raises UsageError if it is not a date."""
    if text is None:
        return local_date(now)
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{sanitize(text)} is not a date. Write it like 2026-11-20.") from error


class EntryNotFoundError(UsageError):
    """No entry has the id, or the beginning of an id, that the user typed."""


class GlobalScope(Enum):
    """The scope of entries that belong to no project."""

    GLOBAL = "global"


EntryScope = Path | GlobalScope | None
"""Where to search an entry: in a project, in the global store, or (None) in the current project and then all."""


def parse_scope(path: Path | None, *, in_global: bool) -> EntryScope:
    """Combine the arguments `PATH` and `--global`. Raises UsageError if both are given."""
    if in_global and path is not None:
        raise UsageError("Name a project or use --global, not both.")
    return GlobalScope.GLOBAL if in_global else path


def select_stores(context: CommandContext, path: Path | None) -> tuple[Store, ...] | None:
    """Return the stores of the project at `path`, or of the current directory's project.

    Returns:
        None if `path` is None and the current directory is in no project; then a command that lists is for all.

    Raises:
        UsageError: there is no project at `path`.
    """
    project = context.current_project() if path is None else context.find_project(path)
    return None if project is None else context.list_stores(project)


def select_project_to_change(context: CommandContext, path: Path | None, *, in_all: bool) -> Path | None:
    """Return the project that a command changes: the named one, or the current directory's. None means all (`--all`).

    Raises:
        UsageError: there is none, or both a project and all are named. No command changes another project by guessing.
    """
    if in_all:
        if path is not None:
            raise UsageError("Name a project or use --all, not both.")
        return None
    project = context.current_project() if path is None else context.find_project(path)
    if project is None:
        place = "The current directory does not exist" if context.cwd is None else f"{context.cwd} is in no project"
        raise UsageError(f"{place}, so nothing was changed. Name a project, or use --all for all registered ones.")
    return project


class RoleSelection(NamedTuple):
    """The arguments by which a command selects roles: a project, `--all` for all projects, and a role's name."""

    path: Path | None
    in_all: bool
    name: str | None


def select_roles(
    context: CommandContext, read_context: ReadContext, selection: RoleSelection, *, dry_run: bool
) -> list[Role]:
    """Return the selected roles of the stores of a project, or of all. A dry run outside of a project lists all.

    Raises:
        UsageError: there is no project, no memory, or no such role.
    """
    in_all = selection.in_all or (dry_run and selection.path is None and context.current_project() is None)
    project = select_project_to_change(context, selection.path, in_all=in_all)
    stores = read_context.discover_stores().stores if project is None else context.list_stores(project)
    roles = list_roles_of(stores)
    if not roles:
        raise UsageError("There is no memory here. Name a project, or add one with: echod add PATH")
    return filter_roles(roles, selection.name)


def filter_roles(roles: Iterable[Role], name: str | None) -> list[Role]:
    """Return the roles of that name, or all for None. Raises UsageError if there is no such role."""
    existing = list(roles)
    selected = [role for role in existing if name in (None, role.name)]
    if name is not None and not selected:
        names = ", ".join(sorted({role.name for role in existing})) or "none"
        raise UsageError(f"There is no role {sanitize(name)}. Roles: {names}.")
    return selected


def list_global_roles(read_context: ReadContext) -> tuple[Role, ...]:
    """Return the role of the global memory and those of the doc packs, as far as they exist."""
    memory, packs = read_context.pack_locations.memory_role, read_context.pack_locations.stores[1]
    own = (memory,) if memory.path.is_dir() else ()
    # A removed pack leaves its archive, for undo.
    roles = list_roles_of([packs]) if packs.root.is_dir() else ()
    return (*own, *(role for role in roles if os.path.lexists(role.memory)))


def global_flag(role: Role) -> str:
    """Return ` --global` if a command needs it to find an entry of the role, else nothing."""
    return "" if global_root(role.store) is None else " --global"


def read_facts(read_context: ReadContext, role: Role, today: date, memory: Document | None = None) -> Facts:
    """Return the recorded facts about a role's entries. They are empty if nothing was ever recorded."""
    policy = read_context.maintenance_policy(role.store.project).policy
    if read_context.entries is None:
        none = scoring.Facts()
        if memory is None:
            return none
        return memory_inspection.with_confirmations(role, none, memory, policy.memory_line_limit)
    return memory_inspection.get_facts(role, read_context.entries, policy, today, memory)


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """An entry in a memory file."""

    role: Role
    document: Document
    id: str
    block: Block

    @property
    def title(self) -> str:
        """The entry's title."""
        return block_title(self.block)


class ArchiveMatch(NamedTuple):
    """An entry that is in no memory file any more: its copies in the archive of its role, oldest first."""

    role: Role
    id: str
    copies: tuple[ArchivedCopy, ...]

    @property
    def title(self) -> str:
        """The title of the newest copy."""
        return block_title(parse_block(self.copies[-1].entry.text))


AnyMatch = TypeVar("AnyMatch", MemoryMatch, ArchiveMatch)


def block_title(block: Block) -> str:
    """Return the title of an entry, or the first line of any other block."""
    return block.entry.title if block.entry else block.text.strip().partition("\n")[0]


def entry_heading(match: MemoryMatch | ArchiveMatch) -> str:
    """Format an entry's id and title, and its location in a second line."""
    location = f"  in {role_label(match.role.name)}  {short_path(match.role.store.key)}"
    return "\n".join([wrap(title_text(match.title), indent=f"{match.id}  "), location])


def find_in_memory(
    context: CommandContext, read_context: ReadContext, scope: EntryScope, prefixes: Sequence[str]
) -> list[MemoryMatch]:
    """Find the entries of memory files that these ids, or prefixes of ids, name.

    Args:
        context: the command.
        read_context: reads the files.
        scope: where to search.
        prefixes: ids or prefixes of ids.

    Raises:
        UsageError: no entry matches, or several match and there is no terminal to ask at.
        EchodError: a file cannot be read.
    """
    role_groups = _role_groups(context, read_context, scope)
    return [_find_one_in_memory(context, read_context, role_groups, prefix, scope) for prefix in prefixes]


def find_to_change(
    context: CommandContext, read_context: ReadContext, scope: EntryScope, prefixes: Sequence[str]
) -> list[MemoryMatch]:
    """Find entries as `find_in_memory` does, for a command that changes them.

    Raises:
        UsageError: as there, or an entry of another project is not named by its whole id.
    """
    matches = find_in_memory(context, read_context, scope, prefixes)
    for match, prefix in zip(matches, prefixes, strict=True):
        check_named(context, scope, match, prefix)
    return matches


def check_named(context: CommandContext, scope: EntryScope, match: MemoryMatch | ArchiveMatch, prefix: str) -> None:
    """Check that a change concerns the named project or the current one, or that the whole id was typed.

    Raises:
        UsageError: the beginning of an id matched an entry of another project.
    """
    if scope is not None or prefix == match.id:
        return
    project = match.role.store.project
    if project != context.current_project():
        raise UsageError(
            f"{sanitize(prefix)} matches {match.id}, which is in another project: {short_path(str(project))}. "
            "Type the whole id, or name that project."
        )


def find_entry(
    context: CommandContext, read_context: ReadContext, scope: EntryScope, prefix: str
) -> MemoryMatch | ArchiveMatch:
    """Find the entry that an id, or a prefix of one, names. A memory file comes before an archive.

    Raises:
        UsageError: no entry matches, or several match and there is no terminal to ask at.
        EchodError: a file cannot be read.
    """
    for roles in _role_groups(context, read_context, scope):
        if matches := _resolve_prefix(prefix, _memory_matches(read_context, roles)):
            return _choose_match(context, prefix, matches)
        if archived := _resolve_prefix(prefix, _archive_matches(roles)):
            return _choose_match(context, prefix, archived)
    raise _entry_not_found_error(prefix, scope)


def list_memory_matches(read_context: ReadContext, role: Role) -> tuple[MemoryMatch, ...]:
    """List the entries of a role's memory file, in file order. None are listed if it cannot be parsed.

    Raises:
        EchodError: the file cannot be read.
    """
    document = parse(read_context.reader.read_role(role).memory.text)
    if not isinstance(document, Document):
        return ()
    pairs = zip(entry_ids(role.name, document), document.blocks, strict=True)
    return tuple(MemoryMatch(role, document, identity, block) for identity, block in pairs if identity)


def list_archive_matches(role: Role) -> tuple[ArchiveMatch, ...]:
    """List the entries in a role's archive, by id. Some may be in the memory again.

    Raises:
        EchodError: the archive cannot be read.
    """
    copies: dict[str, list[ArchivedCopy]] = {}
    for copy in list_archived_entries(role):
        if copy.entry.text:
            copies.setdefault(copy.entry.id, []).append(copy)
    return tuple(ArchiveMatch(role, identity, tuple(group)) for identity, group in copies.items() if identity)


def _role_groups(context: CommandContext, read_context: ReadContext, scope: EntryScope) -> tuple[tuple[Role, ...], ...]:
    """Return the groups of roles to search, the nearest first."""
    if isinstance(scope, GlobalScope):
        return (list_global_roles(read_context),)
    near = select_stores(context, scope) or ()
    far = (
        ()
        if scope is not None
        else tuple(store for store in read_context.discover_stores().stores if store not in near)
    )
    return tuple(group for stores in (near, far) if (group := list_roles_of(stores)))


def list_roles_of(stores: Iterable[Store]) -> tuple[Role, ...]:
    """Return the roles of these stores. A `StoreError` reports a store that cannot be listed, or vanished just now."""
    roles: list[Role] = []
    for store in stores:
        with as_store_error("list", store.root):
            roles += find_roles(store)
    return tuple(roles)


def _memory_matches(read_context: ReadContext, roles: Iterable[Role]) -> Iterable[MemoryMatch]:
    return (match for role in roles for match in list_memory_matches(read_context, role))


def _archive_matches(roles: Iterable[Role]) -> Iterable[ArchiveMatch]:
    return (match for role in roles for match in list_archive_matches(role))


def _find_one_in_memory(
    context: CommandContext,
    read_context: ReadContext,
    role_groups: Sequence[Sequence[Role]],
    prefix: str,
    scope: EntryScope,
) -> MemoryMatch:
    for roles in role_groups:
        if matches := _resolve_prefix(prefix, _memory_matches(read_context, roles)):
            return _choose_match(context, prefix, matches)
    for roles in role_groups:
        if archived := _resolve_prefix(prefix, _archive_matches(roles)):
            first = archived[0]
            raise UsageError(
                f"{first.id} is not in a memory file but in the archive of {role_label(first.role.name)}. "
                f"Restore it with: echod restore {first.id}{global_flag(first.role)}"
            )
    raise _entry_not_found_error(prefix, scope)


def _resolve_prefix(prefix: str, candidates: Iterable[AnyMatch]) -> list[AnyMatch]:
    """Return all candidates that the prefix matches."""
    by_id: dict[str, list[AnyMatch]] = {}
    for candidate in candidates:
        by_id.setdefault(candidate.id, []).append(candidate)
    try:
        ids: tuple[str, ...] = (resolve_id(prefix, by_id),)
    except UnknownEntryError:
        return []
    except AmbiguousEntryError as error:
        ids = error.candidates
    return [match for identity in ids for match in by_id[identity]]


def ask_choice(question: str, options: Sequence[str]) -> int:
    """Ask which of the options the user means, by its number or its text. Return its index. Ctrl-C cancels."""
    click.echo("\n".join(f"{number:>3}  {option}" for number, option in enumerate(options, 1)))
    while True:
        answer: str = click.prompt(f"{question} (1-{len(options)}, Ctrl-C to cancel)", default="", show_default=False)
        typed = answer.strip()
        if typed in options:
            return options.index(typed)
        if typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(options):
            return int(typed) - 1
        click.echo(f"Type a number from 1 to {len(options)}{f', not {sanitize(typed)!r}' if typed else ''}.")


def _choose_match(context: CommandContext, prefix: str, matches: Sequence[AnyMatch]) -> AnyMatch:
    if len(matches) == 1:
        return matches[0]
    lines: list[str] = [_match_line(match) for match in matches[:_MAX_CANDIDATES]]
    more: int = len(matches) - len(lines)
    heading = f"{sanitize(prefix)} matches {len(matches)} entries"
    if not context.is_interactive:
        rows: list[str] = [*(f"  {row}" for row in lines), *([f"  and {more} more"] if more else [])]
        raise UsageError("\n".join([f"{heading}. Type more digits of the id, or name the project.", *rows]))
    click.echo(f"{heading}. The first {len(lines)}:" if more else f"{heading}:")
    return matches[ask_choice("Which one", lines)]


def _match_line(match: MemoryMatch | ArchiveMatch) -> str:
    title = textwrap.shorten(title_text(match.title), 44, placeholder="...")
    return f"{match.id}  {role_label(match.role.name)}: {title}  {fit_path(match.role.store.key, 40)}"


def _entry_not_found_error(prefix: str, scope: EntryScope) -> EntryNotFoundError:
    command = "echod show --global" if isinstance(scope, GlobalScope) else "echod show ROLE"
    return EntryNotFoundError(
        f"There is no entry whose id begins with {sanitize(prefix)!r}. `{command}` lists the entries."
    )

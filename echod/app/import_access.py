"""Import the access log of the workflow plugin's own search index, from a copy of its database.

The plugin has written six generations of that file, and numbers that disagree with the tables. So tables and columns
decide, never the number. Its ids are made of role, path and line, so a row is matched with an entry of today by role,
title and date, then by its text, then by its line. A row whose entry is not in the database any more is matched by
computing the ids that today's entries would have.

The plugin records every listing of a search and no session. So all rows of an entry on one day count as one reference.
Importing twice imports nothing.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, NamedTuple

from echod.clock import local_date
from echod.errors import EchodError, os_reason
from echod.inspection.inspect import read_document, record_entries
from echod.memory.document import count_lines
from echod.memory.identity import entry_ids, normalize_title
from echod.memory.model import Block
from echod.state.entries import EntryStore, Reference
from echod.store.layout import STORE_DIRS, Role, Store, find_roles

INDEX_NAME: Final = ".search-index.db"
CAUSE: Final = "imported"
_ENTRY_COLUMNS: Final = ("id", "role", "date", "content", "tags", "line_number", "file_path")
_ID_LENGTH: Final = 16
_MAX_LINES: Final = 10_000


class UnreadableIndexError(EchodError):
    """The plugin's database cannot be read."""


class AccessRow(NamedTuple):
    """A row of the access log: the id that the plugin gave the entry, and the local day; None if it is unreadable."""

    entry: str
    day: date | None


class KnownEntry(NamedTuple):
    """An entry as the plugin's database has it."""

    role: str
    title: str
    date: str
    content: str
    line: int
    path: str


class AccessLog(NamedTuple):
    """The content of a database. `entries` are by id."""

    rows: tuple[AccessRow, ...]
    entries: Mapping[str, KnownEntry]


class CurrentEntry(NamedTuple):
    """An entry of a memory file as it is now. `normalized_title` is for comparison."""

    role: Role
    id: str
    title: str
    normalized_title: str
    date: str
    text: str
    line: int


class ImportedEntry(NamedTuple):
    """An entry and the days on which it was used, according to the log."""

    entry: CurrentEntry
    days: tuple[date, ...]


class ImportPlan(NamedTuple):
    """The content of a log for the entries of today.

    `unmatched` rows belong to no entry of today, `undated` rows have no readable time.
    """

    entries: tuple[ImportedEntry, ...]
    rows: int
    unmatched: int
    undated: int


def read_access_log(database: Path) -> AccessLog:
    """Read a database of any generation. It is copied first, so that the plugin's file does not change.

    Raises:
        UnreadableIndexError: it cannot be read, or is no database.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="echod-import-") as directory:
            copy = Path(directory) / INDEX_NAME
            for suffix in ("", "-wal"):
                source = database.with_name(database.name + suffix)
                if not suffix or source.exists():
                    shutil.copyfile(source, copy.with_name(copy.name + suffix))
            connection = sqlite3.connect(copy)
            try:
                return AccessLog(tuple(_read_rows(connection)), dict(_read_entries(connection)))
            finally:
                connection.close()
    except sqlite3.Error as error:
        raise UnreadableIndexError(f"{database} is not a search index of the plugin: {error}.") from error
    except OSError as error:
        raise UnreadableIndexError(f"{database} cannot be read: {os_reason(error)}.") from error


def _columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(row[1] for row in connection.execute(f'PRAGMA table_info("{table}")'))


def _read_rows(connection: sqlite3.Connection) -> Iterator[AccessRow]:
    if not {"entry_id", "accessed_at"} <= _columns(connection, "echo_access_log"):
        return
    for entry, at in connection.execute("SELECT entry_id, accessed_at FROM echo_access_log ORDER BY rowid"):
        yield AccessRow(str(entry), _parse_day(str(at)))


def _parse_day(text: str) -> date | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return local_date((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())


def _read_entries(connection: sqlite3.Connection) -> Iterator[tuple[str, KnownEntry]]:
    if not set(_ENTRY_COLUMNS) <= _columns(connection, "echo_entries"):
        return
    select = f"SELECT {', '.join(_ENTRY_COLUMNS)} FROM echo_entries"  # noqa: S608
    for identity, role, day, content, title, line, path in connection.execute(select):
        yield str(identity), KnownEntry(role, title or "", day or "", content or "", line or 0, path)


def list_current_entries(store: Store) -> tuple[CurrentEntry, ...]:
    """List the entries of a store's memory files."""
    return tuple(entry for role in find_roles(store) for entry in _iter_entries(role))


def _iter_entries(role: Role) -> Iterator[CurrentEntry]:
    document = read_document(role.memory)
    if document is None:
        return
    line = 1 + document.preamble.count("\n")
    for identity, block in zip(entry_ids(role.name, document), document.blocks, strict=True):
        if identity is not None and block.entry is not None:
            day = block.entry.heading_date
            title = block.entry.full_title
            yield CurrentEntry(
                role, identity, title, normalize_title(title), day.isoformat() if day else "", _text(block), line
            )
        line += count_lines(block.text)


def _text(block: Block) -> str:
    return " ".join(block.text.split())


def plan_import(log: AccessLog, store: Store, current: Sequence[CurrentEntry]) -> ImportPlan:
    """Match the rows of a log with the entries of today."""
    by_upstream_id = _orphan_ids(log, store, current)
    days: defaultdict[CurrentEntry, set[date]] = defaultdict(set)
    counts: Counter[str] = Counter()
    matches: dict[str, CurrentEntry | None] = {}
    for row in log.rows:
        if row.entry not in matches:
            known = log.entries.get(row.entry)
            matches[row.entry] = by_upstream_id.get(row.entry) if known is None else _match(known, current)
        found = matches[row.entry]
        if found is None:
            counts["unmatched"] += 1
        elif row.day is None:
            counts["undated"] += 1
        else:
            days[found].add(row.day)
    entries = tuple(ImportedEntry(entry, tuple(sorted(found))) for entry, found in days.items())
    return ImportPlan(entries, len(log.rows), counts["unmatched"], counts["undated"])


def _match(known: KnownEntry, current: Iterable[CurrentEntry]) -> CurrentEntry | None:
    own = [entry for entry in current if entry.role.name == known.role]
    title = normalize_title(known.title)
    same = [entry for entry in own if entry.normalized_title == title and (not known.date or entry.date == known.date)]
    text = " ".join(known.content.split())
    if len(same) != 1 and text:
        same = [entry for entry in same or own if text in entry.text] or same
    if len(same) > 1:
        same = [entry for entry in same if entry.line == known.line]
    return same[0] if len(same) == 1 else None


def _orphan_ids(log: AccessLog, store: Store, current: Sequence[CurrentEntry]) -> Mapping[str, CurrentEntry]:
    """Return the entries by the ids that the plugin gave them, or would have given them in another place.

    An entry that is the only one of its role had each id of the role, wherever its heading was. Otherwise the heading
    must be on the same line as today.
    """
    wanted = {row.entry for row in log.rows} - log.entries.keys()
    if not wanted:
        return {}
    roots = {str(store.project), *(_project_of(entry.path) for entry in log.entries.values())} - {""}
    found: dict[str, CurrentEntry] = {}
    sizes = Counter(entry.role.name for entry in current)
    for entry in current:
        is_alone = sizes[entry.role.name] == 1
        lines = range(1, min(_MAX_LINES, entry.line + 1000)) if is_alone else (entry.line,)
        for root in sorted(roots):
            for below in STORE_DIRS:
                path = f"{root}/{below}/{entry.role.name}/MEMORY.md"
                ids = {_upstream_id(entry.role.name, path, line) for line in lines}
                found.update(dict.fromkeys(ids & wanted, entry))
    return found


def _project_of(path: str) -> str:
    return next((path.partition(f"/{below}/")[0] for below in map(str, STORE_DIRS) if f"/{below}/" in path), "")


def _upstream_id(role: str, path: str, line: int) -> str:
    return hashlib.sha256(f"{role}:{path}:{line}".encode()).hexdigest()[:_ID_LENGTH]


def apply_import(plan: ImportPlan, store: Store, entries: EntryStore, today: date) -> int:
    """Store the references of a plan. Return the number of new ones."""
    for role in {imported.entry.role.name: imported.entry.role for imported in plan.entries}.values():
        memory = read_document(role.memory)
        if memory is not None:
            record_entries(entries, role, memory, today)
    by_day: defaultdict[date, list[Reference]] = defaultdict(list)
    for imported in plan.entries:
        for day in imported.days:
            by_day[day].append(Reference(imported.entry.id, f"{CAUSE}:{day.isoformat()}"))
    return sum(entries.add_references(store.key, references, day) for day, references in sorted(by_day.items()))

"""Find files of echod's own that no commit follows any more, and delete those whose text is known elsewhere.

Earlier versions kept staged and displaced files beside their target, where git takes them. And a journal that was
deleted no longer follows the files in the private directory. Neither is ever deleted without being asked, and never if
it could be the only copy of a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from echod.files import content_digest, read_regular
from echod.memory import MAX_FILE_BYTES
from echod.memory.conservation import find_whole_lines
from echod.memory.document import parse
from echod.memory.identity import block_contents
from echod.memory.model import Document
from echod.memory.redact import redact
from echod.store.errors import as_store_error
from echod.store.journal.journal import Journal
from echod.store.layout import ARCHIVE, FINDINGS_ARCHIVE, KNOWLEDGE, MEMORY, QUARANTINE, Role, Store, list_roles
from echod.store.private_directory import PRIVATE_DIRECTORY, own_files

_FOLDERS = ("", ARCHIVE, FINDINGS_ARCHIVE, QUARANTINE)


class Leftover(NamedTuple):
    """A file of echod's own that nothing follows any more."""

    path: Path
    known: bool  # whether its text is in the journal, or in the memory, the archives and the findings of its store


def list_private_files(store: Store) -> Iterator[Path]:
    """Yield the staged, displaced and claimed files of a store, with those of mounts in it."""
    yield from own_files(store.root / PRIVATE_DIRECTORY)
    for role in list_roles(store).roles:
        yield from (file for folder in _FOLDERS for file in own_files(role.path / folder / PRIVATE_DIRECTORY))


def list_exposed_files(store: Store) -> Iterator[Path]:
    """Yield the files that an earlier version left beside their target."""
    for role in list_roles(store).roles:
        yield from (file for folder in _FOLDERS for file in own_files(role.path / folder))


def find_leftovers(store: Store, journal: Path) -> tuple[Leftover, ...]:
    """Return the leftovers in a store. `journal` is the directory of all journals. Read-only."""
    roles = [Journal(journal).role_journal(role) for role in _all_roles(store, journal)]
    with as_store_error("read the journal in", journal):
        records = [record for role_journal in roles for record in role_journal.open_records()]
    followed = {write.staged_name for record in records for write in record.writes}
    followed |= {consume.claimed_name for record in records for consume in record.consumes}
    paths = [path for path in list_private_files(store) if path.name.removesuffix(".old") not in followed]
    paths += list_exposed_files(store)
    if not paths:
        return ()
    texts = "\n".join(_texts(store))
    digests = {path: _digest(path) for path in paths}
    blobs = [role_journal.blobs for role_journal in roles]
    return tuple(
        Leftover(path, any(digest is not None and blob.size(digest) for blob in blobs) or _is_contained(path, texts))
        for path, digest in digests.items()
    )


def delete_leftover(leftover: Leftover) -> None:
    """Delete a leftover. A missing file is not an error."""
    with as_store_error("delete", leftover.path):
        leftover.path.unlink(missing_ok=True)


def _all_roles(store: Store, journal: Path) -> tuple[Role, ...]:
    with as_store_error("read the journal in", journal):
        return Journal(journal).roles(store)


def _texts(store: Store) -> Iterator[str]:
    for role in list_roles(store).roles:
        files = [role.path / MEMORY, role.path / KNOWLEDGE, *sorted(role.path.glob("*-findings.md"))]
        for folder in _FOLDERS[1:]:
            files += sorted((role.path / folder).glob("*.md"))
        for file in files:
            if not file.name.startswith("MEMORY-") and (data := _read(file)) is not None:
                yield data.decode(errors="replace").replace("\r\n", "\n")


def _is_contained(path: Path, texts: str) -> bool:
    """Return whether every block of a file is in `texts`, verbatim or redacted."""
    data = _read(path)
    document = None if data is None else parse(data)
    if not isinstance(document, Document):
        return False
    contents = block_contents(document)
    present = find_whole_lines(texts, frozenset(contents) | {redact(content).text for content in contents})
    return all(content in present or redact(content).text in present for content in contents)


def _digest(path: Path) -> str | None:
    data = _read(path)
    return None if data is None else content_digest(data)


def _read(path: Path) -> bytes | None:
    try:
        return read_regular(path, MAX_FILE_BYTES, follow_symlinks=False)
    except OSError:
        return None

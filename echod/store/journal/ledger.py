"""Which findings were consumed already: a stale copy of their file must not add them twice.

The file has one line for each finding that a closed commit consumed (+) or gave back (-); what open commits did is in
their records. The set of all that is known is kept, and new commits are entered as they come. Threads may share it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from echod.store.journal.files import append_durable, read_lines, write_durable

if TYPE_CHECKING:
    from echod.store.journal.records import CommitRecord

_LINE = re.compile(r"\d{8,} [-+] .+")
_Version = tuple[int, int, int]
_COMPACT_RATIO = 2
"""The file is written anew once it has so many times the lines that it needs."""


@dataclass(slots=True)
class Ledger:
    """The ledger of one role; `path` is the part of it that closed commits wrote."""

    path: Path
    _version: _Version | None = None
    _included: frozenset[tuple[int, float]] = frozenset()
    _keys: AbstractSet[str] = frozenset()
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def keys(self, open_records: Sequence[CommitRecord]) -> AbstractSet[str]:
        """Findings that were consumed and not given back, as of now: later commits do not show in it."""
        with self._lock:
            # A commit of which nothing was done leaves its number to the next one.
            version, included = self._file_version(), frozenset((record.seq, record.at) for record in open_records)
            newest = max((seq for seq, _ in self._included), default=0)
            new = [record for record in open_records if (record.seq, record.at) not in self._included]
            if version != self._version or not self._included <= included or any(r.seq < newest for r in new):
                self._keys = self._read(open_records)
            elif moves := [move for record in new for move in sorted(_changes(record))]:
                self._keys = _apply(self._keys, moves)
            self._version, self._included = version, included
            return self._keys

    def add(self, record: CommitRecord) -> None:
        """Carry a commit's findings to the file, durably. Entering twice changes nothing."""
        lines = _format_lines(record)
        if lines:
            append_durable(self.path, "\n".join(lines))

    def trim(self, keys: int) -> None:
        """Keep what the newest commits did with so many findings, of each finding the last; seldom writes.

        That a finding was given back is kept like that it was consumed: an older commit may enter it once more.
        """
        changes = sorted(self._file_changes())
        last = {key: (seq, mark, key) for seq, mark, key in changes}
        if len(last) > keys or len(changes) > _COMPACT_RATIO * len(last):
            newest = sorted(last.values())[-keys:]
            write_durable(self.path, "".join(f"{_format_line(*move)}\n" for move in newest).encode())

    def _read(self, open_records: Iterable[CommitRecord]) -> AbstractSet[str]:
        changes = set(self._file_changes())
        changes |= {(record.seq, mark, key) for record in open_records for mark, key in _changes(record)}
        return _apply((), ((mark, key) for _, mark, key in sorted(changes)))

    def _file_changes(self) -> Iterator[tuple[int, str, str]]:
        """The lines of the file: a commit's number, what it did, and with which finding."""
        for line in read_lines(self.path):
            # A line that a full disk or a power cut tore names a finding that is in the record of its commit too.
            if _LINE.fullmatch(line):
                number, sign, key = line.split(" ", 2)
                yield int(number), sign, key

    def _file_version(self) -> _Version | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns


def _apply(keys_before: Iterable[str], changes: Iterable[tuple[str, str]]) -> AbstractSet[str]:
    """What is known after moves in order: by commit, and within one what was consumed before what was given back."""
    keys = set(keys_before)
    for sign, key in changes:
        (keys.add if sign == "+" else keys.discard)(key)
    return keys


def _format_lines(record: CommitRecord) -> list[str]:
    return [_format_line(record.seq, mark, key) for mark, key in _changes(record)]


def _format_line(seq: int, sign: str, key: str) -> str:
    return f"{seq:08d} {sign} {key}"


def _changes(record: CommitRecord) -> Iterator[tuple[str, str]]:
    yield from (("+", key) for taken in record.consumes for key in taken.keys)
    yield from (("+", key) for taken in record.partial_consumes for key in taken.keys)
    yield from (("-", key) for key in record.unconsumed_keys)
    yield from (("-", key) for part in record.withdrawn_consumes for key in part.keys)

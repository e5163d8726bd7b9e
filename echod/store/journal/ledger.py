"""The ledger of consumed findings, so that a stale copy of their file adds none of them twice.

The file has one line for each finding that a closed commit consumed (+) or restored (-). The findings of open commits
are in their records. The set of all known keys is cached, and new commits are added to it. Threads may share it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from echod.files import FileVersion
from echod.store.journal.files import append_durable, read_lines, version_of, write_durable
from echod.store.journal.records import CommitRecord

_LINE = re.compile(r"\d{8,} [-+] .+")
_COMPACT_RATIO = 2
"""The file is rewritten when it has this many times the lines that it needs."""


@dataclass(slots=True)
class Ledger:
    """The ledger of one role. `path` is the part that closed commits wrote."""

    path: Path
    _version: FileVersion | None = None
    _included: frozenset[tuple[int, float]] = frozenset()
    _keys: AbstractSet[str] = frozenset()
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def keys(self, open_records: Sequence[CommitRecord]) -> AbstractSet[str]:
        """Return the keys of consumed findings as of now, without the restored ones. Later commits do not change it."""
        with self._lock:
            # A commit that was rolled back leaves its number to the next one, so the time identifies it too.
            version, included = version_of(self.path), frozenset((record.seq, record.at) for record in open_records)
            newest = max((seq for seq, _ in self._included), default=0)
            new = [record for record in open_records if (record.seq, record.at) not in self._included]
            if version != self._version or not self._included <= included or any(r.seq < newest for r in new):
                self._keys = self._read(open_records)
            elif changes := [change for record in new for change in sorted(_changes(record))]:
                self._keys = _apply(self._keys, changes)
            self._version, self._included = version, included
            return self._keys

    def add(self, record: CommitRecord) -> None:
        """Add a commit's findings to the file, durably. Adding them twice changes nothing."""
        lines = _format_lines(record)
        if lines:
            append_durable(self.path, "\n".join(lines))

    def trim(self, max_keys: int) -> None:
        """Keep the last change of each of the `max_keys` newest findings. Rewrites the file rarely.

        A restored finding is kept like a consumed one, because an older commit may add it again.
        """
        changes = sorted(self._file_changes())
        last = {key: (seq, sign, key) for seq, sign, key in changes}
        if len(last) > max_keys or len(changes) > _COMPACT_RATIO * len(last):
            newest = sorted(last.values())[-max_keys:]
            write_durable(self.path, "".join(f"{_format_line(*change)}\n" for change in newest).encode())

    def _read(self, open_records: Iterable[CommitRecord]) -> AbstractSet[str]:
        changes = set(self._file_changes())
        changes |= {(record.seq, sign, key) for record in open_records for sign, key in _changes(record)}
        return _apply((), ((sign, key) for _, sign, key in sorted(changes)))

    def _file_changes(self) -> Iterator[tuple[int, str, str]]:
        """Yield the lines of the file: the number of the commit, the sign and the key of the finding."""
        for line in read_lines(self.path):
            # The finding of a line torn by a full disk or a power cut is in the record of its commit too.
            if _LINE.fullmatch(line):
                number, sign, key = line.split(" ", 2)
                yield int(number), sign, key


def _apply(keys_before: Iterable[str], changes: Iterable[tuple[str, str]]) -> AbstractSet[str]:
    """Return the keys after changes in order: by commit, and within a commit consumed findings before restored ones."""
    keys = set(keys_before)
    for sign, key in changes:
        (keys.add if sign == "+" else keys.discard)(key)
    return keys


def _format_lines(record: CommitRecord) -> list[str]:
    return [_format_line(record.seq, sign, key) for sign, key in _changes(record)]


def _format_line(seq: int, sign: str, key: str) -> str:
    return f"{seq:08d} {sign} {key}"


def _changes(record: CommitRecord) -> Iterator[tuple[str, str]]:
    yield from (("+", key) for consume in record.consumes for key in consume.keys)
    yield from (("+", key) for part in record.partial_consumes for key in part.keys)
    yield from (("-", key) for key in record.unconsumed_keys)
    yield from (("-", key) for part in record.withdrawn_consumes for key in part.keys)

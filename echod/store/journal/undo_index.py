"""What was taken back in a role, and by which commits; also what is forgotten of them by now.

Commits that undo one are few and have to be known at every look, so they are listed (`UNDOS`) before they are written.
What stays of those that are forgotten: findings that stay given back (`UNDONE`), and which commit took back which.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from echod.store.journal.files import append_line, json_lines, lines_of, replace_file
from echod.store.journal.record_directory import Shelf

if TYPE_CHECKING:
    from echod.store.journal.records import Record

UNDOS, UNDONE = "undos", "undone"
_FORGOTTEN = "undoings"


class Undoing(NamedTuple):
    """What is wanted of a commit when it is asked what was undone: `gave_back` names findings files by digest."""

    seq: int
    job: int | None
    undoes: tuple[int, ...]
    gave_back: tuple[str, ...] = ()


def undoing_of(record: Record) -> Undoing:
    """What is wanted of a record."""
    return Undoing(record.seq, record.job, record.undoes, tuple(_given_back(record)))


class Undoings:
    """What was taken back in one role. `root` is its journal's directory, the shelves are those of its commits."""

    def __init__(self, root: Path, open_records: Shelf[Record], closed: Shelf[Undoing]) -> None:
        self._root = root
        self._open = open_records
        self._closed = closed

    def given_back(self) -> frozenset[str]:
        """Digests of findings files that an undo gave back; consolidating them again is for a person to ask.

        A person asks by undoing the undo.
        """
        undoings = tuple(self._undos())
        redone = {seq for undoing in undoings for seq in undoing.undoes}
        given_back = {name for undoing in undoings if undoing.seq not in redone for name in undoing.gave_back}
        return frozenset(given_back.union(lines_of(self._root / UNDONE)))

    def jobs(self) -> frozenset[int]:
        """Jobs that were taken back in this role and not done again, however long ago."""
        undoings = sorted(self._all(), key=lambda undoing: undoing.seq, reverse=True)
        undone: set[int] = set()
        for undoing in undoings:  # an undo is later than what it takes back
            if undoing.seq not in undone:
                undone.update(undoing.undoes)
        return frozenset(u.job for u in undoings if u.seq in undone and u.job is not None)

    def list_all(self) -> None:
        """Write down which commits undo one, if an earlier version did not; to be called before anything is committed.

        Whoever looks at a hundred projects then reads those commits only, of all that are kept.
        """
        if self._listed() is None:
            replace_file(self._root / UNDOS, _lines(undoing.seq for undoing in self._kept() if undoing.undoes))

    def list_before_it_is_written(self, record: Record) -> None:
        """A commit is about to be written down; one that undoes another is listed first, durably."""
        if not record.undoes:
            return
        self.list_all()
        if record.seq not in (self._listed() or ()):
            append_line(self._root / UNDOS, str(record.seq))

    def keep(self, record: Record) -> None:
        """A closed commit is about to be forgotten: keep what it gave back, if that stays so, and what it undid."""
        given_back = set(_given_back(record))
        if given_back and (kept := self.given_back() & given_back):
            append_line(self._root / UNDONE, "\n".join(sorted(kept)))
        if record.undoes or any(record.seq in undoing.undoes for undoing in self._all()):
            line = json.dumps({"seq": record.seq, "job": record.job, "undoes": record.undoes})
            append_line(self._root / _FORGOTTEN, line)

    def unlist(self, record: Record) -> None:
        """A commit is forgotten."""
        if record.undoes and (listed := self._listed()):
            replace_file(self._root / UNDOS, _lines(seq for seq in listed if seq != record.seq))

    def _listed(self) -> tuple[int, ...] | None:
        """Commits that may undo one, and every one that does; None where that is not written down."""
        try:
            data = (self._root / UNDOS).read_bytes()
        except FileNotFoundError:
            return None
        return tuple(int(number) for number in data.split() if number.isdigit())

    def _undos(self) -> Iterator[Undoing]:
        """Every commit that undoes one and is kept, and maybe others."""
        listed = self._listed()
        if listed is None:
            yield from self._kept()
            return
        for seq in listed:
            # A commit that is being closed is in both places for a while; open first, so that it is found in one.
            record = self._open.gist_of(seq)
            undoing = self._closed.gist_of(seq) if record is None else undoing_of(record)
            if undoing is not None:
                yield undoing

    def _kept(self) -> Iterator[Undoing]:
        yield from map(undoing_of, self._open.gists())
        yield from self._closed.gists()

    def _all(self) -> Iterator[Undoing]:
        """What is known of every commit, and of those that are forgotten and have to do with an undo."""
        yield from self._kept()
        for line in json_lines(self._root / _FORGOTTEN):
            yield Undoing(line["seq"], line["job"], tuple(line["undoes"]))


def _given_back(record: Record) -> Iterator[str]:
    """Digests of the findings files that an undo gave back, or of which it took back a part."""
    if record.undoes:
        yield from (write.post for write in record.writes if write.path.endswith("-findings.md"))
        yield from (part.image for part in record.withheld)


def _lines(numbers: Iterable[int]) -> bytes:
    return "".join(f"{number}\n" for number in numbers).encode()

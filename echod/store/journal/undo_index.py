"""What was taken back in a role, and by which commits; also what is forgotten of them by now.

Commits that undo one are few and have to be known at every look, so they are listed (`UNDO_SEQS`) first.
What stays of those that are forgotten: findings that stay restored (`RESTORED_FINDINGS`), and which commit undid which.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from echod.store.journal.files import append_durable, read_json_lines, read_lines, write_durable
from echod.store.journal.record_directory import RecordDirectory

if TYPE_CHECKING:
    from echod.store.journal.records import CommitRecord

UNDO_SEQS, RESTORED_FINDINGS = "undo-seqs", "restored-findings"
_DELETED_UNDOS = "deleted-undos"


class UndoInfo(NamedTuple):
    """What is wanted of a commit when it is asked what was undone: `restored_findings` are digests."""

    seq: int
    job: int | None
    undoes: tuple[int, ...]
    restored_findings: tuple[str, ...] = ()


def undo_info(record: CommitRecord) -> UndoInfo:
    """What is wanted of a record."""
    return UndoInfo(record.seq, record.job, record.undoes, tuple(_restored_by(record)))


class UndoIndex:
    """What was taken back in one role. `root` is its journal's directory, the shelves are those of its commits."""

    def __init__(
        self, root: Path, open_records: RecordDirectory[CommitRecord], closed: RecordDirectory[UndoInfo]
    ) -> None:
        self._root = root
        self._open = open_records
        self._closed = closed

    def restored_findings(self) -> frozenset[str]:
        """Digests of findings files that an undo gave back; consolidating them again is for a person to ask.

        A person asks by undoing the undo.
        """
        infos = tuple(self._undo_commits())
        redone = {seq for undoing in infos for seq in undoing.undoes}
        restored = {name for undoing in infos if undoing.seq not in redone for name in undoing.restored_findings}
        return frozenset(restored.union(read_lines(self._root / RESTORED_FINDINGS)))

    def undone_jobs(self) -> frozenset[int]:
        """Jobs that were taken back in this role and not done again, however long ago."""
        infos = sorted(self._all_commits(), key=lambda undoing: undoing.seq, reverse=True)
        undone: set[int] = set()
        for undoing in infos:  # an undo is later than what it takes back
            if undoing.seq not in undone:
                undone.update(undoing.undoes)
        return frozenset(u.job for u in infos if u.seq in undone and u.job is not None)

    def build(self) -> None:
        """Write down which commits undo one, if an earlier version did not; to be called before anything is committed.

        Whoever looks at a hundred projects then reads those commits only, of all that are kept.
        """
        if self._registered() is None:
            write_durable(
                self._root / UNDO_SEQS, _format_seqs(undoing.seq for undoing in self._known_commits() if undoing.undoes)
            )

    def register(self, record: CommitRecord) -> None:
        """A commit is about to be written down; one that undoes another is listed first, durably."""
        if not record.undoes:
            return
        self.build()
        if record.seq not in (self._registered() or ()):
            append_durable(self._root / UNDO_SEQS, str(record.seq))

    def retain(self, record: CommitRecord) -> None:
        """A closed commit is about to be forgotten: keep what it gave back, if that stays so, and what it undid."""
        restored = set(_restored_by(record))
        if restored and (kept := self.restored_findings() & restored):
            append_durable(self._root / RESTORED_FINDINGS, "\n".join(sorted(kept)))
        if record.undoes or any(record.seq in undoing.undoes for undoing in self._all_commits()):
            line = json.dumps({"seq": record.seq, "job": record.job, "undoes": record.undoes})
            append_durable(self._root / _DELETED_UNDOS, line)

    def unregister(self, record: CommitRecord) -> None:
        """A commit is forgotten."""
        if record.undoes and (listed := self._registered()):
            write_durable(self._root / UNDO_SEQS, _format_seqs(seq for seq in listed if seq != record.seq))

    def _registered(self) -> tuple[int, ...] | None:
        """Commits that may undo one, and every one that does; None where that is not written down."""
        try:
            data = (self._root / UNDO_SEQS).read_bytes()
        except FileNotFoundError:
            return None
        return tuple(int(number) for number in data.split() if number.isdigit())

    def _undo_commits(self) -> Iterator[UndoInfo]:
        """Every commit that undoes one and is kept, and maybe others."""
        registered = self._registered()
        if registered is None:
            yield from self._known_commits()
            return
        for seq in registered:
            # A commit that is being closed is in both places for a while; open first, so that it is found in one.
            record = self._open.summary_of(seq)
            info = self._closed.summary_of(seq) if record is None else undo_info(record)
            if info is not None:
                yield info

    def _known_commits(self) -> Iterator[UndoInfo]:
        yield from map(undo_info, self._open.summaries())
        yield from self._closed.summaries()

    def _all_commits(self) -> Iterator[UndoInfo]:
        """What is known of every commit, and of those that are forgotten and have to do with an undo."""
        yield from self._known_commits()
        for line in read_json_lines(self._root / _DELETED_UNDOS):
            yield UndoInfo(line["seq"], line["job"], tuple(line["undoes"]))


def _restored_by(record: CommitRecord) -> Iterator[str]:
    """Digests of the findings files that an undo gave back, or of which it took back a part."""
    if record.undoes:
        yield from (write.after_digest for write in record.writes if write.path.endswith("-findings.md"))
        yield from (part.digest for part in record.withdrawn_consumes)


def _format_seqs(seqs: Iterable[int]) -> bytes:
    return "".join(f"{number}\n" for number in seqs).encode()

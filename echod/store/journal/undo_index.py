"""The index of undone commits of a role, and of the commits that undid them, including deleted ones.

Commits that undo another one are few, and every read needs them, so their numbers are listed (`UNDO_SEQS`) first. Two
facts survive their deletion: findings that remain restored (`RESTORED_FINDINGS`), and which commit undid which.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from echod.store.journal.files import append_durable, read_if_exists, read_json_lines, read_lines, write_durable
from echod.store.journal.records import CommitRecord, RecordDirectory

UNDO_SEQS, RESTORED_FINDINGS = "undo-seqs", "restored-findings"

_DELETED_UNDOS = "deleted-undos"


class UndoInfo(NamedTuple):
    """The part of a commit record that concerns undo. `restored_findings` are digests."""

    seq: int
    job: int | None
    undoes: tuple[int, ...]
    restored_findings: tuple[str, ...] = ()


def undo_info(record: CommitRecord) -> UndoInfo:
    """Return the undo information of a record."""
    return UndoInfo(record.seq, record.job, record.undoes, tuple(_restored_by(record)))


class UndoIndex:
    """The undo information of one role. `root` is its journal's directory."""

    def __init__(
        self, root: Path, open_records: RecordDirectory[CommitRecord], closed: RecordDirectory[UndoInfo]
    ) -> None:
        self._root = root
        self._open = open_records
        self._closed = closed

    def restored_findings(self) -> frozenset[str]:
        """Return the digests of findings files that an undo restored.

        They are consolidated again only at the user's request. Undoing the undo is such a request.
        """
        undos = tuple(self._undo_commits())
        redone = {seq for undo in undos for seq in undo.undoes}
        restored = {name for undo in undos if undo.seq not in redone for name in undo.restored_findings}
        return frozenset(restored.union(read_lines(self._root / RESTORED_FINDINGS)))

    def undone_jobs(self) -> frozenset[int]:
        """Return the jobs that were undone in this role and not redone, however long ago."""
        commits = sorted(self._all_commits(), key=lambda commit: commit.seq, reverse=True)
        undone: set[int] = set()
        for commit in commits:  # an undo is later than the commit that it undoes
            if commit.seq not in undone:
                undone.update(commit.undoes)
        return frozenset(c.job for c in commits if c.seq in undone and c.job is not None)

    def build(self) -> None:
        """Write the list of commits that undo another one, if it is missing. Call this before the first commit.

        A caller that reads a hundred projects then reads these commits only.
        """
        if self._registered() is None:
            write_durable(
                self._root / UNDO_SEQS, _format_seqs(commit.seq for commit in self._known_commits() if commit.undoes)
            )

    def register(self, record: CommitRecord) -> None:
        """Add a commit that undoes another one to the list, durably. Call this before the record is written."""
        if not record.undoes:
            return
        self.build()
        if record.seq not in (self._registered() or ()):
            append_durable(self._root / UNDO_SEQS, str(record.seq))

    def retain(self, record: CommitRecord) -> None:
        """Keep the restored findings and the undo relations of a closed commit. Call this before it is deleted."""
        restored = set(_restored_by(record))
        if restored and (still_restored := self.restored_findings() & restored):
            append_durable(self._root / RESTORED_FINDINGS, "\n".join(sorted(still_restored)))
        if record.undoes or any(record.seq in commit.undoes for commit in self._all_commits()):
            line = json.dumps({"seq": record.seq, "job": record.job, "undoes": record.undoes})
            append_durable(self._root / _DELETED_UNDOS, line)

    def unregister(self, record: CommitRecord) -> None:
        """Remove a deleted commit from the list."""
        if record.undoes and (registered := self._registered()):
            write_durable(self._root / UNDO_SEQS, _format_seqs(seq for seq in registered if seq != record.seq))

    def _registered(self) -> tuple[int, ...] | None:
        """Return the listed commits (every one that undoes another, maybe more), or None if there is no list."""
        data = read_if_exists(self._root / UNDO_SEQS)
        return None if data is None else tuple(int(number) for number in data.split() if number.isdigit())

    def _undo_commits(self) -> Iterator[UndoInfo]:
        """Yield every known commit that undoes another one, and maybe others."""
        registered = self._registered()
        if registered is None:
            yield from self._known_commits()
            return
        for seq in registered:
            # A commit that is being closed is in both directories for a moment. Open first, so that one has it.
            record = self._open.summary_of(seq)
            info = self._closed.summary_of(seq) if record is None else undo_info(record)
            if info is not None:
                yield info

    def _known_commits(self) -> Iterator[UndoInfo]:
        yield from map(undo_info, self._open.summaries())
        yield from self._closed.summaries()

    def _all_commits(self) -> Iterator[UndoInfo]:
        """Yield the undo information of every commit, and of deleted commits that were part of an undo."""
        yield from self._known_commits()
        for line in read_json_lines(self._root / _DELETED_UNDOS):
            yield UndoInfo(line["seq"], line["job"], tuple(line["undoes"]))


def _restored_by(record: CommitRecord) -> Iterator[str]:
    """Yield the digests of the findings files that an undo restored, completely or in part."""
    if record.undoes:
        yield from (write.after_digest for write in record.writes if write.path.endswith("-findings.md"))
        yield from (part.digest for part in record.withdrawn_consumes)


def _format_seqs(seqs: Iterable[int]) -> bytes:
    return "".join(f"{number}\n" for number in seqs).encode()

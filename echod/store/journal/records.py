"""What a commit writes down before it changes anything: enough to finish it, follow it, explain it and undo it.

A record is a value; the journal stores it. Images (contents) are named by their digest and kept beside it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from echod.store.errors import StoreFault

VERSION = 1


class RecordState(StrEnum):
    """`intent`: may be half done, is redone. `applied`: done, its displaced files are followed. `closed`: history."""

    INTENT = "intent"
    APPLIED = "applied"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """One file that is replaced or created.

    Attributes:
        path: relative to the store.
        pre: the content it was planned from; None where there was no file.
        post: the content it becomes.
        stage: name beside the target; after the exchange it names the displaced file.
        inode: the stage's inode. Whether the exchange happened is judged by it alone.
        absorbed: what is known to be merged of the displaced file (the empty content where there was no file).
        mtime_ns: the target's modification time as we left it; 0 before that.
    """

    path: str
    pre: str | None
    post: str
    stage: str
    inode: int
    absorbed: str
    mtime_ns: int = 0


@dataclass(frozen=True, slots=True)
class AppendRecord:
    """Text added to a file at a known offset."""

    path: str
    image: str
    offset: int


@dataclass(frozen=True, slots=True)
class ConsumeRecord:
    """A findings file that is claimed by rename to the name `claim` beside it.

    Attributes:
        pre: its content as planned.
        kept: its content as archived (redacted).
        archive: where it was archived, relative to the store.
        absorbed: what is known to be merged or offered again of the claimed file.
        keys: the findings in it, for the ledger.
    """

    path: str
    pre: str
    kept: str
    archive: str
    claim: str
    absorbed: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BegunRecord:
    """Findings (by their keys) of a file that stays; `image` is the digest of what it held then."""

    image: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Absorption:
    """This commit merges what came late into `file` (a stage or claim name) of an older record."""

    seq: int
    file: str
    digest: str


@dataclass(frozen=True, slots=True)
class Record:
    """One commit.

    Attributes:
        seq: increases with each commit of a role.
        job: the job it was made for; None for healing and late bytes.
        at: Unix seconds; never goes back within a role, whatever the clock does.
        head: git HEAD of a repository that tracks the memory file, None where there is none.
        begun: findings that were taken up while their file stays, for there is more in it.
        withheld: the same, taken back by an undo; what the file held then is not taken up again unasked.
        reapplied: blocks that this commit put back after a stale overwrite.
        released: ledger keys that count as never consumed any more (undo).
        undoes: seq of the record that this one undoes.
        redacted: whether it took secrets out, so that its exact images are kept for a shorter time.
        thinned: whether that time is over: what undo brings back has lost these secrets.
    """

    seq: int
    job: int | None
    kind: str
    role: str
    summary: str
    at: float
    state: RecordState = RecordState.INTENT
    head: str | None = None
    writes: tuple[WriteRecord, ...] = ()
    appends: tuple[AppendRecord, ...] = ()
    consumes: tuple[ConsumeRecord, ...] = ()
    absorbs: tuple[Absorption, ...] = ()
    reapplied: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    undoes: tuple[int, ...] = ()
    redacted: bool = False
    thinned: bool = False
    begun: tuple[BegunRecord, ...] = ()
    withheld: tuple[BegunRecord, ...] = ()
    version: int = field(default=VERSION)

    def images(self) -> frozenset[str]:
        """Digests of every content this record speaks of."""
        named = {w.post for w in self.writes} | {w.pre for w in self.writes if w.pre}
        named |= {w.absorbed for w in self.writes} | {a.image for a in self.appends}
        for consume in self.consumes:
            named |= {consume.pre, consume.kept, consume.absorbed}
        return frozenset(named)

    def with_write(self, changed: WriteRecord) -> Record:
        """This record with one write (found by its stage) replaced."""
        return replace(self, writes=tuple(changed if w.stage == changed.stage else w for w in self.writes))

    def with_consume(self, changed: ConsumeRecord) -> Record:
        """This record with one consume (found by its claim) replaced."""
        return replace(self, consumes=tuple(changed if c.claim == changed.claim else c for c in self.consumes))

    def encode(self) -> bytes:
        """As JSON, one line."""
        return json.dumps(asdict(self), sort_keys=True).encode() + b"\n"


class RecordUnreadable(StoreFault):
    """A record cannot be understood; it is left where it is."""


def _consume(*, pre: str, kept: str, absorbed: str, keys: list[str], **names: str) -> ConsumeRecord:
    # Most often all three contents are one. Of very many records that are kept in memory this is a good part.
    same = {pre: pre}
    kept, absorbed = same.setdefault(kept, kept), same.setdefault(absorbed, absorbed)
    return ConsumeRecord(pre=pre, kept=kept, absorbed=absorbed, keys=tuple(keys), **names)


def decode(data: bytes) -> Record:
    """The record that `encode` wrote.

    Raises:
        RecordUnreadable: it is damaged or of a newer version.
    """
    try:
        raw: dict[str, Any] = json.loads(data)
        if raw["version"] != VERSION:
            raise RecordUnreadable(f"A journal record is of version {raw['version']}; upgrade echod.")
        return Record(
            **{
                **raw,
                "state": RecordState(raw["state"]),
                "writes": tuple(WriteRecord(**w) for w in raw["writes"]),
                "appends": tuple(AppendRecord(**a) for a in raw["appends"]),
                "consumes": tuple(_consume(**consume) for consume in raw["consumes"]),
                "absorbs": tuple(Absorption(**a) for a in raw["absorbs"]),
                "reapplied": tuple(raw["reapplied"]),
                "released": tuple(raw["released"]),
                "undoes": tuple(raw["undoes"]),
                "begun": tuple(BegunRecord(b["image"], tuple(b["keys"])) for b in raw.get("begun", ())),
                "withheld": tuple(BegunRecord(b["image"], tuple(b["keys"])) for b in raw.get("withheld", ())),
            }
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RecordUnreadable(
            "A journal record is damaged; echod leaves its role alone until it is moved away."
        ) from error

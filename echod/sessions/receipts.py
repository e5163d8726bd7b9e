"""The receipts of archives: their sources, and all that is needed to continue them. The database follows them.

Each archive has one, `.echod/receipts/conversation-NNN.json`. Beside them, `.echod/decisions.json` has the sessions
that the user forgot, or whose archive the user undid.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from echod.errors import os_reason
from echod.files import read_regular, write_private_durable
from echod.memory.conversation.model import archive_name
from echod.sessions.roots import SessionError, SessionRoot
from echod.state.session_log import SessionLog, SourceRecord, SourceState

RECEIPTS: Final = ".echod/receipts"
DECISIONS: Final = ".echod/decisions.json"
SCHEMA: Final = 1

_MAX_RECEIPT_BYTES: Final = 64 << 20


class SummaryKind(StrEnum):
    """Where the summary of an archive is from. `PENDING`: extracted so far, and the user's command is to be asked."""

    EXTRACTED = "extracted"
    MODEL = "model"
    PENDING = "pending"


class SourceRange(NamedTuple):
    """The part of a transcript that an archive was made of, with its SHA-256 and the digest of its last bytes."""

    path: str
    start: int
    end: int
    sha256: str
    tail: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receipt of an archive.

    Attributes:
        archive: its number.
        job: the job that last wrote it.
        agent: the program whose transcript it is: claude-code, codex, host or history.
        sources: the parts of transcripts, in order.
        messages: the messages of the user and the assistant in it, as its front matter has it.
        records, messages_in, messages_out, prompts: how many records were read, how many of them are messages, how many
            were written, and how many typed texts are among them.
        skipped: how many records added nothing, by reason.
        redactions: how many secrets were replaced, by kind.
        summary: one of `SummaryKind`; `attempts` and `attempted_at` are about the user's command.
        listed: whether EPHEMERAL.md got an entry. That of a checkpoint waits for the end of its session.
        digest: the state of `ConversationDigest`.
        last_speaker, last_group: the state in which the body ends.
        held: prompts that wait in the host's queue, by text.
        keys: the records in it.
    """

    archive: int
    job: int | None
    session_id: str
    source: str
    agent: str
    project: str
    at: float
    sources: tuple[SourceRange, ...] = ()
    messages: int = 0
    records: int = 0
    messages_in: int = 0
    messages_out: int = 0
    prompts: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    redactions: Mapping[str, int] = field(default_factory=dict)
    summary: SummaryKind = SummaryKind.EXTRACTED
    attempts: int = 0
    attempted_at: float = 0.0
    continues: int | None = None
    listed: bool = True
    digest: Mapping[str, Any] = field(default_factory=dict)
    last_speaker: str = ""
    last_group: str = ""
    held: Mapping[str, Any] = field(default_factory=dict)
    keys: tuple[int, ...] = ()
    schema: int = SCHEMA

    @property
    def source_bytes(self) -> int:
        """The number of bytes of transcripts that it was made of."""
        return sum(part.end - part.start for part in self.sources)

    def encode(self) -> bytes:
        """Return the content of the receipt's file."""
        values = asdict(self)
        values["keys"] = base64.b85encode(struct.pack(f">{len(self.keys)}q", *self.keys)).decode()
        values["sources"] = [part._asdict() for part in self.sources]
        return json.dumps(values, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n"


def receipt_path(number: int) -> str:
    """Return the path of a receipt relative to the directory."""
    return f"{RECEIPTS}/{archive_name(number).removesuffix('.md')}.json"


def read_receipt(root: SessionRoot, number: int) -> Receipt | None:
    """Return the receipt of an archive; None without one, as for archives of other programs.

    Raises:
        SessionError: it cannot be read.
    """
    path = root.memory / receipt_path(number)
    try:
        return _decode(read_regular(path, _MAX_RECEIPT_BYTES, follow_symlinks=False))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {os_reason(error)}.") from error
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise SessionError(f"{path} is damaged. Move it away; the archive does not depend on it.") from error


def _decode(data: bytes) -> Receipt:
    values = json.loads(data)
    packed = base64.b85decode(values["keys"])
    sources = tuple(SourceRange(**part) for part in values["sources"])
    known = {name: values[name] for name in Receipt.__slots__ if name in values}
    known["summary"] = SummaryKind(known["summary"])
    return Receipt(**{**known, "sources": sources, "keys": struct.unpack(f">{len(packed) // 8}q", packed)})


def read_receipts(root: SessionRoot) -> tuple[Receipt, ...]:
    """Return all receipts of archives that still exist, by number.

    Raises:
        SessionError: one cannot be read.
    """
    return tuple(receipt for number in root.archives() if (receipt := read_receipt(root, number)) is not None)


def session_receipts(root: SessionRoot, session_id: str, numbers: Sequence[int]) -> tuple[Receipt, ...]:
    """Return the receipts of a session among these archives, by number."""
    found = (read_receipt(root, number) for number in numbers)
    return tuple(receipt for receipt in found if receipt is not None and receipt.session_id == session_id)


class Decision(NamedTuple):
    """The user's decision about a session: it was forgotten, or its archive was undone.

    `sources` are its transcripts, each with path, size and modification time in nanoseconds.
    """

    session_id: str
    state: SourceState
    at: float
    sources: tuple[tuple[str, int, int], ...] = ()


def read_decisions(root: SessionRoot) -> dict[str, Decision]:
    """Return the decisions by session.

    Raises:
        SessionError: the file cannot be read.
    """
    path = root.memory / DECISIONS
    try:
        values = json.loads(read_regular(path, _MAX_RECEIPT_BYTES, follow_symlinks=False))
        return {
            session: Decision(
                session, SourceState(one["state"]), float(one["at"]), tuple((p, s, m) for p, s, m in one["sources"])
            )
            for session, one in values.items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {os_reason(error)}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        text = f"{path} is damaged. Move it away; forgotten sessions may then be archived again."
        raise SessionError(text) from error


def write_decision(root: SessionRoot, decision: Decision | None, *, session_id: str = "") -> None:
    """Record a decision, or withdraw that about a session."""
    decisions = read_decisions(root)
    if decision is None:
        if decisions.pop(session_id, None) is None:
            return
    else:
        decisions[decision.session_id] = decision
    plain = {
        session: {"state": one.state.value, "at": one.at, "sources": [list(source) for source in one.sources]}
        for session, one in decisions.items()
    }
    write_private_durable(root.memory / DECISIONS, json.dumps(plain, indent=1).encode())


# The database


def receipts_version(root: SessionRoot) -> str:
    """Return a version of the receipts and decisions, which changes with each of them."""
    digest = hashlib.sha256()
    for name, mtime, size in sorted(_stamps(root)):
        digest.update(f"{name}\0{mtime}\0{size}\n".encode())
    return digest.hexdigest()[:16]


def _stamps(root: SessionRoot) -> Iterator[tuple[str, int, int]]:
    try:
        with os.scandir(root.memory / RECEIPTS) as entries:
            for entry in entries:
                if entry.name.endswith(".json") and not entry.name.startswith("."):
                    status = entry.stat()
                    yield entry.name, status.st_mtime_ns, status.st_size
    except FileNotFoundError:
        pass
    try:
        status = Path(root.memory / DECISIONS).stat()
        yield "decisions", status.st_mtime_ns, status.st_size
    except FileNotFoundError:
        return


def sync_log(root: SessionRoot, session_log: SessionLog) -> None:
    """Bring the database in line with the receipts, if another process or a lost database left it behind.

    Raises:
        SessionError: a receipt cannot be read.
    """
    version = receipts_version(root)
    if session_log.root_version(root.key) == version:
        return
    receipts = read_receipts(root)
    sources = {source.path: source for receipt in receipts for source in _sources_of(root, receipt)}
    for decision in read_decisions(root).values():
        for path, size, mtime_ns in decision.sources:
            sources[path] = SourceRecord(
                root.key, path, "", decision.session_id, decision.state, "", None, size, mtime_ns, 0, "", decision.at
            )
    keys = ((key, receipt.archive) for receipt in receipts for key in receipt.keys)
    archives = {receipt.archive: receipt.session_id for receipt in receipts}
    session_log.replace_root(root.key, version, sources.values(), archives, keys)


def _sources_of(root: SessionRoot, receipt: Receipt) -> Iterator[SourceRecord]:
    for part in receipt.sources:
        if part.path:
            # The size is that of what was read: if the transcript has grown since, it has to be read on.
            yield SourceRecord(
                root.key, part.path, receipt.project, receipt.session_id, SourceState.ARCHIVED, "", receipt.archive,
                part.end, 0, part.end, part.tail, receipt.at,
            )  # fmt: skip

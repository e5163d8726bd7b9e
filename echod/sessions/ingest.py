"""Read a transcript, and stage what it adds to an archive: redacted, in order, in bounded memory.

A record that is in an archive of this directory already is left out: hosts copy records when a session is resumed or
forked, and write some twice. Every typed prompt is kept. A prompt that waits in the host's queue is kept too if it
never occurs as a message.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from echod.memory.conversation import claude, codex
from echod.memory.conversation.body import BodyWriter, Redacted, redact_item
from echod.memory.conversation.digest import ConversationDigest
from echod.memory.conversation.model import (
    ConversationItem,
    NotATranscriptError,
    QueuedPrompt,
    RecordFacts,
    RecordReading,
    Skipped,
    Speaker,
    TranscriptMessage,
    Utterance,
)
from echod.memory.redact import redact
from echod.sessions.lines import LineReader

MAX_DEPTH_ERRORS = (ValueError, RecursionError)
"""What a line that is no JSON, or is nested without end, raises."""


class Dialect(Protocol):
    """The records of one program's transcripts."""

    def is_record(self, value: object) -> bool:
        """Return whether a parsed line is a record of such a transcript."""

    def record_facts(self, record: Mapping[str, object]) -> RecordFacts:
        """Return the facts about the session that a record contains."""

    def read_record(self, record: Mapping[str, object]) -> RecordReading:
        """Return what a record adds to the conversation."""


class AgentDialect(NamedTuple):
    """A program and the records of its transcripts."""

    agent: str
    dialect: Dialect


DIALECTS: tuple[AgentDialect, ...] = (AgentDialect("claude-code", claude), AgentDialect("codex", codex))


@dataclass(slots=True)
class Intake:
    """What was read so far, and what it adds to the conversation.

    Attributes:
        digest: the state of the whole session, also of parts that were archived earlier.
        keys: the records that were written now.
        continued: the archives that have records of this transcript already, with the number of records.
        session_id, cwd: from the records; "" if none has them.
        agent: the program that wrote the transcript; "" while no record was recognised.
        held: prompts in the host's queue that no message repeats, by text, each with its key.
        flushed: texts of such prompts that were written, and are left out when a message repeats them.
    """

    digest: ConversationDigest
    writer: BodyWriter
    keys: list[int] = field(default_factory=list)
    continued: Counter[int] = field(default_factory=Counter)
    session_id: str = ""
    cwd: str = ""
    agent: str = ""
    records: int = 0
    messages_in: int = 0
    messages_out: int = 0
    prompts: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    redactions: Counter[str] = field(default_factory=Counter)
    last_group: str = ""
    held: dict[str, QueuedPrompt] = field(default_factory=dict)
    flushed: set[str] = field(default_factory=set)

    @property
    def last_speaker(self) -> str:
        """Whose heading came last; "" at the beginning."""
        return self.writer.last_speaker or ""

    def held_to_json(self) -> dict[str, Any]:
        """Return the prompts in the queue as JSON has them."""
        waiting = {text: [prompt.key, prompt.at] for text, prompt in self.held.items()}
        return {"waiting": waiting, "written": sorted(self.flushed)} if waiting or self.flushed else {}

    def load_held(self, values: Mapping[str, Any]) -> None:
        """Take over what `held_to_json` returned."""
        for text, (key, at) in values.get("waiting", {}).items():
            self.held[text] = QueuedPrompt(key, text, at)
        self.flushed.update(values.get("written", ()))


def without_secrets(text: str) -> Redacted:
    """Return a text without secrets."""
    redaction = redact(text)
    return Redacted(redaction.text, tuple(span.kind for span in redaction.spans))


class Ingester:
    """Reads the records of one transcript into an `Intake`, and yields the Markdown that they add.

    Args:
        intake: the state to continue.
        known: returns the archive that has a record already, or None.
    """

    def __init__(self, intake: Intake, known: Callable[[int], int | None]) -> None:
        self._intake = intake
        self._known = known
        self._seen: set[int] = set()
        self._dialect: Dialect | None = None

    def read_lines(self, reader: LineReader, *, is_complete: bool) -> Iterator[str]:
        """Yield the Markdown of a transcript. `is_complete`: nothing will be added to a last line without an end.

        Raises:
            NotATranscriptError: no line is a record of a known program.
        """
        intake = self._intake
        had_lines = False
        for line in reader.lines():
            if line.data is None:
                intake.skipped[Skipped.TOO_LONG] += 1
                continue
            text = line.data.strip(b"\x00 \t\r\n\xef\xbb\xbf")
            if not text:
                continue
            had_lines = True
            record = _parse_line(text)
            if not line.ended:
                if record is None and not is_complete:
                    break  # half written
                reader.take_rest()
            yield from self._read_value(record)
        if had_lines and not intake.agent:
            raise NotATranscriptError("none of its lines is a record of a known agent")

    def read_messages(self, messages: Iterable[TranscriptMessage]) -> Iterator[str]:
        """Yield the Markdown of messages that were read already."""
        for message in messages:
            self._intake.records += 1
            yield from self._read_message(message)

    def flush_held(self) -> Iterator[str]:
        """Yield the prompts in the host's queue that no message repeated, since the session has ended."""
        intake = self._intake
        for text, prompt in list(intake.held.items()):
            del intake.held[text]
            intake.flushed.add(text)
            item = Utterance(Speaker.USER, prompt.text)
            yield from self._write(TranscriptMessage(prompt.key, "", prompt.at, Speaker.USER, (item,)))

    def _read_value(self, record: object) -> Iterator[str]:
        intake = self._intake
        intake.records += 1
        if not isinstance(record, dict):
            intake.skipped[Skipped.MALFORMED] += 1
            return
        if self._dialect is None:
            found = next((known for known in DIALECTS if known.dialect.is_record(record)), None)
            if found is None:
                intake.skipped[Skipped.MALFORMED] += 1
                return
            self._dialect, intake.agent = found.dialect, found.agent
        facts = self._dialect.record_facts(record)
        intake.session_id = intake.session_id or facts.session_id
        intake.cwd = intake.cwd or facts.cwd
        reading = self._dialect.read_record(record)
        match reading:
            case TranscriptMessage():
                yield from self._read_message(reading)
            case QueuedPrompt():
                self._hold(reading)
            case Skipped():
                if reading is not Skipped.OTHER:
                    intake.messages_in += 1
                intake.skipped[reading] += 1

    def _hold(self, prompt: QueuedPrompt) -> None:
        intake = self._intake
        intake.messages_in += 1
        if prompt.key in self._seen or self._known(prompt.key) is not None:
            intake.skipped[Skipped.DUPLICATE] += 1
            return
        self._seen.add(prompt.key)
        intake.held[_comparable(prompt.text)] = prompt

    def _read_message(self, message: TranscriptMessage) -> Iterator[str]:
        intake = self._intake
        intake.messages_in += 1
        if message.key in self._seen:
            intake.skipped[Skipped.DUPLICATE] += 1
            return
        self._seen.add(message.key)
        if (archive := self._known(message.key)) is not None:
            intake.skipped[Skipped.DUPLICATE] += 1
            intake.continued[archive] += 1
            return
        if message.speaker is Speaker.USER:
            text = _comparable("\n\n".join(item.text for item in message.items if isinstance(item, Utterance)))
            intake.held.pop(text, None)
            if text and text in intake.flushed:
                intake.flushed.discard(text)
                intake.skipped[Skipped.DUPLICATE] += 1
                return
        yield from self._write(message)

    def _write(self, message: TranscriptMessage) -> Iterator[str]:
        intake = self._intake
        items: list[ConversationItem] = []
        for item in message.items:
            clean, kinds = redact_item(item, without_secrets)
            intake.redactions.update(kinds)
            intake.digest.see_item(clean)
            items.append(clean)
        intake.digest.see_time(message.at)
        intake.keys.append(message.key)
        intake.messages_out += 1
        intake.prompts += sum(
            isinstance(item, Utterance) and item.typed and item.speaker is Speaker.USER for item in message.items
        )
        if message.counts and not (message.group and message.group == intake.last_group):
            intake.digest.messages += 1
        if message.group:
            intake.last_group = message.group
        yield from intake.writer.write(items)


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PEEK_LINES, _PEEK_BYTES = 400, 4 << 20


def peek(file: BinaryIO) -> RecordFacts:
    """Return the session and the directory that the first records of a transcript name; "" where they name none."""
    found = RecordFacts()
    reader = LineReader(file, 0)
    for number, line in enumerate(reader.lines()):
        if number == _PEEK_LINES or reader.read_bytes > _PEEK_BYTES or (found.session_id and found.cwd):
            break
        record = None if line.data is None else _parse_line(line.data.strip(b"\x00 \t\r\n\xef\xbb\xbf"))
        dialect = next((known.dialect for known in DIALECTS if known.dialect.is_record(record)), None)
        if dialect is not None and isinstance(record, dict):
            facts = dialect.record_facts(record)
            found = RecordFacts(found.session_id or facts.session_id, found.cwd or facts.cwd)
    return found


def session_id_of(path: Path, facts: RecordFacts) -> str:
    """Return the id of a session: the name of its transcript if that is one, else what its records name."""
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    if _UUID.fullmatch(stem):
        return stem
    return facts.session_id or stem


def _parse_line(text: bytes) -> object:
    try:
        return json.loads(text.decode("utf-8", "replace"))
    except MAX_DEPTH_ERRORS:
        return None


def _comparable(text: str) -> str:
    return " ".join(text.split())


def copy_chunks(file: BinaryIO, start: int, end: int, chunk_bytes: int) -> Iterator[bytes]:
    """Yield a part of a file in pieces."""
    file.seek(start)
    remaining = end - start
    while remaining > 0 and (chunk := file.read(min(chunk_bytes, remaining))):
        remaining -= len(chunk)
        yield chunk

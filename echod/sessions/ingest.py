"""Read a transcript, and stage what it adds to an archive: redacted, in order, in bounded memory.

A record that is in an archive of this directory already is left out: hosts copy records when a session is resumed or
forked, and write some twice. Every typed prompt is kept. A prompt that waits in the host's queue is kept too if it
never occurs as a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from echod.memory.conversation.archive import BodyWriter, Redacted, redact_item
from echod.memory.conversation.digest import ConversationDigest
from echod.memory.conversation.model import (
    ConversationItem,
    NotATranscriptError,
    QueuedPrompt,
    Skipped,
    Speaker,
    TranscriptMessage,
    Utterance,
)
from echod.memory.redact import redact
from echod.sessions.dialects import DIALECTS, LINE_PADDING, Dialect, LineReader, parse_line


@dataclass(slots=True)
class Intake:
    """The part of a transcript that was read, and its addition to the conversation.

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
        self._in_sub_agent = False
        self._title: str | None = None

    def read_sub_agent(self, reader: LineReader, title: str, *, is_complete: bool) -> Iterator[str]:
        """Yield the Markdown of the transcript of a sub-agent, under a heading with its title."""
        self._in_sub_agent = True
        self._title = without_secrets(title).text
        yield from self.read_lines(reader, is_complete=is_complete)
        self._in_sub_agent, self._title = False, None

    def count_unreadable(self) -> None:
        """Count a sub-agent whose transcript cannot be read."""
        self._in_sub_agent, self._title = False, None
        self._intake.skipped[Skipped.UNREADABLE] += 1

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
            text = line.data.strip(LINE_PADDING)
            if not text:
                continue
            had_lines = True
            record = parse_line(text)
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
        reading = self._dialect.read_record({**record, "isSidechain": True} if self._in_sub_agent else record)
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
            if message.speaker is Speaker.SUB_AGENT:
                intake.digest.see_sub_agent_item(clean)
            else:
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
        if message.speaker is Speaker.SUB_AGENT:
            title, self._title = self._title, None
            yield from intake.writer.write_sub_agent(items, title)
        else:
            yield from intake.writer.write(items)


def _comparable(text: str) -> str:
    return " ".join(text.split())


def copy_chunks(file: BinaryIO, start: int, end: int, chunk_bytes: int) -> Iterator[bytes]:
    """Yield a part of a file in pieces."""
    file.seek(start)
    remaining = end - start
    while remaining > 0 and (chunk := file.read(min(chunk_bytes, remaining))):
        remaining -= len(chunk)
        yield chunk

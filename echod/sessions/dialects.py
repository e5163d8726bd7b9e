"""The transcripts that can be read, and the facts in their first records. Light: nothing is redacted here.

A transcript can have 200 MB, and one line of it an image of any size. Long runs of base64 are left out while they are
read, since no one typed them. A line that is still too long afterwards is skipped and counted. The last line may be
half written: it counts only if it ends, or if the caller knows that nothing more comes.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol, cast

from echod.files import open_regular
from echod.lazy import lazy_imports, lazy_pattern
from echod.memory.conversation import claude, codex
from echod.memory.conversation.model import RecordFacts, RecordReading

with lazy_imports(__name__):
    import zstandard  # an extra, and few transcripts are compressed

CHUNK_BYTES: Final = 1 << 20
MAX_LINE_BYTES: Final = 64 << 20
ELIDE_FROM_BYTES: Final = 1 << 20
"""Only in longer lines base64 is left out."""

TAIL_BYTES: Final = 4096
"""The digest of so many bytes before an offset shows whether a file is still the one that was read."""

_MIN_RUN: Final = 64 << 10
_RUN: Final = lazy_pattern(rb"[A-Za-z0-9+/=_-]{%d,}" % _MIN_RUN)
_RUN_CONTINUED: Final = lazy_pattern(rb"[A-Za-z0-9+/=_-]*")
_ELIDED: Final = b"(left out)"


class TranscriptLine(NamedTuple):
    """A line without its line end (None if it is too long), and whether it has one."""

    data: bytes | None
    ended: bool


class LineReader:
    """Reads lines from an offset.

    Attributes:
        offset: the end of the last line that has an end; after `take_rest`, the end of the file.
        read_bytes: how much was read from the file.
    """

    def __init__(self, file: BinaryIO, start: int) -> None:
        self._file = file
        self._start = start
        self._rest = 0
        self._digest = hashlib.sha256()
        self._rest_digest = self._digest
        self.offset = start
        self.read_bytes = 0

    def lines(self) -> Iterator[TranscriptLine]:
        """Yield every line, the last one also if it has no end."""
        self._file.seek(self._start)
        line = _Line()
        while chunk := self._file.read(CHUNK_BYTES):
            self.read_bytes += len(chunk)
            begin = 0
            while (newline := chunk.find(b"\n", begin)) >= 0:
                line.add(chunk[begin:newline])
                self._digest.update(chunk[begin : newline + 1])
                self.offset += self._rest + newline + 1 - begin
                self._rest = 0
                yield TranscriptLine(line.finish(), ended=True)
                line = _Line()
                begin = newline + 1
            if begin < len(chunk):
                line.add(chunk[begin:])
                if not self._rest:
                    self._rest_digest = self._digest.copy()
                self._rest += len(chunk) - begin
                self._digest.update(chunk[begin:])
        if self._rest:
            yield TranscriptLine(line.finish(), ended=False)

    def take_rest(self) -> None:
        """Count the last line, which has no end, as read."""
        self.offset += self._rest
        self._rest = 0

    def sha256(self) -> str:
        """Return the SHA-256 of the bytes from the start to `offset`."""
        return (self._rest_digest if self._rest else self._digest).hexdigest()


class _Line:
    """The pieces of a line, without long runs of base64 if the line is long."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0
        self._is_long = self._in_run = self._too_long = False

    def add(self, piece: bytes) -> None:
        if self._in_run:
            end = _match_end(piece)
            self._in_run = end == len(piece)
            piece = piece[end:]
        if not self._is_long and self._length + len(piece) > ELIDE_FROM_BYTES:
            self._is_long = True
            self._pieces = [_RUN.sub(_ELIDED, known) for known in self._pieces]
            self._in_run = bool(self._pieces) and self._pieces[-1].endswith(_ELIDED)
            if self._in_run:
                end = _match_end(piece)
                self._in_run = end == len(piece)
                piece = piece[end:]
        if self._is_long:
            piece = _RUN.sub(_ELIDED, piece)
            self._in_run = self._in_run or piece.endswith(_ELIDED)
        self._length = sum(map(len, self._pieces)) + len(piece) if self._is_long else self._length + len(piece)
        self._too_long = self._too_long or self._length > MAX_LINE_BYTES
        self._pieces = [] if self._too_long else [*self._pieces, piece]

    def finish(self) -> bytes | None:
        return None if self._too_long else b"".join(self._pieces)


def _match_end(data: bytes) -> int:
    match = _RUN_CONTINUED.match(data)
    return match.end() if match else 0


def tail_digest(file: BinaryIO, offset: int) -> str:
    """Return the digest of the bytes before an offset."""
    start = max(0, offset - TAIL_BYTES)
    file.seek(start)
    return hashlib.sha256(file.read(offset - start)).hexdigest()[:16]


COMPRESSED_SUFFIX = ".zst"

LINE_PADDING = b"\x00 \t\r\n\xef\xbb\xbf"
"""Bytes around a record that are no part of it: a crash leaves NULs, an editor a byte order mark."""


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


class UnreadableTranscriptError(Exception):
    """A compressed transcript cannot be decompressed. The message is half a sentence."""


def open_transcript(path: Path) -> BinaryIO:
    """Open a transcript for reading. A compressed one is decompressed into a temporary file.

    Raises:
        OSError: it cannot be read, or is no regular file.
        UnreadableTranscriptError: it is damaged, or the library for its compression is not installed.
    """
    file = open_regular(path)
    if path.suffix != COMPRESSED_SUFFIX:
        return file
    with file:
        return _decompress(file)


def _decompress(file: BinaryIO) -> BinaryIO:
    try:
        decompressor = zstandard.ZstdDecompressor()
    except ImportError as error:
        raise UnreadableTranscriptError("it is compressed; to read it, install echod with its extra `zstd`") from error
    target = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115  the caller closes it
    try:
        decompressor.copy_stream(file, target)
    except zstandard.ZstdError as error:
        target.close()
        raise UnreadableTranscriptError("it is damaged") from error
    target.seek(0)
    return target


_UUID = lazy_pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PEEK_LINES, _PEEK_BYTES = 400, 4 << 20


def peek(file: BinaryIO) -> RecordFacts:
    """Return the session and the directory that the first records of a transcript name; "" where they name none."""
    found = RecordFacts()
    reader = LineReader(file, 0)
    for number, line in enumerate(reader.lines()):
        if number == _PEEK_LINES or reader.read_bytes > _PEEK_BYTES or (found.session_id and found.cwd):
            break
        record = None if line.data is None else parse_line(line.data.strip(LINE_PADDING))
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


def parse_line(text: bytes) -> object:
    """Return the JSON in a line; None if it is none, or is nested without end."""
    try:
        return json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None

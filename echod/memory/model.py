"""Define the values of a memory file: layers, forms, fields, entries, blocks and documents.

`forms` makes entries of text, `markdown` finds where blocks begin, `document` reads whole files.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

DEFAULT_CONFIDENCE = 0.5
"""The confidence of an entry or finding that has none."""


class Layer(StrEnum):
    """The kind of an entry, from permanent to fleeting."""

    ETCHED = "etched"
    NOTES = "notes"
    INSCRIBED = "inscribed"
    OBSERVATIONS = "observations"
    TRACED = "traced"

    @property
    def protected(self) -> bool:
        """Only the user changes or removes entries of this layer."""
        return self is Layer.ETCHED or self is Layer.NOTES


class SolutionCategory(StrEnum):
    """The directories below `docs/solutions/`."""

    BUILD_ERRORS = "build-errors"
    TEST_FAILURES = "test-failures"
    RUNTIME_ERRORS = "runtime-errors"
    CONFIGURATION = "configuration"
    PERFORMANCE = "performance"
    SECURITY = "security"
    ARCHITECTURE = "architecture"
    TOOLING = "tooling"


class Form(StrEnum):
    """The shapes of entries in real files (docs/formats.md). A form describes the look of an entry, not its layer."""

    BULLET = "bullet"
    LAYER_HEADING = "layer-heading"
    OBSERVATION = "observation"
    WRITER = "writer"
    NOTES = "notes"


class UnreadableKind(StrEnum):
    """The reasons why a file must not be changed."""

    INVALID_UTF8 = "invalid-utf8"
    OVER_SIZE = "over-size"
    FUTURE_SCHEMA = "future-schema"
    CONFLICT_MARKERS = "conflict-markers"


class Span(NamedTuple):
    """Character offsets in a block's text, end exclusive."""

    start: int
    end: int


class Field(NamedTuple):
    """One metadata line of an entry: its lower-case name, its value as written, and the position of the value.

    The value of a bullet that continues in indented lines includes those lines.
    """

    name: str
    value: str
    span: Span


HIGH_CONFIDENCE: Final = 0.9
"""The confidence that the word HIGH means."""


class Entry(NamedTuple):
    """The metadata of an entry. `None` means that the entry has no such value."""

    form: Form
    layer: Layer | None  # the layer; `None` for a missing or unknown one (the block is then protected)
    title: str  # the heading without layer word, type word, date and marks
    # The word before the title where the form has one (`Pattern`, `Decision`, ...; `Task` in observations).
    kind: str | None
    heading_date: date | None  # the date in the heading, else the `date` field
    verified: date | None
    confidence: float | None  # 0..1; words are HIGH 0.9, MEDIUM 0.75, LOW 0.4
    source: str | None  # the source without its back quotes and without prose after them
    evidence: str | None  # the evidence field as written
    supersedes: str | None  # the title this entry replaces; `None` also where the value is "none"
    # Span of the learning in the block's text: everything after heading and metadata, without blank lines and
    # separators (`---`) around it.
    body: Span
    fields: tuple[Field, ...]  # every metadata line in file order; of repeated names the first one counts

    @property
    def full_title(self) -> str:
        """The title with the word before it, as `Pattern: title`."""
        return full_title(self.kind, self.title)

    @property
    def protected(self) -> bool:
        """Only the user changes or removes this entry: its layer is protected or unknown."""
        return self.layer is None or self.layer.protected

    @property
    def is_confident(self) -> bool:
        """Its confidence is HIGH or more."""
        return (self.confidence or 0) >= HIGH_CONFIDENCE

    @property
    def is_lasting(self) -> bool:
        """It is etched, or inscribed with a high confidence, so that a solution may be made of it."""
        return self.layer is Layer.ETCHED or (self.layer is Layer.INSCRIBED and self.is_confident)


class AnyBlock(Protocol):
    """A `Block`, or a `VersionBlock` of `document`, whose entry is read when it is first needed."""

    @property
    def text(self) -> str:
        """The exact source text."""

    @property
    def entry(self) -> Entry | None:
        """The entry; None for an opaque block."""

    @property
    def body(self) -> str:
        """The learning of the entry as written; empty for an opaque block."""


class Block(NamedTuple):
    """A part of a memory file with its exact source text; `entry` is None for an opaque block."""

    text: str
    entry: Entry | None

    @property
    def body(self) -> str:
        """The learning of the block's entry as written; empty for an opaque block."""
        return self.text[self.entry.body.start : self.entry.body.end] if self.entry else ""

    @property
    def protected(self) -> bool:
        """Only the user changes or removes this block: it is opaque, or its entry is protected."""
        return self.entry is None or self.entry.protected


class Document:
    """A memory file that was understood. `preamble` is all text before the first block.

    A value like the others, but no named tuple, since those cannot be cached weakly.
    """

    __slots__ = ("__weakref__", "blocks", "preamble")

    def __init__(self, preamble: str, blocks: tuple[Block, ...]) -> None:
        self.preamble: Final = preamble
        self.blocks: Final = blocks

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Document):
            return NotImplemented
        return self.preamble == other.preamble and self.blocks == other.blocks

    def __hash__(self) -> int:
        return hash((self.preamble, self.blocks))

    def __repr__(self) -> str:
        return f"Document({self.preamble!r}, {self.blocks!r})"

    def with_blocks(self, blocks: Iterable[Block]) -> Document:
        """Return a document with this preamble and other blocks."""
        return Document(self.preamble, tuple(blocks))

    def render(self) -> bytes:
        """Return the exact bytes this document was parsed from (or would be written as)."""
        return (self.preamble + "".join([block.text for block in self.blocks])).encode()


class Unreadable(NamedTuple):
    """A file that must not be overwritten; `reason` is a sentence for the user."""

    kind: UnreadableKind
    reason: str
    data: bytes

    def render(self) -> bytes:
        """Return the file's bytes unchanged."""
        return self.data


def full_title(kind: str | None, title: str) -> str:
    """Return a title with the word before it, as `Pattern: title`."""
    return f"{kind}: {title}" if kind else title

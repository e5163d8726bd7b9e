"""The values that every reader of a memory file shares: forms, fields, entries, blocks, documents.

How text becomes one of them is told in `forms` (entries), `scan` (where blocks begin) and `document` (whole files).

The layers of entries; apart from the other values of a memory file, since settings are told by them too.

How much of a file is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import NamedTuple


class Layer(StrEnum):
    """How long an entry is meant to live, from permanent to fleeting."""

    ETCHED = "etched"
    NOTES = "notes"
    INSCRIBED = "inscribed"
    OBSERVATIONS = "observations"
    TRACED = "traced"

    @property
    def protected(self) -> bool:
        """Whether only the user changes entries of this layer."""
        return self in (Layer.ETCHED, Layer.NOTES)


class Form(StrEnum):
    """The shapes that entries have in real files (docs/formats.md). A form says how an entry looks, not its layer."""

    BULLET = "bullet"
    LAYER_HEADING = "layer-heading"
    OBSERVATION = "observation"
    WRITER = "writer"
    NOTES = "notes"


class UnreadableKind(StrEnum):
    """Why a file must not be touched."""

    INVALID_UTF8 = "invalid-utf8"
    OVER_SIZE = "over-size"
    FUTURE_SCHEMA = "future-schema"
    CONFLICT_MARKERS = "conflict-markers"


class Span(NamedTuple):
    """Character offsets in a block's text, end exclusive."""

    start: int
    end: int


class Field(NamedTuple):
    """One metadata line of an entry: its lower-case name, its value as written, and where the value stands.

    The value of a bullet that goes on in indented lines includes those lines.
    """

    name: str
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class Entry:
    """What the metadata of an entry says. `None` means that the entry does not say it.

    Attributes:
        layer: the layer; `None` where the entry names none, or one that is unknown (the block is then protected).
        title: the heading without layer word, type word, date and marks.
        kind: the word before the title where the form has one (`Pattern`, `Decision`, ...; `Task` in observations).
        heading_date: the date in the heading, else the `date` field.
        confidence: 0..1; words are HIGH 0.9, MEDIUM 0.75, LOW 0.4.
        source: the source without its back quotes and without prose after them.
        evidence: the evidence field as written.
        supersedes: the title this entry replaces; `None` also where it says "none".
        body: span of the learning in the block's text: everything after heading and metadata, without blank
            lines and separators (`---`) around it.
        fields: every metadata line in file order; of repeated names the first one counts.
    """

    form: Form
    layer: Layer | None
    title: str
    kind: str | None
    heading_date: date | None
    verified: date | None
    confidence: float | None
    source: str | None
    evidence: str | None
    supersedes: str | None
    body: Span
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a memory file with its exact source text; `entry` is None where it is opaque."""

    text: str
    entry: Entry | None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Document:
    """A memory file that was understood. `preamble` is all before the first block."""

    preamble: str
    blocks: tuple[Block, ...]

    def render(self) -> bytes:
        """The exact bytes this document was parsed from (or would be written as)."""
        return (self.preamble + "".join([block.text for block in self.blocks])).encode()


class Unreadable(NamedTuple):
    """A file that must not be written over; `reason` is a sentence for the person."""

    kind: UnreadableKind
    reason: str
    data: bytes

    def render(self) -> bytes:
        """The bytes as they came."""
        return self.data


MAX_FILE_BYTES = 10 * 1024 * 1024
"""Bytes of a memory, knowledge or findings file. Other readers of these files stop at the same size."""

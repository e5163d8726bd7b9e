"""What `echod show` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from echod.contract.status import SCHEMA


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """An entry of a memory file. `layer` is null if it is unknown, dates are local, `confidence` is 0..1 or null."""

    id: str
    role: str
    layer: str | None
    title: str
    date: str | None
    confidence: float | None
    verified: str | None
    lines: int
    form: str
    store: str


@dataclass(frozen=True, slots=True)
class ShownRole:
    """A role at a glance. `lines` is null if its memory file cannot be read; `problem` says why.

    The global memory is the role "". It and the doc packs have no `limit`.
    """

    store: str
    name: str
    lines: int | None
    limit: int | None
    entries: int
    layers: dict[str, int]
    oldest: str | None
    newest: str | None
    findings: int
    archived: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ArchivedText:
    """A text in an archive. `job` put it there by `rule`; `redacted`: secrets were taken out before."""

    file: str
    date: str
    rule: str
    job: int | None
    redacted: bool
    text: str


@dataclass(frozen=True, slots=True)
class JobTouch:
    """A job that wrote an entry: it `added`, `changed` or `removed` it. `job` is null for what needed none."""

    job: int | None
    kind: str
    at: float
    did: str


@dataclass(frozen=True, slots=True)
class EntryHistory:
    """What is known of one entry. `text` is null if it stands in no memory file; `pinned` is the last day of a pin."""

    id: str
    store: str
    role: str
    text: str | None
    first_seen: str | None
    references: int
    last_reference: str | None
    pinned: str | None
    jobs: tuple[JobTouch, ...]
    archived: tuple[ArchivedText, ...]


@dataclass(frozen=True, slots=True)
class ShowReport:
    """`echod show`; `entry` is null unless one was asked for."""

    entries: tuple[ShownEntry, ...] = ()
    roles: tuple[ShownRole, ...] = ()
    entry: EntryHistory | None = None
    schema: int = SCHEMA

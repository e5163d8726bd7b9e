"""An entry of a project, written again for all projects of the user.

    ## Inscribed — title (2026-11-20)

    **Source**: `elevated:my-project@reviewer`
    **Domain**: backend

    - What was learnt.

Whatever layer it had, it is inscribed there, as other writers of the global memory have it. Secrets are taken out.

Where an entry of the global memory comes from, as its source says.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from datetime import date
from typing import NamedTuple

from echod.memory.compose import ComposeError, with_entries
from echod.memory.document import parse_block
from echod.memory.findings import Finding
from echod.memory.identity import entry_ids, normalise_title
from echod.memory.model import Block, Document, Entry, Form, Layer, Unreadable
from echod.memory.redact import redact_entry

_ELEVATED = re.compile(r"elevated:(?P<project>.+)@(?P<role>[^@]*)")
_PACK = re.compile(r"doc-pack:(?P<stack>[^@\s]+)@(?P<version>\S+)")
_UNKNOWN = "general"


class FromProject(NamedTuple):
    """A person elevated it from the role of a project."""

    project: str
    role: str


class FromPack(NamedTuple):
    """It came with a doc pack."""

    stack: str
    version: str


Provenance = FromProject | FromPack | None
"""None: its source says neither."""


def provenance(entry: Entry) -> Provenance:
    """Where an entry comes from."""
    source = entry.source or ""
    if found := _ELEVATED.fullmatch(source):
        return FromProject(found["project"], found["role"])
    if found := _PACK.fullmatch(source):
        return FromPack(found["stack"], found["version"])
    return None


def elevated_source(project: str, role: str) -> str:
    """The source of an entry that is elevated from a role of the project of that name."""
    return f"elevated:{re.sub(r'[^A-Za-z0-9._-]+', '-', project) or 'project'}@{role}"


def domain_of(entry: Entry) -> str:
    """The entry's domain as written, in lower case; `general` where it names none."""
    return field_of(entry, "domain").lower() or _UNKNOWN


def field_of(entry: Entry, name: str) -> str:
    """The first value of a metadata line of that name; empty where there is none."""
    return next((field.value.strip() for field in entry.fields if field.name == name), "")


def belongs_to(entry: Entry | None, stack: str) -> bool:
    """Whether a pack of that name brought the entry."""
    found = provenance(entry) if entry else None
    return isinstance(found, FromPack) and found.stack == stack


def domains_in(document: Document) -> tuple[str, ...]:
    """The domains of the entries, the most frequent first."""
    counted = Counter(domain_of(block.entry) for block in document.blocks if block.entry)
    return tuple(domain for domain, _ in counted.most_common())


GLOBAL_ROLE = ""
"""The role of the global memory file in ids: it lies in no role's directory."""

_DEFAULT_CONFIDENCE = 0.5


class Elevation(NamedTuple):
    """What is to be elevated: an entry, where it stands, the domain it is for, and the local day."""

    block: Block
    project: str
    role: str
    domain: str
    day: date


class Unfit(NamedTuple):
    """Why an entry is not elevated: a sentence without its full stop."""

    reason: str


class Elevated(NamedTuple):
    """The global memory with the entry at its end. `redacted`: a secret was taken out of it."""

    document: Document
    id: str
    redacted: bool


def unfit(block: Block) -> Unfit | None:
    """Why an entry may not be elevated, wherever to; None if it may."""
    if block.entry is None:
        return Unfit("it is no entry")
    if provenance(block.entry) is not None:
        return Unfit("it came from the global memory itself")
    if block.entry.layer is Layer.OBSERVATIONS:
        return Unfit("it is an observation, which nobody has confirmed; echod raise makes it more than that")
    if block.entry.layer is None:
        return Unfit("its layer is not known")
    return None


def elevated(memory: Document, elevation: Elevation) -> Elevated | Unfit:
    """Write the entry at the end of the global memory; all that was in it reads as before."""
    if (reason := unfit(elevation.block)) is not None:
        return reason
    cleaned = redact_entry(elevation.block.text)
    block = parse_block(cleaned.text)
    if block.entry is None:
        return Unfit("without its secrets it no longer reads as an entry")
    finding = _finding(block, block.entry, elevation)
    if (twin := _standing(memory, block, finding)) is not None:
        return Unfit(f"it is in the global memory already, as {entry_ids(GLOBAL_ROLE, memory)[twin]}")
    try:
        after = with_entries(memory, [finding], Form.LAYER_HEADING)
    except ComposeError:
        return Unfit("a code block or comment that is never closed in the global memory would swallow it")
    if isinstance(after, Unreadable):
        return Unfit(after.reason.rstrip("."))
    return Elevated(after, entry_ids(GLOBAL_ROLE, after)[-1] or "", bool(cleaned.spans))


def _finding(block: Block, entry: Entry, elevation: Elevation) -> Finding:
    category = field_of(entry, "category")
    return Finding(
        key=_fingerprint(block),
        title=entry.title,
        kind=entry.kind,
        heading_date=elevation.day,
        layer=Layer.INSCRIBED,
        claimed=None,
        confidence=_DEFAULT_CONFIDENCE if entry.confidence is None else entry.confidence,
        source=elevated_source(elevation.project, elevation.role),
        evidence=entry.evidence,
        verified=entry.verified or entry.heading_date or elevation.day,
        supersedes=None,
        fields=(*((("category", category),) if category else ()), ("domain", elevation.domain)),
        text=block.text[entry.body.start : entry.body.end],
    )


def _standing(memory: Document, block: Block, finding: Finding) -> int | None:
    """Where the same words stand already, or an entry of the same title from the same role of the same project."""
    title = f"{finding.kind}: {finding.title}" if finding.kind else finding.title
    same = (normalise_title(title), finding.source)
    for position, there in enumerate(memory.blocks):
        if there.entry is None:
            continue
        named = (normalise_title(there.entry.title), there.entry.source)
        if named == same or _fingerprint(there) == _fingerprint(block):
            return position
    return None


def _fingerprint(block: Block) -> str:
    """Names what an entry says, whatever its case, blanks and bullets."""
    entry = block.entry
    body = block.text[entry.body.start : entry.body.end] if entry else block.text
    words = "".join(body.casefold().split()).lstrip("-*+")
    return hashlib.sha256(words.encode()).hexdigest()

"""Where an entry of the global memory comes from, as its source says."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from echod.memory.model import Document, Entry

_ELEVATED = re.compile(r"elevated:(?P<project>.+)@(?P<role>[^@]*)")
_PACK = re.compile(r"doc-pack:(?P<stack>[^@\s]+)@(?P<version>\S+)")
_UNKNOWN = "general"


@dataclass(frozen=True, slots=True)
class FromProject:
    """A person elevated it from the role of a project."""

    project: str
    role: str


@dataclass(frozen=True, slots=True)
class FromPack:
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

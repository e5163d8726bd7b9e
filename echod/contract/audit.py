"""What `echod audit` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from echod.contract.status import SCHEMA


@dataclass(frozen=True, slots=True)
class AuditedPack:
    """An installed doc pack: how many entries it has, and how many of them it did not bring."""

    name: str
    version: str | None
    installed_at: str | None
    domains: tuple[str, ...]
    entries: int
    added: int


@dataclass(frozen=True, slots=True)
class AuditedEntry:
    """An entry of the global memory and where it comes from; `project` is None where its source does not say."""

    id: str
    title: str
    domain: str
    project: str | None
    role: str | None
    date: str | None
    source: str | None
    file: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """`echod audit`: where everything in the global memory comes from; `unknown` are entries that do not say it."""

    packs: tuple[AuditedPack, ...] = ()
    elevated: tuple[AuditedEntry, ...] = ()
    unknown: tuple[AuditedEntry, ...] = ()
    problems: tuple[str, ...] = ()
    schema: int = SCHEMA

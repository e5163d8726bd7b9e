"""What `echod scrub` prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from echod.contract.status import SCHEMA


@dataclass(frozen=True, slots=True)
class ScrubPlace:
    """Where a secret stands in a file, and of which kind it is; `confirm`: its entry is etched or a note."""

    line: int
    kind: str
    entry: str | None
    confirm: bool


@dataclass(frozen=True, slots=True)
class ScrubFile:
    """A file with secrets as it was found, or one that could not be looked at (`problem`)."""

    path: str
    tracked: bool
    places: tuple[ScrubPlace, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """`echod scrub`: what was found, how many places were cleared, and how many are left."""

    project: str
    files: tuple[ScrubFile, ...] = ()
    stripped: int = 0
    left: int = 0
    schema: int = SCHEMA

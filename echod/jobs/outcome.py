"""How a run of a job ended, in words for the person."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """It did what there was to do; `changed` is false where there was nothing (or nothing may be written)."""

    summary: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Deferred:
    """It has to wait: `reason` says for what, `until` (Unix seconds) when to look again at the latest."""

    reason: str
    until: float


@dataclass(frozen=True, slots=True)
class Blocked:
    """Trying again is pointless until the input changes; a person may have to act."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It went wrong; it will be tried again with growing pauses."""

    error: str


Outcome = Done | Deferred | Blocked | Failed

"""The numbers of the commit engine, with their units and their reasons (docs/durability.md).

A module of its own, because settings and read-only commands need the numbers without the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_MERGE_ATTEMPTS = 4
"""How often the engine's own commits (healing, late writes) are planned again while other programs keep writing."""

_HOUR = 3_600.0
_DAY = 24 * _HOUR


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits of the engine. The defaults are the product's; tests shorten them."""

    young_seconds: float = 5.0  # a change of echod's that vanished within this time was overwritten, not deleted
    history_hours: float = 24.0  # how long contents of a memory file are remembered, to recognize stale overwrites
    displaced_hours: float = 24.0  # how long a displaced or claimed file is followed for late writes
    max_restores: int = 3  # how often one block is restored before the user decides
    max_replans: int = 3  # how often a plan may be overtaken before the commit continues and merges
    settle_seconds: float = 2.0  # how long a file must be unchanged if no lease is available
    lock_seconds: float = 20.0  # how long the upstream writers' lock may be held before the first exchange
    undo_days: float = 14.0  # how long a commit can be undone
    redacted_days: float = 7.0  # how long exact blobs of a commit that redacted something are kept
    max_ledger_keys: int = 20_000  # how many consumed findings a role's ledger remembers. The oldest are dropped first.
    max_history_bytes: int = 64 * 1024 * 1024  # limit of the remembered contents of one role

    @property
    def history_seconds(self) -> float:
        """`history_hours` in seconds."""
        return self.history_hours * _HOUR

    @property
    def displaced_seconds(self) -> float:
        """`displaced_hours` in seconds."""
        return self.displaced_hours * _HOUR

    @property
    def undo_seconds(self) -> float:
        """`undo_days` in seconds."""
        return self.undo_days * _DAY

    @property
    def redacted_seconds(self) -> float:
        """`redacted_days` in seconds."""
        return self.redacted_days * _DAY

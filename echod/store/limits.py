"""The numbers of the commit engine, with their units and why they are what they are (docs/durability.md)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Defaults are the product's; tests make them short.

    Attributes:
        young_seconds: what we added less than this ago and is gone was overwritten, not deleted.
        history_hours: how long contents of a memory file are remembered, to recognise stale overwrites.
        displaced_hours: how long a displaced or claimed file is followed for late bytes.
        max_restores: how often one block is put back before a person decides.
        max_replans: how often a plan may be overtaken before the commit goes on and merges.
        settle_seconds: how long a file must be still where no lease can tell.
        lock_seconds: how long the upstream writers' lock may be held before the first exchange.
        undo_days: how long a commit can be undone.
        redacted_days: how long exact images of a commit that redacted something are kept.
        max_ledger_keys: how many consumed findings a role's ledger remembers; the oldest go first.
        max_history_bytes: bound of the remembered contents of one role.
    """

    young_seconds: float = 5.0
    history_hours: float = 24.0
    displaced_hours: float = 24.0
    max_restores: int = 3
    max_replans: int = 3
    settle_seconds: float = 2.0
    lock_seconds: float = 20.0
    undo_days: float = 14.0
    redacted_days: float = 7.0
    max_ledger_keys: int = 20_000
    max_history_bytes: int = 64 * 1024 * 1024

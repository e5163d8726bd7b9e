"""How long the gate believes what it sees. Every number of docs/workflows.md stands here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GateLimits:
    """The gate's bounds; names carry the unit. A marker's age counts from its last sign of life.

    Attributes:
        quiet_seconds: how long after a change or an end the project counts as quiet; 0 means there is no quiet.
        quiet_cap_minutes: how long quiet may last in a row before a job runs all the same.
        unknown_minutes: a state file, checkpoint, team or unreadable marker whose owner nobody can tell.
        gone_minutes: a state file whose owner is gone; a resumed session has a new process number.
        loop_minutes: a loop file without a live owner; it is written between phases only, and those are long.
        young_minutes: a lock directory that has no readable owner yet.
        migration_minutes: the upstream plugin's own migration lock; upstream calls it stale after this.
        silent_hours: the bound for everything, a live owner included.
        mention_days: how long a marker that is no longer believed is still mentioned as a warning.
        sessions: whether busy Claude Code sessions count.
    """

    quiet_seconds: float = 30
    quiet_cap_minutes: float = 15
    unknown_minutes: float = 120
    gone_minutes: float = 10
    loop_minutes: float = 150
    young_minutes: float = 10
    migration_minutes: float = 5
    silent_hours: float = 12
    mention_days: float = 7
    sessions: bool = True

    @property
    def silent_seconds(self) -> float:
        """After this long without a sign of life nothing is believed."""
        return self.silent_hours * 3600

    @property
    def quiet_cap_seconds(self) -> float:
        """The longest quiet in a row."""
        return self.quiet_cap_minutes * 60

    @property
    def mention_seconds(self) -> float:
        """How long a marker no longer believed stays a warning."""
        return self.mention_days * 86_400

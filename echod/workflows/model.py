"""The values of the gate: processes, markers, observations, verdicts, and all of its limits.

Every number of docs/workflows.md is in `GateLimits` and nowhere else. Nothing here touches a file or a process.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

# Boot time, from which start times are computed, moves by seconds when the clock is corrected.
START_TOLERANCE_SECONDS = 60


class ProcessState(StrEnum):
    """The state of a process. One that cannot be checked is neither alive nor dead."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


class ProcessStatus(NamedTuple):
    """The status of a process number, as the system reports it. `started` is Unix seconds, None if unknown."""

    state: ProcessState
    started: float | None = None


class ProcessTable(Protocol):
    """The system's table of processes, or a test's."""

    def lookup(self, pid: int) -> ProcessStatus:
        """Return the status of process number `pid` now. Never raises."""
        ...


class GateState(StrEnum):
    """`active`: a workflow runs. `quiet`: one just ended or a file was just written. `idle`: jobs may write."""

    ACTIVE = "active"
    QUIET = "quiet"
    IDLE = "idle"


class MarkerKind(StrEnum):
    """The kind of sign behind a reason. The last three make `quiet`, all others `active`."""

    STATE_FILE = "state_file"
    LOOP = "loop"
    CHECKPOINT = "checkpoint"
    LOCK = "lock"
    MIGRATION = "migration"
    SIGNALS = "signals"
    SESSION = "session"
    GIT = "git"
    DECLARED = "declared"
    INACCESSIBLE = "inaccessible"
    CHANGED = "changed"
    ENDED = "ended"
    EDITOR = "editor"


class VerdictReason(NamedTuple):
    """One marker and its meaning, in words for `status` and `echod gate`. Times are Unix seconds.

    Attributes:
        marker: the file (relative to the project if it is inside of it) or name.
        text: a sentence: its content, since when, whose pid, and until when echod believes it.
        blocking: whether this marker alone keeps the gate from being idle; other reasons are warnings.
        until: the moment after which it no longer counts; None where only its owner ends it.
        name: the workflow, team or program that left it, as far as the marker names it.
        since: its start if that is stated, else its last sign of life.
    """

    marker: str
    text: str
    blocking: bool
    until: float | None
    kind: MarkerKind = MarkerKind.STATE_FILE
    name: str = ""
    since: float | None = None
    pid: int | None = None


class Verdict(NamedTuple):
    """One verdict for the worker, `status` and `echod gate`.

    `until` is the earliest moment (Unix seconds) at which time alone can change the verdict. `had_activity` is true
    while there are signs that make `quiet`, also when their time is used up and the state is idle; `quiet_streak` needs
    it.
    """

    state: GateState
    reasons: tuple[VerdictReason, ...]
    until: float | None
    had_activity: bool = False


_UNKNOWN_PROCESS = ProcessStatus(ProcessState.UNKNOWN)


class MarkerState(StrEnum):
    """The state of a marker's workflow. `UNREADABLE`: the marker exists, but it cannot be understood."""

    RUNNING = "running"
    ENDED = "ended"
    UNREADABLE = "unreadable"


class MarkerOwner(NamedTuple):
    """The process a marker names, as the system reported it. `pid` None: it names none that can be checked."""

    pid: int | None = None
    process: ProcessStatus = _UNKNOWN_PROCESS

    def state_at(self, modified_at: float | None) -> ProcessState:
        """Return the state of the process that wrote the marker at `modified_at`, not of one that started later."""
        if self.pid is None:
            return ProcessState.UNKNOWN
        return ProcessState.DEAD if self.pid_was_reused(modified_at) else self.process.state

    def pid_was_reused(self, modified_at: float | None) -> bool:
        """Return whether the number now belongs to a process that started after the marker was written."""
        started = self.process.started
        if self.process.state is not ProcessState.ALIVE or started is None or modified_at is None:
            return False
        return started > modified_at + START_TOLERANCE_SECONDS


NO_OWNER = MarkerOwner()


class Marker(NamedTuple):
    """One sign of a workflow. Times are Unix seconds. Those of the workflow are None unless the marker states them.

    Attributes:
        path: the file, relative to the project if it is inside of it; the name of a declared workflow.
        name: the workflow, as the marker names it.
        description: a clause for the user about the marker's content.
        modified_at: when the marker itself was last written; None if unknown.
        last_active: its last sign of life: `modified_at`, or a later one of its siblings; None counts as fresh.
        deadline: an end that was agreed beforehand; replaces every age limit.
        workflow: the workflow that this is a run of: review, work, arc, ...
        key: the workflow's lasting identity; "" for signs that are not counted as workflows.
    """

    kind: MarkerKind
    path: str
    name: str
    description: str
    state: MarkerState
    modified_at: float | None
    last_active: float | None
    owner: MarkerOwner = NO_OWNER
    started: float | None = None
    ended: float | None = None
    deadline: float | None = None
    workflow: str = ""
    key: str = ""


class ExternalChange(NamedTuple):
    """A memory, knowledge or marker file that another program changed at `changed_at` (Unix seconds)."""

    path: str
    changed_at: float


class EditorLock(NamedTuple):
    """A lock or swap file that an editor keeps beside a file it has open."""

    path: str
    edited_file: str
    modified_at: float | None
    owner: MarkerOwner = NO_OWNER


class DeclaredWorkflow(NamedTuple):
    """An announced workflow: `echod workflow begin NAME [--pid P] [--ttl MINUTES]`. Times are Unix seconds.

    It ends with the process `pid`, if one was given, and by itself at `until`. `pid_started` distinguishes that process
    from a later one of the same number.
    """

    name: str
    pid: int | None
    pid_started: float | None
    began: float
    until: float


class GateObservations(NamedTuple):
    """Everything that was seen in one look at a project: every sign of a workflow, running or not, and of an edit.

    `changes` are memory and knowledge files as last changed by another program. `last_ended` is when a workflow was
    last known to end (Unix seconds), from the database. `inaccessible` are paths that the collector refuses to read,
    each with a sentence.
    """

    markers: tuple[Marker, ...] = ()
    changes: tuple[ExternalChange, ...] = ()
    editor_locks: tuple[EditorLock, ...] = ()
    last_ended: float | None = None
    inaccessible: tuple[tuple[str, str], ...] = ()


class GateLimits(NamedTuple):
    """The gate's bounds; names carry the unit. A marker's age counts from its last sign of life.

    Attributes:
        quiet_seconds: how long after a change or an end the project counts as quiet; 0 means there is no quiet.
        max_quiet_minutes: how long quiet may last in a row before a job runs all the same.
        unknown_owner_minutes: a state file, checkpoint, team or unreadable marker whose owner is unknown.
        dead_owner_minutes: a state file whose owner is gone; a resumed session has a new process number.
        loop_minutes: a loop file without a live owner; it is written between phases only, and those are long.
        new_lock_minutes: a lock directory that has no readable owner yet.
        migration_minutes: the upstream plugin's own migration lock; upstream calls it stale after this.
        max_silence_hours: the bound for everything, a live owner included.
        stale_warning_days: how long a marker that is no longer believed is still reported as a warning.
        sessions: whether busy Claude Code sessions count.
    """

    quiet_seconds: float = 30
    max_quiet_minutes: float = 15
    unknown_owner_minutes: float = 120
    dead_owner_minutes: float = 10
    loop_minutes: float = 150
    new_lock_minutes: float = 10
    migration_minutes: float = 5
    max_silence_hours: float = 12
    stale_warning_days: float = 7
    sessions: bool = True

    @property
    def max_silence_seconds(self) -> float:
        """After this long without a sign of life nothing is believed."""
        return self.max_silence_hours * 3600

    @property
    def max_quiet_seconds(self) -> float:
        """The longest quiet in a row."""
        return self.max_quiet_minutes * 60

    @property
    def stale_warning_seconds(self) -> float:
        """How long a marker that is no longer believed stays a warning."""
        return self.stale_warning_days * 86_400

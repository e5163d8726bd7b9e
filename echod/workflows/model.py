"""What the collector found, as plain values: all that the gate may know. No file is touched from here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from echod.workflows.processes import Life, Process

if TYPE_CHECKING:
    from echod.workflows.verdict import Kind

# Boot time, from which start times are computed, moves by seconds when the clock is corrected.
START_SLACK_SECONDS = 60
_UNKNOWN = Process(Life.UNKNOWN)


class Claim(StrEnum):
    """What a marker says of its workflow. `UNREADABLE`: it is there, but it cannot be understood."""

    RUNNING = "running"
    ENDED = "ended"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Owner:
    """The process a marker names, as the system saw it. `pid` None: it names none that can be checked."""

    pid: int | None = None
    process: Process = _UNKNOWN

    def life(self, written: float | None) -> Life:
        """Whether the process that wrote the marker at `written` lives. A process born later is another one."""
        if self.pid is None:
            return Life.UNKNOWN
        if self.recycled(written):
            return Life.GONE
        return self.process.life

    def recycled(self, written: float | None) -> bool:
        """Whether the number now belongs to a process that started after the marker was written."""
        started = self.process.started
        if self.process.life is not Life.ALIVE or started is None or written is None:
            return False
        return started > written + START_SLACK_SECONDS


NOBODY = Owner()


@dataclass(frozen=True, slots=True)
class Marker:
    """One sign of a workflow.

    Attributes:
        kind: which family it is of.
        path: the file, relative to the project where it lies inside; the name of a declared workflow.
        name: the workflow, as the marker names it.
        says: a clause for the person: what the marker says.
        claim: the same, for the gate.
        written: when the marker itself was last written (Unix seconds); None if that cannot be told.
        touched: its last sign of life: `written`, or a later one of its siblings; None counts as fresh.
        owner: the process it names.
        started: when its workflow began, if it says so.
        ended: when its workflow ended, if it says so.
        deadline: an end that was agreed beforehand; takes the place of every age limit.
        workflow: which workflow it is a run of: review, work, arc, ...
        key: the workflow's lasting identity; "" for signs that are not counted as workflows.
    """

    kind: Kind
    path: str
    name: str
    says: str
    claim: Claim
    written: float | None
    touched: float | None
    owner: Owner = NOBODY
    started: float | None = None
    ended: float | None = None
    deadline: float | None = None
    workflow: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A memory, knowledge or marker file that someone else changed at `at` (Unix seconds)."""

    path: str
    at: float


@dataclass(frozen=True, slots=True)
class Editor:
    """A lock or swap file that a person's editor keeps beside a file it has open."""

    path: str
    edits: str
    written: float | None
    owner: Owner = NOBODY


@dataclass(frozen=True, slots=True)
class DeclaredWorkflow:
    """A workflow that someone announced: `echod workflow begin NAME [--pid P] [--ttl MINUTES]`.

    Attributes:
        name: what it was called.
        pid: the process whose end ends it, if one was given.
        pid_started: when that process started (Unix seconds), to know it from a later one of the same number.
        began: when it was announced (Unix seconds).
        until: when it ends by itself (Unix seconds).
    """

    name: str
    pid: int | None
    pid_started: float | None
    began: float
    until: float


@dataclass(frozen=True, slots=True)
class Observations:
    """Everything that was seen in one look at a project.

    Attributes:
        markers: every sign of a workflow, running or not.
        changes: memory and knowledge files as last changed by someone else.
        editors: editors' lock and swap files in the stores.
        last_ended: when a workflow was last known to end (Unix seconds), from the database.
        unseen: places that the collector refuses to look into, each with a sentence.
    """

    markers: tuple[Marker, ...] = ()
    changes: tuple[Change, ...] = ()
    editors: tuple[Editor, ...] = ()
    last_ended: float | None = None
    unseen: tuple[tuple[str, str], ...] = ()

r"""A job and the states it goes through. The whole state machine is this page.

    queued --claim--> running --finish--> done
      ^  ^              |  |  \--fail--> queued (back-off), and after max_attempts: dead
      |  \--it died----/   \--defer--> deferred --due again--> running
      \--retry / changed input-- dead

A command that a person typed begins its job as running. If its kind is one of `MANUAL_KINDS` it never waits: it ends
done
or dead, and if its process dies it is dead, since the person asks again.

There is at most one pending (queued or deferred) job for each (kind, store, role); a cause that arrives while one
runs queues it again. A job that has to go back to the queue and finds such a successor there is merged into it: it is
done, and `merged_into` names the one that goes on. A pending or dead job that its store no longer calls for is done
too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class JobKind(StrEnum):
    """What can be done to a store; one module in `echod.jobs` for each.

    A new kind comes with a new schema version, so that an older echod refuses a queue it cannot understand.
    """

    CONSOLIDATE = "consolidate"
    OBSERVE = "observe"
    PRUNE = "prune"
    PROMOTE = "promote"
    COMPRESS = "compress"
    UNDO = "undo"
    SCRUB = "scrub"
    REMEMBER = "remember"
    RAISE = "raise"
    FORGET = "forget"
    RESTORE = "restore"
    RESET = "reset"
    REVIEW = "review"
    ELEVATE = "elevate"
    PACK = "pack"


MANUAL_KINDS = frozenset(
    {
        JobKind.UNDO,
        JobKind.SCRUB,
        JobKind.REMEMBER,
        JobKind.RAISE,
        JobKind.FORGET,
        JobKind.RESTORE,
        JobKind.RESET,
        JobKind.REVIEW,
        JobKind.ELEVATE,
        JobKind.PACK,
    }
)
"""Kinds that no state of a store calls for: a person's command does them itself, at once, while the person waits."""


class JobState(StrEnum):
    """See the picture above."""

    QUEUED = "queued"
    DEFERRED = "deferred"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"


PENDING_STATES = frozenset({JobState.QUEUED, JobState.DEFERRED})


class Need(NamedTuple):
    """What the present state of a store calls for.

    Attributes:
        store: the store's absolute path.
        role: the role's name, or "" for the store as a whole.
        fingerprint: names the input that calls for it; the same input is not tried again after it was done or died.
        reason: a sentence for `status`.
        due: Unix seconds before which it is not yet ready (files still young).
    """

    kind: JobKind
    store: str
    role: str
    fingerprint: str
    reason: str
    due: float


class ProcessIdentity(NamedTuple):
    """Who runs a job: a process number and when that process started (Unix seconds), since numbers are used again."""

    pid: int
    started: float


@dataclass(frozen=True, slots=True)
class Job:
    """A row of the queue. Times are Unix seconds; `result` is the sentence about how it ended or why it waits.

    Attributes:
        attempts: the runs for this input, the present one included; a deferred run is none.
        due: when it may run; for a deferred job, when it asks again.
        merged_into: the job that goes on in its place.
        ready_at: when its input is ready.
        not_before: when its pause or deferral ends, whatever its input; `due` is the later of the two.
        worker: who runs it, while it runs.
    """

    id: int
    kind: JobKind
    store: str
    role: str
    state: JobState
    reason: str
    fingerprint: str
    attempts: int
    due: float
    queued_at: float
    started_at: float | None
    finished_at: float | None
    result: str
    merged_into: int | None = None
    ready_at: float = 0.0
    not_before: float = 0.0
    worker: ProcessIdentity | None = None

    @property
    def is_pending(self) -> bool:
        """Whether it is still to be run."""
        return self.state in PENDING_STATES

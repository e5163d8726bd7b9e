r"""A job, its states, and the pauses between its attempts.

The state machine:

    queued --claim--> running --finish--> done
      ^  ^              |  |  \--fail--> queued (back-off), and after max_attempts: dead
      |  \--its process died--/   \--defer--> deferred --due again--> running
      \--retry / changed input-- dead

A manual job starts as running. If its kind is one of `MANUAL_KINDS` it never waits: it ends done, refused or dead, and
it is dead if its process dies, since the user repeats the command. A refused one changed nothing for a reason that it
gives, which is neither a success nor a failure.

There is at most one pending (queued or deferred) job for each (kind, store, role). A cause that arrives while the job
runs queues another one. A running job that must return to the queue while such a successor is pending is merged into
it: it is done, and `merged_into` is the successor's number. A pending or dead job that its store no longer needs is
done as well.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple


class JobKind(StrEnum):
    """The work that a job does; one module in `echod.jobs` each.

    A new kind requires a new schema version, so that an older echod refuses a queue with unknown kinds.
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
    VERIFY = "verify"
    FORGET = "forget"
    RESTORE = "restore"
    RESET = "reset"
    REVIEW = "review"
    ELEVATE = "elevate"
    PACK = "pack"
    SOLUTION = "solution"
    MIGRATE = "migrate"
    ARCHIVE = "archive"
    CHECKPOINT = "checkpoint"
    SESSIONS = "sessions"
    SYNC = "sync"
    INGEST = "ingest"
    PROPOSE = "propose"
    AUTO_MEMORY = "auto-memory"


MANUAL_KINDS = frozenset(
    {
        JobKind.UNDO,
        JobKind.SCRUB,
        JobKind.REMEMBER,
        JobKind.RAISE,
        JobKind.VERIFY,
        JobKind.FORGET,
        JobKind.RESTORE,
        JobKind.RESET,
        JobKind.REVIEW,
        JobKind.ELEVATE,
        JobKind.PACK,
        JobKind.SOLUTION,
        JobKind.MIGRATE,
        JobKind.AUTO_MEMORY,
        JobKind.SESSIONS,
    }
)
"""Kinds that no state of a store needs. A command runs them at once, while the user waits."""


class JobState(StrEnum):
    """The state of a job; the module docstring has the transitions."""

    QUEUED = "queued"
    DEFERRED = "deferred"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    REFUSED = "refused"


PENDING_STATES = frozenset({JobState.QUEUED, JobState.DEFERRED})


class Need(NamedTuple):
    """Work that the present state of a store calls for.

    Attributes:
        kind: the kind of the job.
        store: the store's absolute path.
        role: the role's name, or "" for the whole store.
        fingerprint: identifies the input. An input that was processed or given up is not tried again.
        reason: a phrase for `echod status`.
        due: Unix seconds from which the input is ready (its files are no longer being written).
    """

    kind: JobKind
    store: str
    role: str
    fingerprint: str
    reason: str
    due: float


class ProcessIdentity(NamedTuple):
    """The process that runs a job: its number and start time (Unix seconds), since numbers are reused."""

    pid: int
    started: float


@dataclass(frozen=True, slots=True)
class Job:
    """A row of the queue. Times are Unix seconds.

    Attributes:
        attempts: the runs for this input including the present one. A deferred run does not count.
        due: when the job may run, or when a deferred job checks again.
        result: a sentence about how it ended or why it waits.
        merged_into: the job that continues in its place.
        ready_at: when its input is ready.
        not_before: when its pause or deferral ends, independent of its input; `due` is the later of the two.
        worker: the process that runs it, while it runs.
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
        """True while the job waits to be run."""
        return self.state in PENDING_STATES


class Backoff(NamedTuple):
    """Growing pauses between the attempts of a job, with jitter so that jobs that failed together spread out.

    Attributes:
        base_seconds: the pause after the first failure.
        factor: the growth with each further failure.
        cap_seconds: the longest pause.
    """

    base_seconds: float = 30.0
    factor: float = 4.0
    cap_seconds: float = 3600.0

    def pause(self, failures: int, rng: random.Random) -> float:
        """Return the pause in seconds after that many failures: half to all of the nominal pause; 0 after none."""
        if failures < 1:
            return 0.0
        # A large exponent would overflow, and the cap is reached long before.
        nominal = min(self.cap_seconds, self.base_seconds * self.factor ** min(failures - 1, 64))
        return nominal * rng.uniform(0.5, 1.0)


DEFAULT_BACKOFF: Final = Backoff()

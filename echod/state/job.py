r"""A job and the states it goes through. The whole state machine is this page.

    queued --claim--> running --finish--> done
      ^  ^              |  |  \--fail--> queued (back-off), and after max_attempts: dead
      |  \--requeue----/   \--defer--> deferred --due again--> running
      \--retry / changed input-- dead

There is at most one pending (queued or deferred) job for each (kind, store, role); a cause that arrives while one
runs queues it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class JobKind(StrEnum):
    """What can be done to a store; one module in `echod.jobs` for each."""

    CONSOLIDATE = "consolidate"


class JobState(StrEnum):
    """See the picture above."""

    QUEUED = "queued"
    DEFERRED = "deferred"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Need:
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


@dataclass(frozen=True, slots=True)
class Job:
    """A row of the queue. Times are Unix seconds; `result` is the sentence about how it ended or why it waits."""

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

"""Shared values of the tests of `echod.state`: a fixed time, two processes, needs and a queue."""

from __future__ import annotations

import random
from typing import Final

from echod.state.database import Database
from echod.state.jobs import Backoff, Job, JobKind, Need, ProcessIdentity
from echod.state.queue import JobQueue

NOW: Final = 1_800_000_000.0
THIS_PROCESS: Final = ProcessIdentity(4242, 1_799_999_000.5)
OTHER_PROCESS: Final = ProcessIdentity(4343, 1_799_999_500.25)
BACKOFF: Final = Backoff(base_seconds=30, factor=4, cap_seconds=3600)


def need(
    fingerprint: str = "a", *, store: str = "/p/.rune/echoes", role: str = "reviewer", due: float = NOW - 1
) -> Need:
    return Need(JobKind.CONSOLIDATE, store, role, fingerprint, f"input {fingerprint}", due)


def make_queue(database: Database, worker: ProcessIdentity = THIS_PROCESS, *, max_attempts: int = 3) -> JobQueue:
    return JobQueue(database, worker=worker, rng=random.Random(7), max_attempts=max_attempts, backoff=BACKOFF)


def claim_job(queue: JobQueue, now: float = NOW) -> Job:
    job = queue.claim(now)
    assert job is not None
    return job

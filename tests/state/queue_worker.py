"""A process that queues and runs jobs as fast as it can, and logs what was acknowledged, until it is killed.

`python -m tests.state.queue_worker DATABASE NOTES SEED [drain]`: with `drain` it queues nothing and ends when nothing
is left to do. Each note is one write, made only after the queue has answered.
"""

from __future__ import annotations

import fcntl
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from echod.state.database import Database
from echod.state.jobs import Backoff, Job, JobKind, Need, ProcessIdentity, QueueView
from echod.state.queue import JobQueue

STORES = ("/a", "/b", "/c")
ROLES = ("r", "s")
MANY_ATTEMPTS = 1_000_000  # being killed all the time must not make a job dead


def is_alive(worker: ProcessIdentity) -> bool:
    try:
        process = psutil.Process(worker.pid)
        return process.create_time() == worker.started and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def exclusive_run(directory: Path, job: Job) -> Iterator[bool]:
    """Return whether no other process runs the same job. The system releases this lock when its holder dies."""
    file = directory / f"{job.store[1:]}-{job.role}.witness"
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def main(database_path: Path, notes_path: Path, seed: int, *, drain: bool) -> None:
    rng = random.Random(seed)
    notes = os.open(notes_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(*words: object) -> None:
        os.write(notes, (" ".join(map(str, words)) + "\n").encode())

    with Database.open(database_path) as database:
        me = ProcessIdentity(os.getpid(), psutil.Process().create_time())
        pause = Backoff(base_seconds=0.001, factor=2, cap_seconds=0.01)
        queue = JobQueue(database, worker=me, rng=rng, max_attempts=MANY_ATTEMPTS, backoff=pause)
        view = QueueView(database)
        for lost in queue.recover(is_alive, time.time()):
            note("recovered", lost.id)
        turn = 0
        while True:
            turn += 1
            if not drain:
                for _ in range(rng.randrange(3)):
                    asked = time.time()
                    need = Need(
                        JobKind.CONSOLIDATE, rng.choice(STORES), rng.choice(ROLES), f"{seed}-{turn}", "more", asked
                    )
                    if number := queue.put(need, asked):
                        note("queued", number, asked)
            job = queue.claim(time.time())
            if job is None:
                if drain and view.next_due() is None:
                    return
                continue
            with exclusive_run(database_path.parent, job) as alone:
                if not alone:
                    note("twice", job.id)
                time.sleep(rng.random() * 0.002)
            end = "finish" if drain else rng.choice(("finish", "finish", "fail", "defer"))
            now = time.time()
            if end == "finish":
                queue.finish(job, "done", now)
                note("finished", job.id)
            elif end == "fail":
                queue.fail(job, "it broke", now)
            else:
                queue.defer(job, "it waits", now + 0.005, now)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), drain=sys.argv[4:] == ["drain"])

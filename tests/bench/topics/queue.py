"""What one job costs in the queue, and the status its view of it, with a long history of jobs behind."""

from __future__ import annotations

import itertools
import random
import sqlite3
import time
from pathlib import Path
from statistics import median

from echod.state.database import Database
from echod.state.jobs import JobKind, JobState, Need, ProcessIdentity, QueueView
from echod.state.queue import JobQueue
from tests.bench.figures import Curve, Figures
from tests.bench.reference import timed
from tests.bench.workspace import Workspace

_HISTORY = (1_000, 3_000, 10_000, 30_000, 100_000)
_RUNS = 25
_SHOWN = frozenset(JobState) - {JobState.DONE}


def measure(space: Workspace) -> Figures:
    """Queued, claimed and finished; then what `status` asks. In memory, so that the disk does not blur it."""
    took = [(size, *_with_history(space.memory / f"{size}.db", size)) for size in _HISTORY]
    return Figures(
        curves=(
            Curve("one job through the queue", "finished jobs", tuple((size, seconds) for size, seconds, _ in took)),
            Curve("what status asks the queue", "finished jobs", tuple((size, seconds) for size, _, seconds in took)),
        )
    )


def _with_history(path: Path, jobs: int) -> tuple[float, float]:
    """Seconds for one job, and for the status' questions."""
    with Database.open(path) as database:
        queue, view = JobQueue(database, worker=ProcessIdentity(1, 1.0), rng=random.Random(1)), QueueView(database)
        numbers = itertools.count()
        _one(queue, next(numbers))
        _copy_finished_jobs(path, jobs)
        through = median(timed(lambda: _one(queue, next(numbers))) for _ in range(_RUNS))
        return through, median(timed(lambda: _query_status(view)) for _ in range(_RUNS))


def _one(queue: JobQueue, number: int) -> None:
    now = time.time()
    queue.put(Need(JobKind.CONSOLIDATE, "/p/.rune/echoes", "reviewer", f"input {number}", "findings", now), now)
    job = queue.claim(now)
    assert job is not None
    queue.finish(job, "done", now)


def _query_status(view: QueueView) -> None:
    view.count_by_state()
    view.oldest_due(time.time())
    view.next_due()
    view.list_jobs(_SHOWN, 200)
    view.kind_records()


def _copy_finished_jobs(path: Path, jobs: int) -> None:
    """Many more finished jobs, alike but for their numbers."""
    with sqlite3.connect(path) as link:
        columns = [name for _, name, *_ in link.execute("PRAGMA table_info(job)") if name != "id"]
        listed = ", ".join(columns)
        link.execute(
            f"WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "  # noqa: S608
            f"INSERT INTO job ({listed}) SELECT {listed} FROM job, n WHERE job.id = 1",
            (jobs,),
        )
    link.close()

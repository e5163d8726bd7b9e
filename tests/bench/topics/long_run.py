"""Jobs of a hundred days, by a clock that runs ahead: does memory leak, does the state pile up?

The work is the product's own: findings are found, folded in and archived, late bytes are settled, and once a day what
is beyond its time is forgotten. Agents learn the same few things again and again, so that the memory stays as it is
and what grows is echod's alone.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from echod.store.layout import Store
from tests.bench.figures import Figures, Row, Table, below
from tests.bench.household import ResourceUsage
from tests.bench.made import random_words
from tests.bench.workshop import JobRunner, open_job_runner, single_store
from tests.bench.workspace import Workspace
from tests.support import finding_text, make_project

_DAYS = 100
_JOBS_A_DAY = 24
_LESSONS = 10
_ROLES = ("reviewer", "workers", "planner", "auditor")
_DAY_SECONDS = 86_400.0
_WARM_DAY = 40
"""By then everything that is kept for a while (jobs for 30 days, the journal for 14) has been forgotten once."""

_TRANSIENT = ("-wal", "-shm")
_LEAK_BAR_MIB = 2
_GROWTH_BAR = 1.1


@dataclass
class _ShiftedClock:
    """Unix seconds, some days ahead."""

    ahead_days: float = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_days * _DAY_SECONDS


@dataclass
class _DailyFigures:
    """What was measured at the end of each day."""

    jobs: list[int] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    memory_mib: list[float] = field(default_factory=list)
    in_use_mib: list[float] = field(default_factory=list)
    state_bytes: list[int] = field(default_factory=list)


def measure(space: Workspace) -> Figures:
    """In memory, because nothing here is about the disk."""
    store = single_store(make_project(space.memory / "project", *_ROLES))
    calendar, diary = _ShiftedClock(), _DailyFigures()
    state = space.memory / "state"
    with open_job_runner(state, clock=calendar, memory_line_limit=150) as job_runner:
        done = 0
        for day in range(_DAYS):
            calendar.ahead_days = day
            began = time.perf_counter()
            today = _run_day(job_runner, store)
            job_runner.services.worker.merge_late_writes(store)
            job_runner.services.worker.apply_retention()
            done += today
            diary.jobs.append(done)
            diary.milliseconds.append((time.perf_counter() - began) / today * 1000)
            diary.memory_mib.append(ResourceUsage.measure(os.getpid()).memory_mib)
            if day + 1 in (_WARM_DAY, _DAYS):
                diary.in_use_mib.append(_in_use_mib())
            diary.state_bytes.append(_size(state))
    return _report_figures(diary)


def _run_day(job_runner: JobRunner, store: Store) -> int:
    """An agent of each role reports, again and again."""
    done = 0
    for number in range(_JOBS_A_DAY // len(_ROLES)):
        lesson = number % _LESSONS
        for role in _ROLES:
            text = finding_text(f"Lesson {lesson} of {role}", random_words(Random(lesson), 30))
            (store.root / role / f"agent{number}-findings.md").write_text(text)
        done += job_runner.run_until_idle(store)
    return done


def _size(state: Path) -> int:
    """Bytes that stay. SQLite's log comes and goes, some megabytes of it, whatever was done."""
    return sum(
        file.stat().st_size for file in state.rglob("*") if file.is_file() and not file.name.endswith(_TRANSIENT)
    )


def _in_use_mib() -> float:
    """Resident memory without what is free in it: the C library keeps some megabytes for the next job."""
    gc.collect()
    with suppress(AttributeError):  # not every C library can give it back
        ctypes.CDLL(None).malloc_trim(0)
    return ResourceUsage.measure(os.getpid()).memory_mib


def _report_figures(diary: _DailyFigures) -> Figures:
    warm, last = _WARM_DAY - 1, _DAYS - 1
    leaked = diary.in_use_mib[-1] - diary.in_use_mib[0]
    grown = _mean(diary.state_bytes[-10:]) / _mean(diary.state_bytes[warm : warm + 10])
    between = diary.jobs[last] - diary.jobs[warm]
    days = tuple(
        (
            day,
            diary.jobs[day - 1],
            round(diary.milliseconds[day - 1], 1),
            round(diary.memory_mib[day - 1], 1),
            round(diary.state_bytes[day - 1] / 1e6, 1),
        )
        for day in (1, 10, 20, 30, 40, 60, 80, 100)
    )
    return Figures(
        (
            Row(
                f"memory in use, gained from day {_WARM_DAY} to day {_DAYS}",
                leaked,
                "MiB",
                bar=below(_LEAK_BAR_MIB),
                note=f"over {between:,} jobs; {diary.jobs[last]:,} in all",
            ),
            Row(
                f"state directory, last ten days against those from day {_WARM_DAY}",
                grown,
                "x",
                bar=below(_GROWTH_BAR),
                note=f"{diary.state_bytes[last] / 1e6:.1f} MB in the end, without SQLite's log",
            ),
        ),
        tables=(Table("Jobs of a hundred days", ("day", "jobs", "ms a job", "memory MiB", "state MB"), days),),
    )


def _mean(values: list[int]) -> float:
    return sum(values) / len(values)

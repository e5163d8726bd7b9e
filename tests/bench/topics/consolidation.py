"""How long it takes to fold a workflow's findings into the memory: planned in memory, and as jobs on the disk."""

from __future__ import annotations

from functools import partial
from random import Random

from echod.memory.consolidation.plan import ConsolidationPlan, plan_consolidation
from echod.memory.similarity import Learning, compare_learnings, features_of
from tests.bench.figures import Figures, Row, below, row
from tests.bench.made import DAY, findings, random_words
from tests.bench.reference import Timings, measure_alternating, rounds, timed
from tests.bench.workshop import open_job_runner, single_store
from tests.bench.workspace import Workspace
from tests.support import make_project

_ROLES = 10
_PER_FILE = 10
_RUNS, _SECONDS = 5, 20.0
_BAR_SECONDS = 2.0
"""For 1,000 findings into ten roles, and in proportion for more."""


def measure(space: Workspace) -> Figures:
    """1,000 and 10,000 findings into ten roles; and what one comparison costs."""
    return Figures((*map(_planned, (1_000, 10_000)), _on_disk(space, 1_000), *_compared()))


def _planned(learnings: int) -> Row:
    roles = [list(findings(role, learnings // _ROLES, _PER_FILE)) for role in range(_ROLES)]

    def fold() -> None:
        for number, files in enumerate(roles):
            plan = plan_consolidation(f"role{number}", b"# Memory\n", files, DAY)
            assert isinstance(plan, ConsolidationPlan)
            assert len(plan.added) == learnings // _ROLES

    took = measure_alternating(fold, _RUNS if learnings <= 1_000 else 1)
    bar = below(_BAR_SECONDS * learnings / 1_000)
    return row(f"plan: {learnings:,} findings into {_ROLES} roles", took.seconds, "s", bar=bar, loops=took.loops)


def _on_disk(space: Workspace, learnings: int) -> Row:
    seconds = []
    for number in rounds(_RUNS, _SECONDS):
        base = space.directory(f"run{number}")
        names = [f"role{role}" for role in range(_ROLES)]
        store = single_store(make_project(base / "project", *names))
        for role, name in enumerate(names):
            for file in findings(role, learnings // _ROLES, _PER_FILE):
                (store.root / name / file.name).write_bytes(file.data)
        with open_job_runner(base / "state") as services:
            services.reconcile_store(store)  # what is loaded once is not the work
            seconds.append(timed(partial(services.run_until_idle, store)))
    files = learnings // _PER_FILE
    return row(
        f"jobs: {learnings:,} findings in {files} files into {_ROLES} roles",
        seconds,
        "s",
        bar=below(_BAR_SECONDS),
        note="found, planned, committed and synced to the disk, originals archived",
    )


def _compared() -> tuple[Row, Row]:
    random = Random(3)
    learnings = [Learning(random_words(random, 6), random_words(random, 40), None, None) for _ in range(60)]
    sketches = [features_of(learning) for learning in learnings]

    def read() -> None:
        for learning in learnings:
            compare_learnings(features_of(learning), features_of(learning))

    def compare() -> None:
        for one in sketches:
            for other in sketches:
                compare_learnings(one, other)

    return _each("read a learning twice and compare", measure_alternating(read, _RUNS), len(learnings)), _each(
        "compare two that were read", measure_alternating(compare, _RUNS), len(learnings) ** 2
    )


def _each(what: str, took: Timings, count: int) -> Row:
    return row(what, [seconds / count * 1e6 for seconds in took.seconds], "us")

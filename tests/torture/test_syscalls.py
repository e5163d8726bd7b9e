"""A commit killed before any system call, or with any call failing, loses nothing and reports the error."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.torture import syscalls
from tests.torture.explorer import ProjectFactory, Tally, create_project, find_problems, run_until_idle
from tests.torture.product_jobs import PRUNE, ProductJobsProject
from tests.torture.service import SHORT_LIMITS, StressProject, plan_changes, reconcile_once

pytestmark = [
    pytest.mark.skipif(syscalls.unavailable_reason() is not None, reason=str(syscalls.unavailable_reason())),
    pytest.mark.timeout(1800),
]

_KILLED = -9
_FAILING = tuple(c for c in syscalls.CHANGING if c != "fcntl")  # without a lease the file must be unchanged for a while
_EVERY, _SOME = 8, 16
"""The quick run takes every eighth call, or this many if there are very many. `make torture` takes all."""


@pytest.fixture
def base() -> Iterator[Path]:
    import shutil
    import tempfile

    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    yield path / "arena"
    shutil.rmtree(path)


def consolidate_and_archive(project: StressProject) -> None:
    """Run two turns: findings are consolidated, entries are archived, displaced files are closed."""
    engine = project.engine()
    for _ in range(2):
        reconcile_once(project, engine, keep=5)


def undo(project: StressProject) -> None:
    """Undo the consolidation that `prepare_undo` made."""
    project.engine(_FOLLOWED_LIMITS).undo(1, by_job=2)


_FOLLOWED_LIMITS = SHORT_LIMITS._replace(displaced_hours=1.0)


def prepare_undo(project: StressProject) -> None:
    with project.engine(_FOLLOWED_LIMITS).open_role(project.role) as session:
        session.commit(1, plan_changes(session.read(), keep=5, batch=2))


def prepare_undo_of_prune(project: StressProject) -> None:
    reconcile_once(project, project.engine(_FOLLOWED_LIMITS), keep=5)


def undo_prune(project: StressProject) -> None:
    """Undo the prune that `prepare_undo_of_prune` made, the one after the consolidation."""
    project.engine(_FOLLOWED_LIMITS).undo(PRUNE, by_job=9)


def prepare_nothing(project: StressProject) -> None:
    """Leave the project as it is."""


WORK: dict[str, tuple[Callable[[StressProject], None], Callable[[StressProject], None], ProjectFactory]] = {
    "consolidate and archive": (prepare_nothing, consolidate_and_archive, StressProject),
    "consolidate and prune": (prepare_nothing, consolidate_and_archive, ProductJobsProject),
    "undo": (prepare_undo, undo, StressProject),
    "undo of a prune": (prepare_undo_of_prune, undo_prune, ProductJobsProject),
}


def inject_faults(base: Path, work: str, how: str, step: int, only: tuple[str, ...], most: int | None = None) -> Tally:
    """Interfere with every `step`-th call of the work in turn (at most about `most` calls) and count problems."""
    prepare, do, make = WORK[work]
    prepare(create_project(base, make))
    calls = syscalls.record_calls(lambda: do(make(base)), base.parent / "calls")
    step = step if most is None else max(step, math.ceil(len(calls) / most))
    tally, seen = Tally(), Counter[str]()
    for number, call in enumerate(calls):
        seen[call] += 1
        if number % step == 0 and call in only:
            prepare(create_project(base, make))
            tally.add(f"{call} {seen[call]}", _run_once(make(base), do, call, seen[call], how))
    return tally


def _run_once(
    project: StressProject, do: Callable[[StressProject], None], call: str, number: int, how: str
) -> list[str]:
    status = syscalls.run_with_fault(lambda: do(project), call, number, how, project.base.parent / "strace")
    expected = {_KILLED} if "SIGKILL" in how else {0}
    wrong = [] if status in expected else [f"the process ended with {status} instead of an error message"]
    for lock in (project.base / "project/tmp").iterdir():
        os.utime(lock, (0, 0))  # a lock made in the very call before the kill is stale after half a minute
    run_until_idle(project)
    return wrong + find_problems(project, [])


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK)
def test_killed_before_some_calls(base: Path, work: str) -> None:
    tally = inject_faults(base, work, "signal=SIGKILL", _EVERY, syscalls.CHANGING, _SOME)

    assert tally.schedules > 10
    assert not tally.wrong, tally.examples


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "error"),
    [
        ("consolidate and archive", "ENOSPC"),
        ("consolidate and archive", "EIO"),
        ("consolidate and archive", "EACCES"),
        ("consolidate and prune", "ENOSPC"),
    ],
)
def test_some_calls_fail(base: Path, work: str, error: str) -> None:
    tally = inject_faults(base, work, f"error={error}", 2 * _EVERY, _FAILING, _SOME)

    assert tally.schedules > 5
    assert not tally.wrong, tally.examples


@pytest.mark.torture
@pytest.mark.parametrize("how", ["signal=SIGKILL", "error=ENOSPC", "error=EIO", "error=EACCES", "error=EINTR"])
@pytest.mark.parametrize("work", WORK)
def test_every_call_killed_or_failing(base: Path, work: str, how: str) -> None:
    killed = "SIGKILL" in how
    # Most calls of the product's jobs are those of its database, for which SQLite is responsible.
    step = 1 if killed or WORK[work][2] is StressProject else 3

    tally = inject_faults(base, work, how, step, syscalls.CHANGING if killed else _FAILING)

    print(f"\n{tally.row(f'{work}, {how}')}")
    assert not tally.wrong, tally.examples

"""A commit killed before any of its system calls, and any of them failing: nothing lost, and always a sentence."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.torture import syscalls
from tests.torture.explorer import Tally, calm, fresh, problems
from tests.torture.service import PROMPT, Arena, plan, turn

pytestmark = [
    pytest.mark.skipif(syscalls.unavailable() is not None, reason=str(syscalls.unavailable())),
    pytest.mark.timeout(1800),
]

_KILLED = -9
_FAILING = tuple(c for c in syscalls.CHANGING if c != "fcntl")  # without a lease the file must have settled
_EVERY = 8
"""The quick run takes every eighth call; `make torture` takes all."""


@pytest.fixture
def base() -> Iterator[Path]:
    import shutil
    import tempfile

    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    yield path / "arena"
    shutil.rmtree(path)


def consolidate_and_archive(arena: Arena) -> None:
    """Two turns: findings come in, entries go to the archive, what was displaced is closed."""
    engine = arena.engine()
    for _ in range(2):
        turn(arena, engine, keep=5)


def undo(arena: Arena) -> None:
    """Take back the consolidation that `prepare_undo` made."""
    arena.engine(_KEPT).undo(1, by=2)


_KEPT = replace(PROMPT, displaced_hours=1.0)


def prepare_undo(arena: Arena) -> None:
    with arena.engine(_KEPT).open_role(arena.role) as session:
        session.commit(1, plan(session.read(), keep=5, batch=2))


def prepare_nothing(arena: Arena) -> None:
    """The arena as it is."""


WORK = {
    "consolidate and archive": (prepare_nothing, consolidate_and_archive),
    "undo": (prepare_undo, undo),
}


def interfere(base: Path, work: str, how: str, step: int, only: tuple[str, ...]) -> Tally:
    """Interfere with every `step`-th call of the work in turn; what was wrong afterwards."""
    prepare, do = WORK[work]
    prepare(fresh(base))
    made = syscalls.calls(lambda: do(Arena(base)), base.parent / "calls")
    tally, seen = Tally(), Counter[str]()
    for number, call in enumerate(made):
        seen[call] += 1
        if number % step == 0 and call in only:
            prepare(fresh(base))
            tally.add(f"{call} {seen[call]}", _once(base, do, call, seen[call], how))
    return tally


def _once(base: Path, do: Callable[[Arena], None], call: str, number: int, how: str) -> list[str]:
    arena = Arena(base)
    status = syscalls.interfered(lambda: do(arena), call, number, how, base.parent / "said")
    wanted = {_KILLED} if "SIGKILL" in how else {0}
    wrong = [] if status in wanted else [f"the process ended with {status} instead of a sentence"]
    for lock in (base / "project/tmp").iterdir():
        os.utime(lock, (0, 0))  # a lock made in the very call before the kill is stale after half a minute
    calm(arena)
    return wrong + problems(arena, [])


@pytest.mark.parametrize("work", WORK)
def test_killed_before_some_calls(base: Path, work: str) -> None:
    tally = interfere(base, work, "signal=SIGKILL", _EVERY, syscalls.CHANGING)

    assert tally.schedules > 10
    assert not tally.wrong, tally.examples


@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EACCES"])
def test_some_calls_fail(base: Path, error: str) -> None:
    tally = interfere(base, "consolidate and archive", f"error={error}", 2 * _EVERY, _FAILING)

    assert tally.schedules > 5
    assert not tally.wrong, tally.examples


@pytest.mark.torture
def test_every_call_killed_or_failing(base: Path) -> None:
    print(f"\n{'work':26}{'how':18}{'calls':>7}{'wrong':>7}")
    total = Tally()
    for work in WORK:
        for how in ("signal=SIGKILL", "error=ENOSPC", "error=EIO", "error=EACCES", "error=EINTR"):
            tally = interfere(base, work, how, 1, syscalls.CHANGING if "SIGKILL" in how else _FAILING)
            print(f"{work:26}{how:18}{tally.schedules:7}{sum(tally.wrong.values()):7}")
            total.wrong += tally.wrong
            total.examples |= tally.examples

    assert not total.wrong, total.examples

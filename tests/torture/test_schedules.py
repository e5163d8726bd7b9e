"""Every step of a commit x one foreign writer x kills: nothing lost, nothing twice, nothing torn."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torture.explorer import Tally, count_steps, fresh, run, run_killed
from tests.torture.service import Arena
from tests.torture.writers import KINDS, Schedule, Writer, actions, scripts

_SEED = 20261127
_SAMPLE = 12
"""Schedules of each kind in the quick run; `make torture` takes all of them."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the role lies: in memory where there is such a place, because the steps are what is tested here."""
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK):
        path = memory / f"echod-schedules-{os.getpid()}"
        yield path
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        yield tmp_path_factory.mktemp("schedules") / "arena"


def _target(base: Path, target: str) -> Path:
    role = Arena(base).role
    return role.memory if target == "memory" else role.path / "a-findings.md"


def explore(base: Path, target: str, kind: str, sample: int | None) -> Tally:
    steps, tally = count_steps(base), Tally()
    every = list(scripts(kind, _target(base, target), steps))
    chosen = every if sample is None or sample >= len(every) else random.Random(_SEED).sample(every, sample)
    for name, writer, schedule in chosen:
        tally.add(name, run(base, lambda _arena, w=writer, s=schedule: (w, s)))  # type: ignore[misc]
    return tally


def explore_killed(base: Path, kinds: tuple[str, ...], runs: int, seed: int) -> Tally:
    """Random schedules of one or two writers that take turns, with up to three kills, some of them in recovery."""
    rnd, tally, steps = random.Random(seed), Tally(), count_steps(base)
    for number in range(runs):
        fresh(base)
        schedule: Schedule = {}
        writers = []
        for turn, kind in enumerate(rnd.sample(kinds, rnd.randint(1, 2))):
            target, way = kind.split("-")
            writer = Writer(_target(base, target), f"x{turn}")
            writers.append(writer)
            steps_of = actions(way, writer)
            start = turn * steps
            for at, action in zip(sorted(rnd.randrange(steps) for _ in steps_of), steps_of, strict=True):
                schedule.setdefault(start + at, []).append(action)
        kills = {rnd.randrange(steps + 8) for _ in range(rnd.randint(1, 3))}
        name = f"seed {seed} run {number}: {[w.path.name for w in writers]} kills {sorted(kills)}"
        done, wrong = run_killed(base, schedule, writers, kills)
        tally.kills += done
        tally.add(name, wrong)
    return tally


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["memory", "findings"])
def test_one_writer_at_any_step(base: Path, target: str, kind: str) -> None:
    tally = explore(base, target, kind, _SAMPLE)

    assert not tally.wrong, tally.examples


ALL = tuple(f"{target}-{kind}" for target in ("memory", "findings") for kind in KINDS)


def test_writers_and_kills_at_any_step(base: Path) -> None:
    tally = explore_killed(base, ALL, 20, _SEED)

    assert tally.kills > 0
    assert not tally.wrong, tally.examples


def test_a_kill_at_every_step_of_two_turns(base: Path) -> None:
    tally = Tally()

    for step in range(count_steps(base)):
        fresh(base)
        done, wrong = run_killed(base, {}, [], {step})
        tally.kills += done
        tally.add(f"killed at {step}", wrong)

    assert tally.kills == tally.schedules
    assert not tally.wrong, tally.examples


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_every_schedule(base: Path) -> None:
    print(f"\n{'target':10}{'writer':10}{'schedules':>10}{'wrong':>7}")
    total = Tally()
    for target in ("memory", "findings"):
        for kind in KINDS:
            tally = explore(base, target, kind, None)
            print(f"{target:10}{kind:10}{tally.schedules:10}{sum(tally.wrong.values()):7}")
            total.wrong += tally.wrong
            total.examples |= tally.examples
    tally = explore_killed(base, ALL, 2000, _SEED)
    print(f"{'both':10}{'1-2, kills':10}{tally.schedules:10}{sum(tally.wrong.values()):7}   {tally.kills} kills")

    assert not total.wrong + tally.wrong, total.examples | tally.examples

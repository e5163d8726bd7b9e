"""Git, full disks, wrong clocks and links beside a commit and beside a kill: nothing lost, twice, torn or exposed."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.torture.disturbances import (
    GIT,
    LINKS,
    count_steps,
    disturb,
    disturb_links,
    full_disk,
    make_repository,
    wrong_clocks,
)
from tests.torture.explorer import Tally

_SEED = 20261128
_SAMPLE = int(os.environ.get("TORTURE_SAMPLE", "1"))
"""Schedules of each kind in the quick run."""
_EVERY = int(os.environ.get("TORTURE_EVERY", "1"))
"""`make torture` disturbs every step, or every n-th."""
_RUNS = int(os.environ.get("TORTURE_RUNS", "60"))
"""Random runs with full disks and wrong clocks in `make torture`."""

requires_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path / "arena"
        return
    path = memory / f"echod-disturbances-{os.getpid()}"
    yield path
    shutil.rmtree(path, ignore_errors=True)


def explore_git(base: Path, name: str, steps: list[int]) -> Tally:
    """Let git act at these steps, beside the living service and after a kill."""
    tally = Tally()
    for at in steps:
        for kill in (True, False):
            tally.add(
                f"{name} at {at}{', killed' * kill}", disturb(base, at, GIT[name], kill=kill, prepare=make_repository)
            )
    return tally


def explore_links(base: Path, name: str, steps: list[int]) -> Tally:
    """Let links appear at these steps, beside the living service and after a kill."""
    tally = Tally()
    for at in steps:
        for kill in (True, False):
            tally.add(f"{name} at {at}{', killed' * kill}", disturb_links(base, at, name, kill=kill))
    return tally


@requires_git
@pytest.mark.parametrize("name", GIT)
def test_git_at_some_steps(base: Path, name: str) -> None:
    steps = random.Random(f"{_SEED}{name}").sample(range(count_steps(base)), _SAMPLE)

    tally = explore_git(base, name, steps)

    assert not tally.wrong, tally.examples


@pytest.mark.parametrize("name", LINKS)
def test_links_at_some_steps(base: Path, name: str) -> None:
    steps = random.Random(f"{_SEED}{name}").sample(range(count_steps(base)), _SAMPLE)

    tally = explore_links(base, name, steps)

    assert not tally.wrong, tally.examples


@pytest.mark.parametrize("seed", range(_SAMPLE))
def test_wrong_clocks(base: Path, seed: int) -> None:
    assert wrong_clocks(base, seed) == []


@pytest.mark.parametrize("full", ["project", "journal"])
def test_a_full_disk_with_kills(base: Path, full: str) -> None:
    for seed in range(_SAMPLE):
        wrong = full_disk(base, full, seed)
        if wrong == ["skipped"]:
            pytest.skip("mounting a small disk needs root")
        assert wrong == [], seed


def _at_every_step(explore: Callable[[Path, str, list[int]], Tally], name: str, base: Path) -> Tally:
    return explore(base, name, list(range(0, count_steps(base), _EVERY)))


def _random_runs(kind: str, base: Path) -> Tally:
    tally = Tally()
    for seed in range(_RUNS):
        wrong = wrong_clocks(base, seed) if kind == "clocks" else full_disk(base, kind, seed)
        if wrong != ["skipped"]:
            tally.add(f"{kind}, seed {seed}", wrong)
    return tally


ROWS: dict[str, Callable[[Path], Tally]] = {
    **{f"git: {name}": partial(_at_every_step, explore_git, name) for name in GIT},
    **{f"links: {name}": partial(_at_every_step, explore_links, name) for name in LINKS},
    "wrong clocks": partial(_random_runs, "clocks"),
    "full disk: project": partial(_random_runs, "project"),
    "full disk: journal": partial(_random_runs, "journal"),
}


@requires_git
@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("title", ROWS)
def test_every_disturbance(base: Path, title: str) -> None:
    tally = ROWS[title](base)

    print(f"\n{tally.row(title)}")
    assert not tally.wrong, tally.examples

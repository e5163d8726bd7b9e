"""Every step of a commit x one foreign writer x kills: nothing lost, nothing twice, nothing torn."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torture.campaigns import ALL, SEED, TARGETS, explore, explore_killed, explore_revisions, kill_at_every_step
from tests.torture.explorer import Tally
from tests.torture.writers import KINDS

_SAMPLE = 12
"""Schedules of each kind in the quick run. `make torture` runs all of them."""
_REVISIONS = 40
"""Random schedules of a writer that updates its entry. `make torture` runs two thousand."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Use a file system in memory if there is one, because this tests the steps, not the disk."""
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK):
        path = memory / f"echod-schedules-{os.getpid()}"
        yield path
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    else:
        yield tmp_path_factory.mktemp("schedules") / "arena"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_one_writer_at_any_step(base: Path, target: str, kind: str) -> None:
    tally = explore(base, target, kind, _SAMPLE)

    assert not tally.wrong, tally.examples


def test_no_older_version_of_an_entry_is_beside_or_instead_of_a_newer_one(base: Path) -> None:
    tally = explore_revisions(base, _REVISIONS, SEED)

    assert not tally.wrong, tally.examples


def test_writers_and_kills_at_any_step(base: Path) -> None:
    tally = explore_killed(base, ALL, 20, SEED)

    assert tally.kills > 0
    assert not tally.wrong, tally.examples


def test_a_kill_at_every_step_of_two_turns(base: Path) -> None:
    tally = kill_at_every_step(base)

    assert tally.kills == tally.schedules
    assert not tally.wrong, tally.examples


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_every_schedule(base: Path, target: str, kind: str) -> None:
    _judge(f"{target} {kind}", explore(base, target, kind, None))


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_two_thousand_schedules_of_a_writer_that_updates_its_entry(base: Path) -> None:
    _judge("memory revise", explore_revisions(base, 2000, SEED))


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(4))
def test_two_thousand_schedules_with_kills(base: Path, part: int) -> None:
    _judge("both 1-2, kills", explore_killed(base, ALL, 500, SEED + part))


def _judge(title: str, tally: Tally) -> None:
    print(f"\n{tally.row(title)}")
    assert not tally.wrong, tally.examples

"""The product's own jobs among foreign writers and kills: archived and condensed text is not lost either."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from tests.torture.campaigns import ALL, MIXES, SEED, TARGETS, explore, explore_killed, is_harmless, kill_at_every_step
from tests.torture.explorer import Tally, create_project, run_until_idle
from tests.torture.product_jobs import ProductJobsProject
from tests.torture.storm import Storm, engine_service, run_storm, table
from tests.torture.writers import KINDS

_SHM = Path("/dev/shm")  # this tests the steps, not the disk


@pytest.fixture
def base() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(dir=_SHM if _SHM.is_dir() else None))
    yield directory / "arena"
    rmtree(directory)


def test_the_jobs_have_work_to_do(base: Path) -> None:
    run_until_idle(create_project(base, ProductJobsProject))

    project = ProductJobsProject(base)
    assert {entry.rule for entry in project.archived()} >= {"lowest-inscribed"}
    assert project.role.knowledge.read_text().count("## ") > 0
    assert list(project.role.path.glob("archive/MEMORY-*.md"))
    assert not project.findings()


def test_writers_and_kills_at_any_step(base: Path) -> None:
    tally = explore_killed(base, ALL, 8, SEED, ProductJobsProject)

    assert tally.kills > 0
    assert not tally.wrong, tally.examples


def test_a_storm_with_kills_loses_nothing(base: Path) -> None:
    outcome = run_storm(base, Storm(MIXES["all of them"], 2, seed=11, kills=True), engine_service, ProductJobsProject)

    print(table({"all of them": outcome}))
    assert len(ProductJobsProject(base).archived()) > 100
    assert outcome.kills > 5
    assert is_harmless(outcome), outcome.names


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_many_schedules_and_storms(base: Path) -> None:
    print(f"\n{'target':10}{'writer':10}{'schedules':>10}{'wrong':>7}{'kills':>7}")
    total = Tally()

    def note(target: str, writer: str, tally: Tally) -> None:
        print(f"{target:10}{writer:10}{tally.schedules:10}{sum(tally.wrong.values()):7}{tally.kills:7}")
        total.wrong += tally.wrong
        total.examples |= tally.examples

    for target in TARGETS:
        for kind in KINDS:
            note(target, kind, explore(base, target, kind, 60, ProductJobsProject))
    note("both", "1-2", explore_killed(base, ALL, 200, SEED, ProductJobsProject))
    note("", "none", kill_at_every_step(base, ProductJobsProject))
    rows = {
        name: run_storm(base, Storm(mix, 10, seed=number, kills=True), engine_service, ProductJobsProject)
        for number, (name, mix) in enumerate(MIXES.items())
    }
    print(f"\n{table(rows)}")

    assert not total.wrong, total.examples
    assert all(map(is_harmless, rows.values())), rows

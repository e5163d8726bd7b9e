"""The product's own jobs among foreign writers and kills: archived and condensed text is not lost either."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from echod.memory.archive import render_archived_entries
from tests.torture.campaigns import ALL, MIXES, SEED, TARGETS, explore, explore_killed, is_harmless, kill_at_every_step
from tests.torture.entries import entry, name_of, named_entries
from tests.torture.explorer import Tally, create_project, find_problems, run_until_idle
from tests.torture.product_jobs import PRUNE, ProductJobsProject
from tests.torture.storm import Storm, engine_service, run_storm, table
from tests.torture.writers import KINDS

_SHM = Path("/dev/shm")  # this tests the steps, not the disk


@pytest.fixture
def base() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(dir=_SHM if _SHM.is_dir() else None))
    yield directory / "arena"
    rmtree(directory)


@pytest.fixture(scope="module")
def pruned() -> Iterator[Path]:
    """Return the directory of a project in which the jobs have done all of their work. Tests change copies."""
    directory = Path(tempfile.mkdtemp(dir=_SHM if _SHM.is_dir() else None))
    run_until_idle(create_project(directory / "arena", ProductJobsProject))
    yield directory / "arena"
    rmtree(directory)


@pytest.fixture
def project(pruned: Path, base: Path) -> ProductJobsProject:
    copytree(pruned, base)
    return ProductJobsProject(base)


def test_the_jobs_have_work_to_do(project: ProductJobsProject) -> None:
    assert {entry.rule for entry in project.archived()} >= {"condensed", "lowest-learning"}
    assert project.role.knowledge.read_text().count("## ") > 0
    assert list(project.role.path.glob("archive/MEMORY-*.md"))
    assert not project.findings()
    assert not find_problems(project, [])


class TestDamageIsFound:
    """The checker would be worthless if it accepted any short entry."""

    def test_a_shortened_entry_whose_whole_text_is_not_in_the_archive(self, project: ProductJobsProject) -> None:
        _remove_records(project, "p003")

        assert find_problems(project, []) == ["torn: p003"]

    def test_a_removed_entry_of_which_the_archive_has_only_the_short_form(self, project: ProductJobsProject) -> None:
        removed = next(entry for entry in project.archived() if name_of(entry.text) == "w0")
        short = replace(removed, text=removed.text.replace("\nIn version", " In version"))
        records = [short if entry == removed else entry for entry in project.archived()]
        _archive(project).write_bytes(render_archived_entries(records, PRUNE))

        assert find_problems(project, []) == [f"torn in the archive: {short.id}"]

    def test_a_removed_entry_that_is_not_in_the_archive(self, project: ProductJobsProject) -> None:
        _remove_records(project, "w0")

        assert find_problems(project, []) == ["lost: w0"]

    def test_a_changed_record(self, project: ProductJobsProject) -> None:
        _change(_archive(project), entry("p003").splitlines()[4] + b"\n", b"It was learned.\n")

        problems = find_problems(project, [])
        assert "torn: p003" in problems
        assert any(problem.startswith("damaged in the archive: ") for problem in problems)

    def test_an_entry_twice(self, project: ProductJobsProject) -> None:
        project.memory.write_bytes(project.memory.read_bytes() + _block(project, "p003").encode() + b"\n\n")

        assert find_problems(project, []) == ["twice: p003"]

    @pytest.mark.parametrize(
        "tear",
        [
            lambda text, _other: text[:-1],
            lambda text, _other: text[: len(text) // 2],
            lambda text, _other: text.partition(" In version")[0],
            lambda text, _other: re.sub("It was learned.*? In", "In", text),
            lambda text, _other: text.partition("\n")[0],
            lambda text, _other: text.replace("learned", "lear\nned"),
            lambda text, other: f"{text}\n{other.splitlines()[-1]}",
            lambda text, other: f"{text.partition(' In version')[0]} {other.partition(' In ')[2]}",
            lambda text, other: text.replace(text.splitlines()[-1], other.splitlines()[-1]),
        ],
        ids=["last byte", "half", "end", "start", "title only", "broken line", "added", "mixed", "exchanged"],
    )
    def test_a_torn_entry(self, project: ProductJobsProject, tear: Callable[[str, str], str]) -> None:
        text = _block(project, "p003")
        _change(project.memory, text.encode(), tear(text, _block(project, "p004")).encode())

        assert find_problems(project, []) == ["torn: p003"]


def _block(project: ProductJobsProject, name: str) -> str:
    return dict(named_entries(project.memory.read_bytes()))[name]


def _archive(project: ProductJobsProject) -> Path:
    return next(project.role.path.glob("archive/pruned-*.md"))


def _change(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))


def _remove_records(project: ProductJobsProject, name: str) -> None:
    kept = [item for item in project.archived() if name_of(item.text) != name]
    assert len(kept) < len(project.archived())
    _archive(project).write_bytes(render_archived_entries(kept, PRUNE))


@pytest.mark.slow
def test_writers_and_kills_at_any_step(base: Path) -> None:
    tally = explore_killed(base, ALL, 8, SEED, ProductJobsProject)

    assert tally.kills > 0
    assert not tally.wrong, tally.examples


@pytest.mark.slow
def test_a_storm_with_kills_loses_nothing(base: Path) -> None:
    outcome = run_storm(base, Storm(MIXES["all of them"], 2, seed=11, kills=True), engine_service, ProductJobsProject)

    print(table({"all of them": outcome}))
    assert len(ProductJobsProject(base).archived()) > 100
    assert outcome.kills > 5
    assert is_harmless(outcome), outcome.names


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_many_schedules(base: Path, target: str, kind: str) -> None:
    _judge(f"{target} {kind}", explore(base, target, kind, 60, ProductJobsProject))


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_many_schedules_with_kills(base: Path) -> None:
    _judge("both 1-2, kills", explore_killed(base, ALL, 200, SEED, ProductJobsProject))


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_a_kill_at_every_step(base: Path) -> None:
    _judge("kill at every step", kill_at_every_step(base, ProductJobsProject))


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mix", MIXES)
def test_a_long_storm(base: Path, mix: str) -> None:
    seed = list(MIXES).index(mix)
    outcome = run_storm(base, Storm(MIXES[mix], 10, seed=seed, kills=True), engine_service, ProductJobsProject)

    print(f"\n{table({mix: outcome})}")
    assert is_harmless(outcome), outcome.names


def _judge(title: str, tally: Tally) -> None:
    print(f"\n{tally.row(title)}")
    assert not tally.wrong, tally.examples

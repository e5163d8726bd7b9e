"""The prune job on real files: killed at every step, its archives, its backups, its first run held."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from echod.clock import local_date
from echod.files import file_version
from echod.inspection import InspectionCache
from echod.inspection.review import FIRST_PRUNE_HOLD_SECONDS
from echod.jobs.base import JobBlocked, JobDeferred, JobDone
from echod.memory import MAX_FILE_BYTES
from echod.memory.archive import MAX_ARCHIVE_BYTES, read_archive
from echod.memory.document import parse
from echod.memory.model import Document
from echod.state.queue import MAX_DEFERRAL_SECONDS
from echod.status.collect import inspect_store
from echod.store import layout
from echod.store.commit.context import CommitStep
from echod.store.layout import list_roles
from tests.jobs.site import Site, site_at_noon
from tests.life.files import MEMORY_HEADER, TODAY, learning_text, observation_text, protected_entries
from tests.support import run_in_child


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return site_at_noon(tmp_path)


def mixed_memory() -> str:
    return (
        MEMORY_HEADER
        + protected_entries(2)
        + "".join(learning_text(f"learning {n}", age=n, lines=20) for n in range(12))
        + "".join(learning_text(f"trace {n}", "traced", age=n) for n in range(6))
        + "".join(observation_text(f"task {n}", age=n) for n in range(20))
    )


def block_texts(data: bytes) -> list[str]:
    document = parse(data)
    assert isinstance(document, Document)
    return [block.text.rstrip() for block in document.blocks]


class _KillAtStep:
    """Kills its own process at the step of that number."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, step: CommitStep) -> None:
        del step
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


def test_killed_at_any_step_nothing_is_lost_and_the_next_run_ends_it(tmp_path: Path, site: Site) -> None:
    kills = 0
    for at in range(1000):
        there = Site(tmp_path / str(at), site.now)
        there.write(mixed_memory())
        before = there.role.memory.read_bytes()

        code = run_in_child(partial(there.prune, trace=_KillAtStep(at)))

        assert code in (0, -signal.SIGKILL)
        left = there.all_text()
        assert [text for text in block_texts(before) if text not in left] == [], f"lost when killed at step {at}"
        again = there.prune(job=2)
        assert isinstance(again, JobDone)
        left = there.all_text()
        assert [text for text in block_texts(before) if text not in left] == [], f"lost by the repair after step {at}"
        assert there.role.memory.read_text().count("\n") <= 100
        backups = [path for path in there.role.path.glob("archive/MEMORY-*") if path.read_bytes() == before]
        assert len(backups) == 1
        if code == 0:
            break
        kills += 1
    assert kills > 5


def test_the_archive_tells_of_each_entry_and_gives_it_back(site: Site) -> None:
    site.write(mixed_memory())
    before = block_texts(site.role.memory.read_bytes())

    site.prune(job=17)

    entries = read_archive((site.role.path / f"archive/pruned-{TODAY.year}.md").read_bytes()).entries
    assert {entry.job for entry in entries} == {17}
    assert all(entry.text.rstrip() in before for entry in entries)
    assert {"condensed", "lowest-learning"} & {entry.rule for entry in entries}


def test_a_full_archive_is_followed_by_another(site: Site) -> None:
    site.write(mixed_memory())
    full = site.role.path / f"archive/pruned-{TODAY.year}.md"
    full.parent.mkdir()
    full.write_bytes(b"x" * MAX_ARCHIVE_BYTES)

    site.prune()

    assert full.stat().st_size == MAX_ARCHIVE_BYTES
    second = site.role.path / f"archive/pruned-{TODAY.year}-2.md"
    assert read_archive(second.read_bytes()).entries


def test_a_backup_that_is_there_already_is_not_made_again(site: Site) -> None:
    site.write(mixed_memory())
    backup = site.role.path / "archive/MEMORY-2026-01-01.md"
    backup.parent.mkdir()
    backup.write_bytes(site.role.memory.read_bytes())

    site.prune()

    assert {name for name in site.archive_names() if name.startswith("MEMORY-")} == {backup.name}


def test_a_second_backup_of_a_day_has_a_name_of_its_own(site: Site) -> None:
    site.write(mixed_memory())
    site.prune()
    site.write(mixed_memory() + "".join(learning_text(f"more {n}") for n in range(9)))

    site.prune(job=2)

    backups = {name for name in site.archive_names() if name.startswith("MEMORY-")}
    assert backups == {f"MEMORY-{TODAY}.md", f"MEMORY-{TODAY}-2.md"}


class TestHeld:
    def test_a_first_prune_of_more_than_half_waits_a_day_and_is_done_then(self, site: Site) -> None:
        site.write(mixed_memory())
        before = site.role.memory.read_bytes()
        began = site.now

        first = site.prune(release_first=False)
        site.now += 3600
        second = site.prune(release_first=False)

        assert isinstance(first, JobDeferred)
        assert isinstance(second, JobDeferred)
        assert first.until == second.until == began + FIRST_PRUNE_HOLD_SECONDS
        assert site.role.memory.read_bytes() == before
        site.now = began + FIRST_PRUNE_HOLD_SECONDS
        assert isinstance(site.prune(release_first=False), JobDone)
        assert site.role.memory.read_bytes() != before

    def test_the_queue_lets_it_wait_for_all_of_that_day(self) -> None:
        assert FIRST_PRUNE_HOLD_SECONDS <= MAX_DEFERRAL_SECONDS

    def test_a_clock_that_was_set_back_holds_nothing_for_ever(self, site: Site) -> None:
        site.write(mixed_memory())
        site.prune(release_first=False)

        site.now -= 10 * 86_400

        assert isinstance(site.prune(release_first=False), JobDone)

    def test_less_than_half_goes_at_once_and_so_does_more_afterwards(self, site: Site) -> None:
        site.write(
            MEMORY_HEADER
            + "".join(learning_text(f"learning {n}") for n in range(12))
            + "".join(observation_text(f"task {n}") for n in range(12))
        )
        assert isinstance(site.prune(release_first=False), JobDone)
        site.write(mixed_memory())

        assert isinstance(site.prune(release_first=False, job=2), JobDone)

    def test_nothing_is_held_that_is_only_reported(self, site: Site) -> None:
        site.write(mixed_memory())

        outcome = site.prune(release_first=False, allow_writes=False)

        assert isinstance(outcome, JobDone)
        assert not outcome.changed
        assert not site.archive_names()


def test_inscribed_entries_go_a_few_a_day_however_often_it_runs(site: Site) -> None:
    site.write(MEMORY_HEADER + "".join(learning_text(f"learning {n}", age=n) for n in range(30)))

    kept = []
    for day in range(3):
        for run in range(3):
            site.prune(job=1 + 3 * day + run)
        kept.append(len(block_texts(site.role.memory.read_bytes())))
        site.now += 86_400

    assert kept == [24, 20, 16]


def test_an_absent_memory_file_is_nothing_to_prune(site: Site) -> None:
    site.role.path.mkdir(parents=True)

    outcome = site.prune()

    assert outcome == JobDone("nothing to do; 0 -> 0 lines", changed=False)
    assert list(site.role.path.iterdir()) == []


def write_binary(knowledge: Path) -> None:
    knowledge.write_bytes(b"# Reviewer Knowledge\n\xff\xfe")


def write_conflict(knowledge: Path) -> None:
    knowledge.write_text("# Reviewer Knowledge\n<<<<<<< ours\none\n=======\ntwo\n>>>>>>> theirs\n")


def write_too_large(knowledge: Path) -> None:
    knowledge.write_bytes(b"x" * (MAX_FILE_BYTES + 1))


def replace_by_link(knowledge: Path) -> None:
    knowledge.with_name("elsewhere.md").write_text("# Elsewhere\n")
    knowledge.symlink_to("elsewhere.md")


def replace_by_directory(knowledge: Path) -> None:
    knowledge.mkdir()


@pytest.mark.parametrize(
    "make",
    [write_binary, write_conflict, write_too_large, replace_by_link, replace_by_directory],
    ids=lambda f: f.__name__,
)
class TestAKnowledgeFileThatCannotTakeAnythingUp:
    def test_keeps_nothing_from_the_archive_and_is_reported(self, site: Site, make: Callable[[Path], None]) -> None:
        site.write(mixed_memory())
        make(site.role.knowledge)
        before, knowledge = block_texts(site.role.memory.read_bytes()), file_version(site.role.knowledge.lstat())

        done = site.prune()

        assert isinstance(done, JobDone)
        assert done.changed
        assert f"{layout.KNOWLEDGE} cannot be extended: " in done.summary
        assert site.role.memory.read_text().count("\n") <= 100
        assert file_version(site.role.knowledge.lstat()) == knowledge
        assert [text for text in before if text not in site.all_text()] == []

    def test_is_not_waited_for_by_compress_and_named_in_the_status(
        self, site: Site, make: Callable[[Path], None]
    ) -> None:
        site.write(MEMORY_HEADER)
        make(site.role.knowledge)

        outcome = site.compress()
        (role,) = inspect_store(InspectionCache(), site.role.store, list_roles(site.role.store), 150, None).roles

        assert isinstance(outcome, JobBlocked)
        assert layout.KNOWLEDGE in outcome.reason
        assert role.problem is not None
        assert layout.KNOWLEDGE in role.problem
        assert role.lines == 4


def test_a_knowledge_file_that_is_being_written_is_waited_for(site: Site) -> None:
    site.write(mixed_memory())
    with site.role.knowledge.open("w") as writer:
        writer.write("# Reviewer Knowledge\n")
        waits = site.prune()

    assert isinstance(waits, JobDeferred)
    assert layout.KNOWLEDGE in waits.reason
    assert isinstance(site.prune(), JobDone)
    assert site.role.knowledge.read_text().count("## ") >= 1


def test_the_local_day_decides(site: Site) -> None:
    assert local_date(site.now) == TODAY
    assert local_date(site.now + 86_400) == TODAY + timedelta(days=1)

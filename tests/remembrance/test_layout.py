"""`echod migrate --layout`: every half-migrated state, every entry kept once, undo, and a kill at every step."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from echod.jobs.base import JobDone, JobResources
from echod.jobs.migrate import move_role
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.policy_model import PolicySettings
from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.store.changes import no_gate
from echod.store.commit.context import CommitStep, Tracer, no_trace
from echod.store.engine import Engine
from echod.store.errors import EngineLimits
from echod.store.layout import Role, Store
from tests.remembrance.conftest import Project, entry_text
from tests.support import run_in_child

OLD, NEW = ".claude/echoes", ".rune/echoes"


def titles(file: Path) -> list[str]:
    if not file.exists():
        return []
    document = parse(file.read_bytes())
    assert isinstance(document, Document)
    return [block.entry.title for block in document.blocks if block.entry]


def migrate(project: Project, *words: str) -> int:
    result = project.echod("migrate", "--layout", "--yes", *words)
    print(result.output)
    return result.code


def test_a_memory_of_the_former_layout_moves_as_it_is(project: Project) -> None:
    (project.root / NEW).rmdir()
    (project.root / ".rune").rmdir()
    old = project.write(entry_text("One"), entry_text("Two", day="2026-03-01"), store=OLD)
    knowledge = old.with_name("knowledge.md")
    knowledge.write_text("# Reviewer Knowledge\n\n## Queries\n\n- Load them together.\n")
    finding = old.with_name("ward-findings.md")
    finding.write_text("- Check the length.\n")
    before = {file.name: file.read_bytes() for file in (old, knowledge, finding)}

    result = project.echod("migrate", "--layout", "--yes")

    assert result.code == 0, result.output
    moved = project.root / NEW / "reviewer"
    assert {file.name: file.read_bytes() for file in moved.iterdir() if file.is_file()} == before
    assert not any(file.exists() for file in (old, knowledge, finding))
    archived = [file.read_bytes() for file in old.parent.rglob("*.md")]
    assert sorted(archived) == sorted(before.values())
    assert not (project.root / ".rune/.migration-lock").exists()
    assert "left to move" in project.echod("migrate", "--layout").output


def test_undo_restores_both_layouts(project: Project) -> None:
    project.write(entry_text("One"), store=OLD)
    project.write(entry_text("Two", day="2026-03-01"), store=NEW)
    before = project.tree()
    migrate(project)

    assert project.echod("undo", "--last", "--yes").code == 0

    after = project.tree()
    assert {name: after.get(name) for name in before} == before
    assert {name for name in after.keys() - before.keys() if "/archive/" not in name} == set()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (["One"], [], ["One"]),
        (["One"], ["One"], ["One"]),
        (["One", "Two"], ["Two"], ["One", "Two"]),
        (["One"], ["Two"], ["One", "Two"]),
        (["One", "Two", "Three"], ["Three", "One"], ["One", "Three", "Two"]),
    ],
)
def test_half_migrated_memories_have_every_entry_once(
    project: Project, old: list[str], new: list[str], expected: list[str]
) -> None:
    former = project.write(*(entry_text(title, source=title) for title in old), store=OLD)
    present = project.memory(store=NEW)
    if new:
        project.write(*(entry_text(title, source=title) for title in new), store=NEW)

    assert migrate(project) == 0

    assert sorted(titles(present)) == expected
    assert not former.exists()


def test_an_entry_that_both_changed_stays_as_the_present_layout_has_it(project: Project) -> None:
    old = project.write(entry_text("One", "- the old words"), store=OLD)
    project.write(entry_text("One", "- the new words"), store=NEW)

    assert migrate(project) == 0

    assert titles(project.memory()) == ["One"]
    assert "the new words" in project.memory().read_text()
    assert any("the old words" in file.read_text() for file in (old.parent / "archive").rglob("*.md"))


def test_history_follows_the_entries(project: Project) -> None:
    project.write(entry_text("One"), store=OLD)
    identity = next(line.split()[0] for line in project.echod("show", "--json").output.split('"id": "')[1:])[:12]
    project.echod("pin", identity)
    migrate(project)

    assert "pinned until" in project.echod("explain", identity).output


def test_a_role_that_cannot_be_read_stays_and_the_others_move(project: Project) -> None:
    broken = project.write(role="auditor", store=OLD)
    broken.write_bytes(b"\xff\xfe")
    project.write(entry_text("One"), store=OLD)

    result = project.echod("migrate", "--layout", "--yes")

    assert result.code == 0
    assert "auditor stays" in result.output
    assert broken.read_bytes() == b"\xff\xfe"
    assert titles(project.memory()) == ["One"]


def test_a_dry_run_and_a_question_write_nothing(project: Project) -> None:
    project.write(entry_text("One"), store=OLD)
    before = project.tree()

    assert migrate(project, "--dry-run") == 0
    assert project.echod("migrate", "--layout").code == 2
    assert project.tree() == before


def test_another_migration_is_waited_for_unless_its_program_was_killed(project: Project) -> None:
    old = project.write(entry_text("One"), store=OLD)
    lock = project.root / ".rune/.migration-lock"
    lock.mkdir()

    assert migrate(project) == 1
    assert old.exists()

    past = time.time() - 400
    os.utime(lock, (past, past))
    assert migrate(project) == 0
    assert lock.is_dir()
    assert titles(project.memory()) == ["One"]


@pytest.mark.parametrize("link", [".claude/echoes", ".rune/echoes", ".claude/echoes/reviewer"])
def test_no_link_is_followed(project: Project, tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    (outside / "reviewer").mkdir(parents=True)
    (outside / "MEMORY.md").write_text(entry_text("Outside"))
    (outside / "reviewer/MEMORY.md").write_text(entry_text("Outside"))
    before = sorted(str(path) for path in outside.rglob("*"))
    if not link.startswith(".claude"):
        project.write(entry_text("One"), store=OLD)
        (project.root / NEW).rmdir()
    (project.root / link).parent.mkdir(parents=True, exist_ok=True)
    (project.root / link).symlink_to(outside)

    project.echod("migrate", "--layout", "--yes")

    assert sorted(str(path) for path in outside.rglob("*")) == before
    assert link.startswith(".rune") or titles(project.memory()) == []


def test_a_copy_of_a_project_is_not_migrated(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = project.root / ".claude/worktrees/one"
    file = copy / OLD / "reviewer/MEMORY.md"
    file.parent.mkdir(parents=True)
    file.write_text(entry_text("One"))
    monkeypatch.chdir(copy)

    result = project.echod("migrate", "--layout", "--yes", str(copy))

    assert result.code == 1
    assert "is a copy of" in result.output
    assert file.exists()


def test_files_that_are_no_memory_stay_and_are_named(project: Project) -> None:
    project.write(entry_text("One"), store=OLD)
    others = [project.root / OLD / name for name in ("README.md", "odd/notes.txt", ".search-index.db")]
    for file in others:
        file.parent.mkdir(exist_ok=True)
        file.write_text("own")

    output = project.echod("migrate", "--layout", "--yes").output

    assert "no memory stay: README.md, odd/notes.txt" in " ".join(output.split())
    assert all(file.exists() for file in others)


def test_a_tracked_memory_is_named(project: Project) -> None:
    project.write(entry_text("One"), store=OLD)
    subprocess.run(["git", "init", "-q", str(project.root)], check=True)
    subprocess.run(["git", "-C", str(project.root), "add", "-A"], check=True)

    assert "git tracks" in project.echod("migrate", "--layout", "--dry-run").output


def run_move(root: Path, trace: Tracer = no_trace, *, seconds_later: float = 0) -> None:
    def clock() -> float:
        return time.time() + seconds_later

    role = Role(Store(root / "project", root / "project" / OLD), "reviewer")
    engine = Engine(root / "state/journal", limits=EngineLimits(), clock=clock, trace=trace)
    with Database.open(root / "state/echod.db") as database:
        resources = JobResources(1, engine, EntryStore(database), PolicySettings(), no_gate, clock)
        assert isinstance(move_role(resources, role), JobDone)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("step", list(CommitStep))
def test_a_kill_at_any_step_loses_and_doubles_nothing(tmp_path: Path, step: CommitStep, count: int) -> None:
    root = tmp_path.resolve()
    old, new = (root / "project" / store / "reviewer/MEMORY.md" for store in (OLD, NEW))
    for file, names in ((old, ("One", "Two")), (new, ("Three", "Two"))):
        file.parent.mkdir(parents=True)
        file.write_text("# Memory\n\n" + "\n".join(entry_text(name, source=name) for name in names))
    old.with_name("ward-findings.md").write_text("- Check the length.\n")
    seen = 0

    def kill(passed: CommitStep) -> None:
        nonlocal seen
        seen += passed is step
        if seen == count and passed is step:
            os._exit(137)

    run_in_child(lambda: run_move(root, kill))
    between = {*titles(old), *titles(new)}
    assert between == {"One", "Two", "Three"}
    run_move(root, seconds_later=60)

    assert sorted(titles(new)) == ["One", "Three", "Two"]
    assert not old.exists()
    assert new.with_name("ward-findings.md").read_text() == "- Check the length.\n"
    assert len(list(new.parent.glob("*-findings.md"))) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["one/MEMORY.md"], []),
        (["one/MEMORY.md"], ["two/MEMORY.md"]),
        (["one/MEMORY.md"], ["one/knowledge.md"]),
        (["one/knowledge.md"], ["one/MEMORY.md"]),
        (["one/knowledge.md"], ["one/knowledge.md"]),
        (["one/ward-findings.md"], ["one/ward-findings.md"]),
        (["one/MEMORY.md", "one/ward-findings.md", "two/MEMORY.md"], ["one/MEMORY.md", "two/knowledge.md"]),
        (["one/MEMORY.md", "one/archive/pruned-2026.md"], ["one/archive/pruned-2026.md"]),
        (["one/archive/pruned-2026.md"], ["one/MEMORY.md"]),
    ],
    ids=lambda names: "+".join(names) or "nothing",
)
def test_no_line_of_a_partly_moved_layout_is_lost_or_there_twice(
    project: Project, old: list[str], new: list[str]
) -> None:
    for store, names in ((OLD, old), (NEW, new)):
        for name in names:
            file = project.root / store / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"# Memory\n\n{entry_text(f'{name} of {store}', source=f'{store}/{name}')}")
    before = {line for data in project.tree().values() for line in data.decode().splitlines()}

    migrate(project)

    after = project.tree()
    assert before <= {line for data in after.values() for line in data.decode().splitlines()}
    assert [name for name in after if name.startswith(str(OLD)) and "/archive/" not in name] == []
    visible = [data for name, data in after.items() if name.startswith(str(NEW)) and "/archive/" not in name]
    moved = [name for name in old if "/archive/" not in name]
    for name in moved:
        assert sum(data.count(f"{name} of {OLD}\n".encode()) for data in visible) == 1
    assert "left to move" in project.echod("migrate", "--layout").output

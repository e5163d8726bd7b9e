"""`echod migrate`: names on the disk, with history, solutions, backup and undo."""

from __future__ import annotations

import json

import pytest

from tests.remembrance.conftest import Project, entry_text


def test_a_dry_run_reports_every_name_and_writes_nothing(project: Project) -> None:
    project.write(entry_text(source="rune:review PR #42"), entry_text("Other", source="manual"))
    before = project.tree()

    result = project.echod("migrate", "--dry-run")

    assert result.code == 0
    assert "source: rune:review -> rune:appraise" in result.output
    assert "1 entry to migrate, 1 already current." in result.output
    assert project.tree() == before


def test_names_change_with_backup_history_and_undo(project: Project) -> None:
    file = project.write(entry_text(source="rune:review PR #42"))
    before = file.read_bytes()
    (old,) = project.ids()
    project.echod("pin", old)
    project.echod("record-access", old, "--session", "one")

    assert project.echod("migrate").code == 2
    assert file.read_bytes() == before
    result = project.echod("migrate", "--yes")

    assert result.code == 0, result.output
    (new,) = project.ids()
    assert new != old
    assert file.read_bytes() == before.replace(b"rune:review", b"rune:appraise")
    (backup,) = (project.store / "reviewer/archive").glob("MEMORY-*.md")
    assert backup.read_bytes() == before
    explained = json.loads(project.echod("explain", new, "--json").output)
    assert explained["pinned"] is not None
    assert explained["references"] == 1

    project.echod("undo", "--last", "--yes")
    assert file.read_bytes() == before


def test_names_change_in_the_knowledge_file_too_with_a_backup_of_it(project: Project) -> None:
    memory = project.write(entry_text(source="rune:review PR #42"))
    knowledge = memory.with_name("knowledge.md")
    knowledge.write_text(
        "# Knowledge\n\n## Inscribed \u2014 Knowledge: lists (2026-02-01)\n**Evidence**: `rune:review`\n- rune:review\n"
    )
    before = project.tree()

    assert "2 entries to migrate" in project.echod("migrate", "--dry-run").output
    assert project.echod("migrate", "--yes").code == 0

    text = knowledge.read_text()
    assert "**Evidence**: `rune:appraise`\n- rune:review\n" in text
    (backup,) = (project.store / "reviewer/archive").glob("knowledge-*.md")
    assert backup.read_bytes() == before[".rune/echoes/reviewer/knowledge.md"]
    project.echod("undo", "--last", "--yes")
    assert knowledge.read_bytes() == before[".rune/echoes/reviewer/knowledge.md"]


def test_a_second_run_changes_nothing(project: Project) -> None:
    project.write(entry_text(source="Elden Lord and rune:plan"))
    project.echod("migrate", "--yes")
    before = project.tree()

    result = project.echod("migrate", "--yes")

    assert result.code == 0
    assert "0 entries to migrate, 1 already current." in result.output
    assert project.tree() == before


@pytest.mark.parametrize("layout", [".rune/echoes/", ".claude/echoes/", "echoes/"])
def test_solutions_follow_their_entries_from_every_layout(project: Project, layout: str) -> None:
    project.write(entry_text(source="rune:review PR #42"))
    project.promote()
    (document,) = (project.solutions / "performance").glob("*.md")
    present = str(project.store.relative_to(project.root))
    document.write_text(document.read_text().replace(f'"{present}/', f'"{layout}'))
    assert project.echod("remembrance", "check").code == 0

    assert project.echod("migrate", "--yes").code == 0

    checked = project.echod("remembrance", "check")
    assert checked.code == 0, checked.output
    assert f'"{present}/reviewer/MEMORY.md#{project.ids()[0]}@sha256:' in document.read_text()


def test_a_stale_solution_stays_stale(project: Project) -> None:
    project.write(entry_text(source="rune:review PR #42"))
    project.promote()
    (document,) = (project.solutions / "performance").glob("*.md")
    document.write_text(document.read_text().replace("@sha256:", "@sha256:" + "0" * 64 + '" #'))
    before = document.read_bytes()

    project.echod("migrate", "--yes")

    assert document.read_bytes() == before

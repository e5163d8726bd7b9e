"""Links that lead out of the project, at every level: never followed, never written through."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hostile.conftest import SECRET_OUTSIDE, Target, snapshot_tree
from tests.support import finding_text, until


def move_away(target: Target, below: str) -> Path:
    """Replace a directory of the project by a symbolic link to a copy of it outside."""
    here, there = target.root / below, target.outside / "moved"
    here.rename(there)
    here.symlink_to(there)
    return there


@pytest.mark.parametrize("below", [".rune", ".rune/echoes", ".rune/echoes/reviewer"])
def test_a_directory_that_is_a_symlink_is_not_worked_in(target: Target, below: str) -> None:
    target.findings()
    there = move_away(target, below)
    before = snapshot_tree(there)

    output = target.run_once()

    assert snapshot_tree(there) == before
    assert output


@pytest.mark.parametrize("name", ["archive", "archive/findings", "quarantine"])
def test_an_archive_that_leads_outside_is_not_written(target: Target, name: str) -> None:
    (target.role / name).parent.mkdir(exist_ok=True)
    (target.role / name).symlink_to(target.outside)
    target.findings("ward")
    (target.role / "bad-findings.md").write_bytes(b"\xff\xfe no text")
    before, findings = snapshot_tree(target.outside), sorted(p.name for p in target.role.glob("*-findings.md"))
    memory = target.memory.read_bytes()

    output = target.run_once()

    assert snapshot_tree(target.outside) == before
    assert target.memory.read_bytes() == memory
    assert sorted(p.name for p in target.role.glob("*-findings.md")) == findings
    assert "symbolic link" in output or "not a directory" in output


def test_a_memory_that_leads_outside_is_not_written(target: Target) -> None:
    target.memory.unlink()
    target.memory.symlink_to(target.outside / "precious.md")
    target.findings()
    before = snapshot_tree(target.root)

    output = target.run_once()

    assert snapshot_tree(target.root) == before
    assert (target.outside / "precious.md").read_text() == SECRET_OUTSIDE
    assert "symbolic link" in output


def test_findings_that_lead_outside_are_not_read(target: Target) -> None:
    (target.role / "ward-findings.md").symlink_to(target.outside / "precious.md")
    (target.outside / "theirs-findings.md").write_text(finding_text("Somebody else's"))
    (target.role / "seer-findings.md").symlink_to(target.outside / "theirs-findings.md")
    before = snapshot_tree(target.root.parent / "project"), snapshot_tree(target.outside)

    target.run_once()

    assert (snapshot_tree(target.root), snapshot_tree(target.outside)) == before


def test_the_upstream_writers_lock_is_not_taken_through_a_link(target: Target) -> None:
    (target.root / "tmp").symlink_to(target.outside)
    target.findings()
    before = snapshot_tree(target.outside)

    target.run_once()

    assert snapshot_tree(target.outside) == before


def test_a_second_name_of_a_memory_file_keeps_its_own_content(target: Target) -> None:
    """A hard link to the memory is another file's name; the exchange must not write through it."""
    other = target.outside / "same.md"
    os.link(target.memory, other)
    before = other.read_bytes()
    target.findings()

    assert "1 added" in target.run_once()

    assert other.read_bytes() == before
    assert "Timeouts are missing" in target.memory.read_text()


def test_findings_with_a_second_name_elsewhere_leave_that_one_alone(target: Target) -> None:
    theirs = target.outside / "theirs.md"
    theirs.write_text(finding_text("Timeouts are missing"))
    os.link(theirs, target.role / "ward-findings.md")
    before = theirs.read_bytes()

    target.run_once()

    assert theirs.read_bytes() == before


def test_a_project_that_is_registered_by_a_link_is_its_target(target: Target) -> None:
    link = target.root.parent / "link"
    link.symlink_to(target.root)
    target.findings()

    target.home.run("run", "--once", link)

    until(lambda: "Timeouts are missing" in target.memory.read_text(), "the finding in the memory")

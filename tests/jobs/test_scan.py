"""The look for secrets on the disk: cheap when nothing changed, bounded at every step, and never through a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from echod.daemon.exposure import Exposure
from echod.jobs import scan
from echod.jobs.scan import Scan, candidates
from echod.store.layout import Role, Store
from tests.support import project

SECRET = "password=" + "tr0ub4dor" + "-and-3\n"
PLENTY = 1 << 20


@pytest.fixture
def role(tmp_path: Path) -> Role:
    root = project(tmp_path / "p").resolve()
    role = Role(Store(root, root / ".rune/echoes"), "reviewer")
    (role.path / "archive/findings").mkdir(parents=True)
    role.memory.write_text(SECRET)
    (role.path / "archive/pruned-2026.md").write_text(SECRET * 2)
    (role.path / "archive/findings/2026-11-01-ward.md").write_text(SECRET)
    return role


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are read."""
    names: list[str] = []
    real = scan.read

    def read(candidate: scan.Candidate) -> bytes:
        names.append(candidate.path.name)
        return real(candidate)

    monkeypatch.setattr(scan, "read", read)
    return names


def test_a_file_that_has_not_changed_is_not_read_again(role: Role, reads: list[str]) -> None:
    look = Scan()
    assert look.look(role.store, PLENTY)
    assert look.found(role.store) == 4
    reads.clear()

    role.memory.write_text("clean\n")
    assert look.look(role.store, PLENTY)

    assert reads == ["MEMORY.md"]
    assert look.found(role.store) == 3


def test_a_file_that_is_gone_is_forgotten(role: Role) -> None:
    look = Scan()
    look.look(role.store, PLENTY)

    (role.path / "archive/pruned-2026.md").unlink()
    look.look(role.store, PLENTY)

    assert look.found(role.store) == 2


def test_a_small_budget_gets_there_in_several_steps(role: Role, reads: list[str]) -> None:
    look = Scan()
    steps = 1
    while not look.look(role.store, 1):
        steps += 1

    assert steps == 3
    assert look.found(role.store) == 4
    assert len(reads) == 3


def test_findings_that_wait_are_left_to_their_consolidation(role: Role) -> None:
    (role.path / "ward-findings.md").write_text(SECRET)
    look = Scan()
    look.look(role.store, PLENTY)

    assert look.found(role.store) == 4
    assert "ward-findings.md" in [candidate.path.name for candidate in candidates(role)]


def test_links_and_hidden_files_are_not_looked_at(role: Role, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text(SECRET)
    (role.path / "link.md").symlink_to(outside / "x.md")
    (role.path / "quarantine").symlink_to(outside)
    (role.path / ".MEMORY.md.stage").write_text(SECRET)

    names = {candidate.path.name for candidate in candidates(role)}

    assert names == {"MEMORY.md", "pruned-2026.md", "2026-11-01-ward.md"}


def test_the_service_warns_from_the_first_find_until_the_last_is_gone(role: Role) -> None:
    exposure = Exposure()
    exposure.mark([role.store])
    assert exposure.step(100.0)
    assert not exposure.unfinished
    (warning,) = exposure.warnings([role.store])
    assert (warning.code, warning.since) == ("secrets-on-disk", 100.0)
    assert "4 places" in warning.text
    assert f"echod scrub {role.store.project}" in warning.fix

    exposure.mark([role.store])
    assert not exposure.step(200.0)
    assert exposure.warnings([role.store]) == (warning,)
    for candidate in candidates(role):
        candidate.path.write_text("clean\n")
    exposure.mark([role.store])
    assert exposure.step(300.0)
    assert exposure.warnings([role.store]) == ()

"""The scan for secrets on the disk: cheap when nothing changed, bounded at every step, and never through a link."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from echod.daemon.upkeep import MAX_DELAY_SECONDS, QUIET_SECONDS, STEP_BUDGET_BYTES, STEP_SECONDS, SecretScanTask
from echod.inspection import InspectionCache, secrets
from echod.inspection.secrets import SecretScanner, list_scan_candidates
from echod.store.layout import Role, Store
from tests.support import make_project

SECRET = "password=" + "tr0ub4dor" + "-and-3\n"
PLENTY = 1 << 20


@pytest.fixture
def role(tmp_path: Path) -> Role:
    root = make_project(tmp_path / "p").resolve()
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
    real = secrets.read_candidate

    def read(candidate: secrets.ScanCandidate) -> bytes:
        names.append(candidate.path.name)
        return real(candidate)

    monkeypatch.setattr(secrets, "read_candidate", read)
    return names


def test_a_file_that_has_not_changed_is_not_read_again(role: Role, reads: list[str]) -> None:
    scanner = SecretScanner(InspectionCache())
    assert scanner.scan(role.store, PLENTY)
    assert scanner.count(role.store) == 4
    reads.clear()

    role.memory.write_text("clean\n")
    assert scanner.scan(role.store, PLENTY)

    assert reads == ["MEMORY.md"]
    assert scanner.count(role.store) == 3


def test_a_deleted_file_is_forgotten(role: Role) -> None:
    inspections = InspectionCache()
    scanner = SecretScanner(inspections)
    scanner.scan(role.store, PLENTY)
    assert "pruned-2026.md" in inspections.to_json()

    (role.path / "archive/pruned-2026.md").unlink()
    scanner.scan(role.store, PLENTY)

    assert scanner.count(role.store) == 2
    assert "pruned-2026.md" not in inspections.to_json()


def test_the_next_process_scans_only_changed_files(role: Role, reads: list[str]) -> None:
    first = InspectionCache()
    SecretScanner(first).scan(role.store, PLENTY)
    reads.clear()
    role.memory.write_text("clean\n")

    scanner = SecretScanner(InspectionCache.from_json(first.to_json()))
    scanner.scan(role.store, PLENTY)

    assert reads == ["MEMORY.md"]
    assert scanner.count(role.store) == 3


def test_a_file_that_could_not_be_read_is_scanned_again(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    scanner = SecretScanner(InspectionCache())

    def fail(candidate: secrets.ScanCandidate) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(candidate.path))

    with monkeypatch.context() as patched:
        patched.setattr(secrets, "read_candidate", fail)
        assert scanner.scan(role.store, PLENTY)
    assert scanner.count(role.store) == 0

    scanner.scan(role.store, PLENTY)

    assert scanner.count(role.store) == 4


def test_a_small_budget_gets_there_in_several_steps(role: Role, reads: list[str]) -> None:
    scanner = SecretScanner(InspectionCache())
    steps = 1
    while not scanner.scan(role.store, 1):
        steps += 1

    assert steps == 4, "one for each file, and one to find that there is no other"
    assert scanner.count(role.store) == 4
    assert len(reads) == 3


def test_findings_that_wait_are_left_to_their_consolidation(role: Role) -> None:
    (role.path / "ward-findings.md").write_text(SECRET)
    scanner = SecretScanner(InspectionCache())
    scanner.scan(role.store, PLENTY)

    assert scanner.count(role.store) == 4
    assert "ward-findings.md" in [candidate.path.name for candidate in list_scan_candidates(role)]


def test_links_and_hidden_files_are_not_scanned(role: Role, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text(SECRET)
    (role.path / "link.md").symlink_to(outside / "x.md")
    (role.path / "quarantine").symlink_to(outside)
    (role.path / ".MEMORY.md.stage").write_text(SECRET)

    names = {candidate.path.name for candidate in list_scan_candidates(role)}

    assert names == {"MEMORY.md", "pruned-2026.md", "2026-11-01-ward.md"}


def test_an_unfinished_pass_continues_where_it_stopped(
    role: Role, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[Path] = []
    real = secrets.list_scan_candidates

    def noted(role: Role) -> Iterator[secrets.ScanCandidate]:
        listed.append(role.path)
        return real(role)

    monkeypatch.setattr(secrets, "list_scan_candidates", noted)
    scanner = SecretScanner(InspectionCache())
    while not scanner.scan(role.store, 1):
        pass

    assert listed == [role.path]
    assert len(reads) == 3


def test_the_service_warns_from_the_first_find_until_the_last_is_gone(role: Role) -> None:
    task = SecretScanTask(InspectionCache())
    task.mark_changed([role.store], 0.0)
    assert task.run_step(100.0, 0.0)
    assert task.seconds_until_next_step(0.0) is None
    (warning,) = task.warnings([role.store])
    assert (warning.code, warning.since) == ("secrets-on-disk", 100.0)
    assert "4 places" in warning.text
    assert f"echod scrub {role.store.project}" in warning.fix

    task.mark_changed([role.store], 10.0)
    assert not task.run_step(200.0, 10.0 + QUIET_SECONDS)
    assert task.warnings([role.store]) == (warning,)
    for candidate in list_scan_candidates(role):
        candidate.path.write_text("clean\n")
    task.mark_changed([role.store], 20.0)
    assert task.run_step(300.0, 20.0 + QUIET_SECONDS)
    assert task.warnings([role.store]) == ()


def test_a_busy_store_is_scanned_again_once_it_is_quiet_or_after_a_minute(role: Role, reads: list[str]) -> None:
    task = SecretScanTask(InspectionCache())
    task.mark_changed([role.store], 0.0)
    task.run_step(100.0, 0.0)
    reads.clear()
    role.memory.write_text("clean\n")

    for second in range(1, int(MAX_DELAY_SECONDS)):
        task.mark_changed([role.store], float(second))
        task.run_step(100.0, float(second))
    assert reads == []
    assert task.seconds_until_next_step(MAX_DELAY_SECONDS - 1) == 2.0

    task.run_step(100.0, MAX_DELAY_SECONDS + 1)
    assert reads == ["MEMORY.md"]


def test_a_file_that_changes_behind_a_pass_is_scanned_by_the_next_one(role: Role, reads: list[str]) -> None:
    """The memory file is scanned first. It changes before the rest is scanned."""
    task = SecretScanTask(InspectionCache())
    task.mark_changed([role.store], 0.0)
    role.path.joinpath("archive/huge.md").write_text("x" * STEP_BUDGET_BYTES)
    task.run_step(100.0, 0.0)
    assert task.seconds_until_next_step(0.0) == STEP_SECONDS
    role.memory.write_text("clean\n")
    task.mark_changed([role.store], 1.0)
    while task.seconds_until_next_step(1.0) == STEP_SECONDS:
        task.run_step(100.0, 1.0)
    reads.clear()

    task.run_step(100.0, 1.0 + QUIET_SECONDS)

    assert reads == ["MEMORY.md"]

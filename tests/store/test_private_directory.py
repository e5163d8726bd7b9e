"""Staged, displaced and claimed files are where neither git nor another user takes them."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from echod.store.changes import CommitResult
from echod.store.commit.context import CommitStep
from echod.store.errors import RefusedError, StoreError
from echod.store.leftovers import find_leftovers
from echod.store.private_directory import own_file_name
from tests.store.conftest import HEADER, Sandbox, entry, plan_consolidation

BOTH = HEADER + entry("First") + entry("Second")


def consolidate(sandbox: Sandbox, trace: object = None) -> None:
    sandbox.findings("agent", entry("Third"))
    engine = sandbox.engine(trace) if trace else sandbox.engine()  # type: ignore[arg-type]
    with engine.open_role(sandbox.role) as session:
        assert isinstance(session.commit(1, plan_consolidation(session.read())), CommitResult)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_directory_is_private_under_any_umask(sandbox: Sandbox) -> None:
    before = os.umask(0)
    try:
        consolidate(sandbox)
    finally:
        os.umask(before)

    assert mode(sandbox.private) == 0o700
    assert (sandbox.private / ".gitignore").read_bytes() == b"*\n"


def test_at_no_step_is_a_file_of_ours_outside_of_it(sandbox: Sandbox) -> None:
    seen: set[str] = set()

    def look(step: CommitStep) -> None:
        del step
        seen.update(path.name for path in sandbox.role.path.rglob(".*"))

    consolidate(sandbox, look)
    sandbox.engine(look, displaced_hours=0.0).merge_late_writes(sandbox.store)

    assert seen == set()
    assert sandbox.hidden_names() == []


def test_git_takes_nothing(sandbox: Sandbox) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    consolidate(sandbox)

    subprocess.run(["git", "init", "-q", str(sandbox.project)], check=True)
    subprocess.run(["git", "add", "-A"], cwd=sandbox.project, check=True)
    taken = subprocess.run(["git", "ls-files"], cwd=sandbox.project, capture_output=True, text=True, check=True).stdout

    assert "MEMORY.md" in taken
    assert ".echod" not in taken


@pytest.mark.parametrize("damage", ["opened", "not ignored", "ignores something else", "ignore file is a link", "gone"])
def test_a_damaged_directory_is_repaired(sandbox: Sandbox, tmp_path: Path, damage: str) -> None:
    consolidate(sandbox)
    ignore = sandbox.private / ".gitignore"
    if damage == "opened":
        sandbox.private.chmod(0o777)
    elif damage == "gone":
        shutil.rmtree(sandbox.private)
    else:
        ignore.unlink()
    if damage == "ignores something else":
        ignore.write_text("!*\n")
    outside = tmp_path / "outside"
    outside.write_text("theirs")
    if damage == "ignore file is a link":
        ignore.symlink_to(outside)

    consolidate(sandbox)

    assert mode(sandbox.private) == 0o700
    assert (ignore.read_bytes(), ignore.is_symlink()) == (b"*\n", False)
    assert outside.read_text() == "theirs"


@pytest.mark.parametrize("obstacle", ["link", "file"])
def test_something_else_in_its_place_stops_the_commit(sandbox: Sandbox, tmp_path: Path, obstacle: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    if obstacle == "link":
        sandbox.private.symlink_to(outside)
    else:
        sandbox.private.write_text("theirs")

    with pytest.raises(StoreError):
        consolidate(sandbox)

    assert sandbox.memory.read_bytes() == BOTH
    assert list(outside.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(sandbox: Sandbox) -> None:
    sandbox.private.mkdir(mode=0o700)
    os.chown(sandbox.private, 12_345, 12_345)

    with pytest.raises(RefusedError, match="belongs to another user"):
        consolidate(sandbox)

    assert sandbox.memory.read_bytes() == BOTH


@pytest.fixture
def mounted(sandbox: Sandbox) -> Path:
    """Return the role, which is a bind mount: the same device as the store, but another mount."""
    aside = sandbox.project.parent / "aside"
    sandbox.role.path.rename(aside)
    sandbox.role.path.mkdir()
    command = ["mount", "--bind", str(aside), str(sandbox.role.path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs root")
    return sandbox.role.path


def test_a_role_that_is_a_mount_has_a_private_directory_of_its_own(sandbox: Sandbox, mounted: Path) -> None:
    try:
        consolidate(sandbox)
        held = [path.name for path in (mounted / ".echod").iterdir()]
        sandbox.engine(displaced_hours=0.0).merge_late_writes(sandbox.store)

        assert sandbox.memory.read_bytes() == BOTH + entry("Third")
        assert len(held) == 3
        assert [path.name for path in (mounted / ".echod").iterdir()] == [".gitignore"]
        sandbox.engine().remove_private_directories(sandbox.store)
        assert not (mounted / ".echod").exists()
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_an_archive_with_another_name_is_not_written_through(sandbox: Sandbox, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"theirs\n")
    sandbox.archive.mkdir()
    os.link(other, sandbox.archive / "pruned-2026.md")
    sandbox.findings("agent", entry("Third"))

    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read(), archive=b"old\n"))

    assert other.read_bytes() == b"theirs\n"
    assert (sandbox.archive / "pruned-2026.md").read_bytes() == b"theirs\nold\n"
    assert all("copy" not in name for name in sandbox.hidden_names())


def test_a_leftover_counts_as_known_only_if_its_text_is_elsewhere(sandbox: Sandbox) -> None:
    consolidate(sandbox)
    name = own_file_name("MEMORY.md", "abcdef", 7, 0)
    (sandbox.role.path / name).write_bytes(HEADER + entry("First"))
    (sandbox.private / name).write_bytes(HEADER + entry("Nowhere else"))
    (sandbox.role.path / ".MEMORY.md.echod-init-77").write_bytes(HEADER)

    found = find_leftovers(sandbox.store, sandbox.journal)

    assert {(leftover.path.parent.name, leftover.path.name, leftover.known) for leftover in found} == {
        ("reviewer", name, True),
        (".echod", name, False),
        ("reviewer", ".MEMORY.md.echod-init-77", True),
    }

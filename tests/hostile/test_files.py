"""Special files and oversized files: a run ends, reports them, and does not change the store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from echod.memory import MAX_FILE_BYTES
from tests.hostile.conftest import Target, snapshot_tree
from tests.support import NO_PRUNING, Home, finding_text

_HUGE = 100 * 1024 * 1024


def sparse(path: Path, size: int = _HUGE) -> Path:
    with path.open("wb") as file:
        file.write(b"# Findings\n")
        file.truncate(size)
    return path


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    # The path of a socket may have at most 108 bytes. Relative to its directory it has a few.
    code = "import os,socket,sys; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).bind(sys.argv[2])"
    subprocess.run([sys.executable, "-c", code, path.parent, path.name], check=True)


def make_device(path: Path) -> None:
    try:
        os.mknod(path, 0o020600, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root may make devices")


def make_directory(path: Path) -> None:
    path.mkdir()


KINDS: dict[str, Callable[[Path], None]] = {
    "fifo": make_fifo,
    "socket": make_socket,
    "device": make_device,
    "directory": make_directory,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_special_file_is_not_a_findings_file(target: Target, kind: str) -> None:
    KINDS[kind](target.role / "ward-findings.md")
    target.findings("seer")

    output = target.run_once()

    assert "1 added" in output
    assert "Timeouts are missing" in target.memory.read_text()
    assert (target.role / "ward-findings.md").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_a_special_file_is_not_a_memory(target: Target, kind: str) -> None:
    target.memory.unlink()
    KINDS[kind](target.memory)
    target.findings()
    before = snapshot_tree(target.root)

    output = target.run_once()

    assert snapshot_tree(target.root) == before
    assert "MEMORY.md" in output


@pytest.mark.parametrize("name", ["archive", "tmp"])
def test_a_fifo_in_the_place_of_a_directory_holds_nothing_up(target: Target, name: str) -> None:
    os.mkfifo(target.root / "tmp" if name == "tmp" else target.role / name)
    target.findings()

    output = target.run_once()

    assert ("1 added" in output) == (name == "tmp")
    if name == "archive":
        assert (target.role / "ward-findings.md").exists()
        assert "not a directory" in output


def test_findings_of_a_hundred_megabytes_are_not_changed(target: Target) -> None:
    sparse(target.role / "ward-findings.md")
    before = snapshot_tree(target.root)

    output = target.run_once()

    assert snapshot_tree(target.root) == before
    assert "larger than 10 MiB" in output


def test_huge_findings_do_not_hold_up_others(target: Target) -> None:
    sparse(target.role / "ward-findings.md")
    target.findings("seer")

    assert "1 added" in target.run_once()

    assert (target.role / "ward-findings.md").stat().st_size == _HUGE


def test_a_memory_of_a_hundred_megabytes_is_not_changed(target: Target) -> None:
    sparse(target.memory)
    target.findings()
    before = snapshot_tree(target.root)

    output = target.run_once()

    assert snapshot_tree(target.root) == before
    assert "larger than 10 MiB" in output


def test_a_memory_full_of_zeros_up_to_the_limit_is_answered(target: Target) -> None:
    sparse(target.memory, MAX_FILE_BYTES)
    target.findings()
    before = target.memory.stat().st_size

    target.run_once()

    assert target.memory.stat().st_size >= before


@pytest.mark.slow
def test_very_many_findings_files_are_folded_in_by_parts(target: Target) -> None:
    target = replace(target, home=Home(target.home.root, NO_PRUNING))
    for number in range(505):
        target.findings(
            f"agent{number}", finding_text(f"Lesson of unit{number}", f"unit{number} needs valve{number * 7}.")
        )

    output = target.run_once()

    assert output.count("consolidate reviewer") == 2
    assert not list(target.role.glob("*-findings.md"))
    text = target.memory.read_text()
    assert all(f"needs valve{number * 7}." in text for number in range(505))


@pytest.mark.slow
def test_a_file_of_a_million_tiny_findings_is_set_aside_in_bounded_memory(target: Target) -> None:
    full = b"".join(b"## a%d\n" % number for number in range(1_000_000))[: MAX_FILE_BYTES - 1] + b"\n"
    (target.role / "ward-findings.md").write_bytes(full)
    target.findings("seer")

    result = target.home.echod("run", "--once", target.root, before=(sys.executable, "-c", _LIMITED))

    assert result.returncode == 0, result.stderr
    assert "Timeouts are missing" in target.memory.read_text()
    (aside,) = (target.role / "quarantine").glob("*-ward-findings.md")
    assert aside.read_bytes() == full
    assert "Split it." in (target.role / "quarantine/REASONS.md").read_text()


@pytest.mark.slow
def test_twenty_thousand_files_are_read_in_bounded_memory(target: Target) -> None:
    """In report mode, so that reading is measured and not twenty thousand fsyncs."""
    text = finding_text("Timeouts are missing")
    for number in range(20_000):
        (target.role / f"agent{number}-findings.md").write_text(text)
    home = Home(target.home.root, {"ECHOD_MODE": "report"})

    result = home.echod("run", "--once", target.root, before=(sys.executable, "-c", _LIMITED))

    assert result.returncode == 0, result.stderr
    assert "would do: 1 added" in result.stdout
    assert len(list(target.role.glob("*-findings.md"))) == 20_000


_LIMITED = (
    "import os,resource,sys;"
    "resource.setrlimit(resource.RLIMIT_DATA, (400 << 20, 400 << 20));"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def test_the_command_itself_reports_it_and_ends(target: Target) -> None:
    os.mkfifo(target.role / "ward-findings.md")
    target.memory.unlink()
    os.mkfifo(target.memory)
    target.findings("seer")

    result = target.home.echod("run", "--once", target.root)

    assert result.returncode == 1
    assert "MEMORY.md" in result.stdout
    assert "Traceback" not in result.stdout + result.stderr


def test_an_unreadable_role_is_not_an_empty_one(target: Target) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    target.findings()
    target.role.chmod(0)
    try:
        assert "cannot be listed" in target.run_once()
    finally:
        target.role.chmod(0o700)

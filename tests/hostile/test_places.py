"""Every other file that echod reads in a project: whatever it is, a run ends and neither shows nor changes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from echod.memory.document import parse
from echod.memory.model import Document
from tests.hostile.conftest import SECRET_OUTSIDE, Target, snapshot_tree
from tests.hostile.test_files import KINDS, sparse

ROLE = ".rune/echoes/reviewer"
PLACES = (
    ".rune/talisman.yml", ".claude/rune-config.yml", ".gitignore", ".git/HEAD", ".git/packed-refs",
    "tmp/.rune-review-abc.json", "tmp/.rune-signals/.echo-dirty", "tmp/.rune-signals/rune-review-x/.expected",
    "tmp/.rune-signals/rune-review-x/1.done", ".rune/arc/arc-1/checkpoint.json", ".claude/arc/arc-1/checkpoint.json",
    ".rune/arc-phase-loop.local.md", ".rune/echoes/.search-index.db", ".rune/echoes/MEMORY.md", f"{ROLE}/knowledge.md",
    f"{ROLE}/archive/pruned-2026.md", f"{ROLE}/archive/removed-2026.md", f"{ROLE}/archive/MEMORY-2026-11-01.md",
    f"{ROLE}/archive/findings/2026-11-01-ward.md", f"{ROLE}/quarantine/2026-11-01-odd-findings.md",
    f"{ROLE}/quarantine/REASONS.md", f"{ROLE}/.MEMORY.md.swp",
)  # fmt: skip
_DEEP = 100_000


def _link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _write_huge(path: Path) -> None:
    sparse(path)


CONTENTS = {
    "binary": bytes(range(256)) * 40,
    "deep JSON": b'{"status": ' + b"[" * _DEEP + b"]" * _DEEP + b"}",
    "long numbers": b'{"status": "active", "owner_pid": ' + b"9" * 1_000_000 + b"}",
    "odd numbers": b'{"owner_pid": NaN, "status": Infinity, "started": 1e999, "status": -Infinity}',
    "surrogates": b'{"status": "\\ud800", "team_name": "\\udfff", "session_id": "\\ud800"}',
    "deep Markdown": b"> " * 20_000 + b"x\n" + b"- " * 10_000 + b"\n" + b"[" * 20_000,
    "archive of nonsense": b'<!-- echod:archived {"bytes": 1, "id": ' + b"[" * _DEEP + b" -->\nx\n"
    b'<!-- echod:archived {"bytes": ' + b"9" * 6_000 + b"} -->\nx\n",
}


def _write_bytes(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


SHAPES: dict[str, Callable[[Path], None]] = {
    **KINDS, "endless": _link_to_zero, "huge": _write_huge, **{name: _write_bytes(data) for name, data in CONTENTS.items()},
}  # fmt: skip


@pytest.fixture
def full_project(target: Target) -> Target:
    """The project, with a repository that tracks the memory, and findings to consolidate."""
    git = target.root / ".git"
    git.mkdir()
    (git / "index").write_bytes(b"DIRC\0\0\0\2" + f"{ROLE}/MEMORY.md".encode())
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    target.findings()
    return target


def _fill(target: Target, make: Callable[[Path], None]) -> dict[str, tuple[int, str]]:
    for place in PLACES:
        path = target.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        make(path)
    return _snapshot_places(target)


def _snapshot_places(target: Target) -> dict[str, tuple[int, str]]:
    return {name: found for name, found in snapshot_tree(target.root).items() if name in PLACES}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("shape", SHAPES)
def test_with_anything_in_every_place_a_run_ends_and_leaves_it(full_project: Target, shape: str) -> None:
    before = _fill(full_project, SHAPES[shape])

    output = full_project.run_once()

    assert "a bug" not in output
    assert _changed_places(before, _snapshot_places(full_project)) == []
    memory = parse(full_project.memory.read_bytes())
    assert isinstance(memory, Document)
    assert any(block.entry and block.entry.title == "Money is in cents" for block in memory.blocks)


def _changed_places(before: dict[str, tuple[int, str]], after: dict[str, tuple[int, str]]) -> list[str]:
    """Return the paths with a changed content. Knowledge files and reports of echod may grow if they are files."""
    grows = (f"{ROLE}/knowledge.md", f"{ROLE}/archive/pruned-2026.md", f"{ROLE}/archive/removed-2026.md")
    return [name for name in before if after.get(name) != before[name] and name not in grows]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", PLACES)
def test_a_private_file_elsewhere_is_shown_nowhere(full_project: Target, place: str) -> None:
    path = full_project.root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(full_project.outside / "precious.md")

    output = full_project.run_once()

    word = SECRET_OUTSIDE.strip()
    kept = [file for file in _written_files(full_project) if word.encode() in file.read_bytes()]
    assert word not in output
    assert kept == []
    assert (full_project.outside / "precious.md").read_text() == SECRET_OUTSIDE


def _written_files(target: Target) -> Iterator[Path]:
    for root in (target.home.root, target.root):
        for file in root.rglob("*"):
            if file.is_file() and not file.is_symlink():
                yield file


@pytest.mark.timeout(120)
@pytest.mark.parametrize("shape", ["fifo", "endless"])
def test_commands_that_look_at_everything_end(full_project: Target, shape: str) -> None:
    _fill(full_project, SHAPES[shape])
    full_project.home.run("add", full_project.root)
    limited = (sys.executable, "-c", _LIMITED)

    for words in (["status"], ["doctor"], ["scrub", "--dry-run"], ["review"]):
        result = full_project.home.echod(*words, before=limited, cwd=full_project.root)
        assert "a bug" not in result.stderr, result.stderr
        assert result.returncode in (0, 1, 3), result.stderr


_LIMITED = (
    "import os,resource,sys;"
    "resource.setrlimit(resource.RLIMIT_DATA, (400 << 20, 400 << 20));"
    "os.execv(sys.argv[1], sys.argv[1:])"
)

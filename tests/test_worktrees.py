"""Work in a copy of a project belongs to the project. git itself decides what a copy is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from echod.projects.discovery import main_worktree_path


def git(*arguments: object, cwd: Path) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    identity += ["-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", *identity, *map(str, arguments)], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def main(tmp_path: Path) -> Path:
    root = (tmp_path / "m\u00e4in").resolve()
    (root / "src").mkdir(parents=True)
    (root / "src/code.py").touch()
    git("init", cwd=root)
    git("add", "-A", cwd=root)
    git("commit", "-m", "x", cwd=root)
    return root


def test_a_project_is_its_own(main: Path) -> None:
    assert main_worktree_path(main / "src") == main / "src"
    assert main_worktree_path(main) == main


def test_a_linked_worktree_is_the_main_one(main: Path, tmp_path: Path) -> None:
    copy = tmp_path / "co py"
    git("worktree", "add", "-b", "topic", copy, cwd=main)

    assert main_worktree_path(copy) == main
    assert main_worktree_path(copy / "src") == main / "src"
    common = (copy / git("rev-parse", "--git-common-dir", cwd=copy)).resolve()
    assert common.parent == main_worktree_path(copy)


def test_a_relative_pointer_is_followed(main: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    git("worktree", "add", copy, cwd=main)
    pointer = (copy / ".git").read_text().removeprefix("gitdir: ").strip()
    (copy / ".git").write_text(f"gitdir: {os.path.relpath(pointer, copy)}\n")

    assert main_worktree_path(copy) == main


def test_a_worktree_inside_the_project_is_the_project(main: Path) -> None:
    git("worktree", "add", main / ".claude/worktrees/fix", cwd=main)

    assert main_worktree_path(main / ".claude/worktrees/fix/src") == main / "src"


def test_a_worktree_of_a_worktree_is_the_project(main: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    git("worktree", "add", copy, cwd=main)

    assert main_worktree_path(copy / ".claude/worktrees/deeper/src") == main / "src"


def test_a_deleted_copy_is_recognized_by_its_path(main: Path) -> None:
    assert main_worktree_path(main / ".claude/worktrees/gone/src") == main / "src"


def test_the_directory_of_copies_is_not_a_copy(main: Path) -> None:
    assert main_worktree_path(main / ".claude/worktrees") == main / ".claude/worktrees"


def test_a_symlink_to_a_copy_is_the_project(main: Path, tmp_path: Path) -> None:
    git("worktree", "add", tmp_path / "copy", cwd=main)
    (tmp_path / "link").symlink_to(tmp_path / "copy")

    assert main_worktree_path(tmp_path / "link/src") == main / "src"


def test_a_submodule_is_a_project_of_its_own(main: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git("init", cwd=outer)
    git("submodule", "add", main, "inner", cwd=outer)

    assert main_worktree_path(outer / "inner") == outer / "inner"


def test_a_worktree_of_a_bare_repository_is_its_own(main: Path, tmp_path: Path) -> None:
    bare, copy = tmp_path / "bare.git", tmp_path / "copy"
    git("clone", "--bare", main, bare, cwd=tmp_path)
    git("worktree", "add", copy, cwd=bare)

    assert main_worktree_path(copy) == copy


def test_a_pointer_that_its_repository_does_not_know_leads_nowhere(main: Path, tmp_path: Path) -> None:
    copy, thief = tmp_path / "copy", tmp_path / "thief"
    git("worktree", "add", copy, cwd=main)
    thief.mkdir()
    shutil.copy(copy / ".git", thief / ".git")

    assert main_worktree_path(thief) == thief


@pytest.mark.parametrize(
    "pointer",
    ["", "gitdir:", "gitdir: /dev/zero", "gitdir: ../nowhere", "nonsense", "gitdir: \udcff", "gitdir: /a\0b", "\0"],
)
def test_an_invalid_pointer_leads_nowhere(tmp_path: Path, pointer: str) -> None:
    (tmp_path / ".git").write_text(pointer, errors="surrogateescape")

    assert main_worktree_path(tmp_path / "src") == tmp_path / "src"


def test_a_pointer_that_cannot_be_read_leads_nowhere(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")

    assert main_worktree_path(tmp_path) == tmp_path

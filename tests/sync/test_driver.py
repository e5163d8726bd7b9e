"""The merge driver as git calls it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from echod.sync import driver
from tests.sync.conftest import ECHO, Machine, entry, file_of

A, B, C, D = entry("alpha"), entry("beta", day=2), entry("gamma", day=3), entry("delta", day=4)


def call(directory: Path, base: str, ours: str, theirs: str, size: int = 7, path: str = ECHO) -> tuple[int, str]:
    files = [directory / name for name in ("O", "A", "B")]
    for file, text in zip(files, (base, ours, theirs), strict=True):
        file.write_text(text)
    code = driver.main([*map(str, files), str(size), path, "%S"])
    assert (files[0].read_text(), files[2].read_text()) == (base, theirs)
    assert sorted(file.name for file in directory.iterdir()) == ["A", "B", "O"]
    return code, files[1].read_text()


def test_it_merges_over_ours_and_touches_nothing_else(tmp_path: Path) -> None:
    assert call(tmp_path, file_of(A), file_of(A, B), file_of(A, C)) == (0, file_of(A, B, C))


def test_a_conflict_is_marked_and_exits_with_one(tmp_path: Path) -> None:
    code, text = call(tmp_path, file_of(A), file_of(entry("alpha", "Now.")), file_of(entry("alpha", "Later.")))
    assert code == 1
    assert "<<<<<<< ours\n" in text


def test_a_base_made_of_several_never_has_markers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = file_of(A), file_of(entry("alpha", "Now."), B), file_of(entry("alpha", "Later."), C)
    assert call(tmp_path, *files, size=7)[0] == 1
    monkeypatch.setattr(driver, "_configured_marker_size", lambda _: 7)
    assert call(tmp_path, *files, size=9) == (0, file_of(A, B, C))


def test_longer_markers_that_the_user_asked_for_are_no_sign_of_such_a_base(machine: Machine, repository: Path) -> None:
    (repository / ".gitattributes").write_text(f"{ECHO} conflict-marker-size=9\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repository)
        assert driver._configured_marker_size(ECHO) == 9
        assert driver._configured_marker_size("other.md") == 7


def test_what_cannot_be_merged_by_entry_is_left_to_git(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    future = "<!-- echo-schema: v9 -->\n# M\n"
    assert call(tmp_path, file_of(A), file_of(A, B), future) == (2, file_of(A, B))
    assert "merged by line" in capsys.readouterr().err
    assert driver.main(["a"]) == driver.main(["/none", "/none", "/none", "7", "p"]) == 2


def test_it_loads_little_because_git_starts_it_for_each_file() -> None:
    program = "import sys, echod.sync.driver; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    loaded = set(done.stdout.split())
    assert "echod.memory.branches" in loaded
    assert {name for name in loaded if name.startswith("echod.memory.")} <= {
        f"echod.memory.{name}"
        for name in (
            "branches", "document", "forms", "front_matter", "identity", "markdown", "merge", "model", "recurrence",
            "text",
        )
    }  # fmt: skip
    assert loaded & {"click", "difflib", "hashlib", "json", "sqlite3", "subprocess", "structlog"} == set()


@pytest.mark.parametrize("closed", ["", ">&- 2>&-"])
def test_the_process_ends_with_the_code_of_the_merge(tmp_path: Path, closed: str) -> None:
    def run(ours: str, theirs: str, *more: str) -> tuple[int, str]:
        for name, text in (("O", file_of(A)), ("A", ours), ("B", theirs)):
            (tmp_path / name).write_text(text)
        words = shlex.join([sys.executable, "-m", "echod", "merge-driver", "O", "A", "B", *more])
        code = subprocess.run(
            f"{words} {closed}", shell=True, cwd=tmp_path, stderr=subprocess.PIPE, check=False
        ).returncode
        return code, (tmp_path / "A").read_text()

    assert run(file_of(A, B), file_of(A, C), "7", ECHO) == (0, file_of(A, B, C))
    assert run(file_of(entry("alpha", "Now.")), file_of(entry("alpha", "Later.")), "7", ECHO)[0] == 1
    assert run(file_of(A, B), file_of(A, C)) == (2, file_of(A, B))


def test_archives_are_united(tmp_path: Path) -> None:
    path = ".rune/echoes/reviewer/archive/removed-2026.md"
    code, text = call(tmp_path, "a\n", "<!-- echod: x, 2026-01-01 -->\nb\n", "a\n", path=path)
    assert (code, text) == (0, "a\n\n<!-- echod: x, 2026-01-01 -->\nb\n")

"""The counts of a file are valid exactly as long as the file is unchanged, also in the next process."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from echod import files
from echod.cli.status_text import findings_count_text
from echod.contract.status import MAX_COUNTED_FINDINGS, RoleInfo
from echod.inspection import counts
from echod.inspection.counts import FileStats, FileStatsCache, load_file_stats, save_file_stats
from tests.life.files import MEMORY_HEADER, learning_text, protected_entries


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    file = tmp_path / "MEMORY.md"
    file.write_text(MEMORY_HEADER + protected_entries(2) + learning_text("sockets leak", "traced"))
    return file


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are read."""
    paths: list[Path] = []

    def noted(path: Path, limit: int) -> bytes:
        paths.append(path)
        return files.read_regular(path, limit)

    monkeypatch.setattr(counts, "read_regular", noted)
    return paths


def test_lines_entries_and_what_stays_are_counted(memory: Path) -> None:
    found = FileStatsCache().get(memory)

    assert found.lines == len(memory.read_text().splitlines())
    assert found.entries == {"etched": 2, "traced": 1}
    assert found.lines is not None
    assert 0 < found.protected_lines < found.lines
    assert (found.problem, found.suspicious) == (None, False)


def test_the_next_process_reads_nothing_that_is_the_same(memory: Path, tmp_path: Path, reads: list[Path]) -> None:
    first = load_file_stats(tmp_path / "counts.json")
    found = first.get(memory)
    save_file_stats(first, tmp_path / "counts.json")
    reads.clear()

    second = load_file_stats(tmp_path / "counts.json")

    assert second.get(memory) == found
    assert reads == []
    assert not second.dirty
    assert (tmp_path / "counts.json").stat().st_mode & 0o077 == 0


def test_a_file_that_changed_is_counted_again_even_if_its_size_and_time_are_the_same(
    memory: Path, tmp_path: Path, reads: list[Path]
) -> None:
    first = FileStatsCache()
    first.get(memory)
    before = memory.stat()
    memory.write_text(memory.read_text().replace("traced", "TRACED"))
    os.utime(memory, ns=(before.st_atime_ns, before.st_mtime_ns))
    reads.clear()

    FileStatsCache.from_json(first.to_json()).get(memory)

    assert reads == [memory]


def test_a_problem_is_reported_only_as_long_as_it_lasts(tmp_path: Path) -> None:
    file = tmp_path / "MEMORY.md"
    known = FileStatsCache()
    assert known.get(file) == FileStats(0)

    file.mkdir()
    assert "not a plain file" in str(known.get(file).problem)
    file.rmdir()

    file.write_bytes(b"\xff\n")
    assert "not UTF-8" in str(known.get(file).problem)
    assert known.get(file).lines is None

    file.write_text(MEMORY_HEADER)
    assert known.get(file).problem is None


def test_only_files_that_were_asked_for_are_left_to_the_next_process(memory: Path, tmp_path: Path) -> None:
    first = FileStatsCache()
    gone = tmp_path / "knowledge.md"
    gone.write_text(MEMORY_HEADER)
    first.get(memory)
    first.get(gone)
    second = FileStatsCache.from_json(first.to_json())
    gone.unlink()
    second.get(memory)

    assert list(json.loads(second.to_json())["files"]) == [str(memory)]


@pytest.mark.parametrize(
    "left",
    [
        "",
        "[]",
        "{}",
        '{"form": "0/0", "files": {"x": 1}}',
        json.dumps({"form": counts._CACHE_FORMAT, "files": 7}),
        json.dumps({"form": counts._CACHE_FORMAT, "files": {"x": [[1, 2], [3]]}}),
        json.dumps({"form": counts._CACHE_FORMAT, "files": {"x": [[1, 2, 3, 4], [1, {}, None, 0, False, "more"]]}}),
        "\ud800".encode("utf-16", "surrogatepass").decode("latin-1"),
    ],
)
def test_an_invalid_cache_is_counted_again(memory: Path, tmp_path: Path, left: str) -> None:
    (tmp_path / "counts.json").write_text(left)

    assert load_file_stats(tmp_path / "counts.json").get(memory) == FileStatsCache().get(memory)


def test_nothing_is_made_for_the_sake_of_counts(memory: Path, tmp_path: Path) -> None:
    known = FileStatsCache()
    known.get(memory)

    save_file_stats(known, tmp_path / "missing/counts.json")

    assert not (tmp_path / "missing").exists()


def test_very_many_findings_files_are_reported_as_that_many_or_more() -> None:
    few, many = (RoleInfo("reviewer", 1, 150, findings=number) for number in (1, MAX_COUNTED_FINDINGS))

    assert findings_count_text([few]) == "1 findings file waiting"
    assert findings_count_text([few, few]) == "2 findings files waiting"
    assert findings_count_text([few, many]) == "10001 or more findings files waiting"

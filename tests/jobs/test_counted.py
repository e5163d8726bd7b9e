"""What was counted in a file holds as long as the file is the same, in the next process too, and not a moment longer."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from echod import files
from echod.cli.status_text import findings_waiting
from echod.contract.status import FINDINGS_COUNTED, RoleInfo
from echod.inspection import counts
from echod.inspection.counts import Count, Counted, hand_on, take_up
from tests.life.files import HEAD, learning, protected


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    file = tmp_path / "MEMORY.md"
    file.write_text(HEAD + protected(2) + learning("sockets leak", "traced"))
    return file


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are read."""
    paths: list[Path] = []

    def noted(path: Path, limit: int) -> bytes:
        paths.append(path)
        return files.read_plain(path, limit)

    monkeypatch.setattr(counts, "read_plain", noted)
    return paths


def test_lines_entries_and_what_stays_are_counted(memory: Path) -> None:
    found = Counted().of(memory)

    assert found.lines == len(memory.read_text().splitlines())
    assert found.entries == {"etched": 2, "traced": 1}
    assert found.lines is not None
    assert 0 < found.staying < found.lines
    assert (found.problem, found.speaks) == (None, False)


def test_the_next_process_reads_nothing_that_is_the_same(memory: Path, tmp_path: Path, reads: list[Path]) -> None:
    first = take_up(tmp_path / "counts.json")
    found = first.of(memory)
    hand_on(first, tmp_path / "counts.json")
    reads.clear()

    second = take_up(tmp_path / "counts.json")

    assert second.of(memory) == found
    assert reads == []
    assert not second.has_news
    assert (tmp_path / "counts.json").stat().st_mode & 0o077 == 0


def test_a_file_that_changed_is_counted_again_even_if_its_size_and_time_are_the_same(
    memory: Path, tmp_path: Path, reads: list[Path]
) -> None:
    first = Counted()
    first.of(memory)
    before = memory.stat()
    memory.write_text(memory.read_text().replace("traced", "TRACED"))
    os.utime(memory, ns=(before.st_atime_ns, before.st_mtime_ns))
    reads.clear()

    Counted.from_json(first.to_json()).of(memory)

    assert reads == [memory]


def test_a_problem_is_told_again_only_as_long_as_it_lasts(tmp_path: Path) -> None:
    file = tmp_path / "MEMORY.md"
    known = Counted()
    assert known.of(file) == Count(0)

    file.mkdir()
    assert "not a plain file" in str(known.of(file).problem)
    file.rmdir()

    file.write_bytes(b"\xff\n")
    assert "not UTF-8" in str(known.of(file).problem)
    assert known.of(file).lines is None

    file.write_text(HEAD)
    assert known.of(file).problem is None


def test_only_files_that_were_asked_for_are_left_to_the_next_process(memory: Path, tmp_path: Path) -> None:
    first = Counted()
    gone = tmp_path / "knowledge.md"
    gone.write_text(HEAD)
    first.of(memory)
    first.of(gone)
    second = Counted.from_json(first.to_json())
    gone.unlink()
    second.of(memory)

    assert list(json.loads(second.to_json())["files"]) == [str(memory)]


@pytest.mark.parametrize(
    "left",
    [
        "",
        "[]",
        "{}",
        '{"form": "0/0", "files": {"x": 1}}',
        json.dumps({"form": counts._FORM, "files": 7}),
        json.dumps({"form": counts._FORM, "files": {"x": [[1, 2], [3]]}}),
        json.dumps({"form": counts._FORM, "files": {"x": [[1, 2, 3, 4], [1, {}, None, 0, False, "more"]]}}),
        "\ud800".encode("utf-16", "surrogatepass").decode("latin-1"),
    ],
)
def test_what_cannot_be_understood_is_counted_anew(memory: Path, tmp_path: Path, left: str) -> None:
    (tmp_path / "counts.json").write_text(left)

    assert take_up(tmp_path / "counts.json").of(memory) == Counted().of(memory)


def test_nothing_is_made_for_the_sake_of_counts(memory: Path, tmp_path: Path) -> None:
    known = Counted()
    known.of(memory)

    hand_on(known, tmp_path / "missing/counts.json")

    assert not (tmp_path / "missing").exists()


def test_very_many_findings_files_are_told_as_that_many_or_more() -> None:
    few, many = (RoleInfo("reviewer", 1, 150, findings=number) for number in (1, FINDINGS_COUNTED))

    assert findings_waiting([few]) == "1 findings file waiting"
    assert findings_waiting([few, few]) == "2 findings files waiting"
    assert findings_waiting([few, many]) == "10001 or more findings files waiting"

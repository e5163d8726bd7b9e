"""The index follows the disk: every answer is compared with it, and a broken index is built again."""

from __future__ import annotations

import os
import resource
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.search import index, ranking
from echod.search.documents import DocumentKind
from echod.search.finder import DocumentFinder, SearchRequest
from echod.search.index import open_index
from echod.search.schema import PASSAGE_BITS
from echod.search.words import MAX_PASSAGE_LENGTH, passages
from tests.search.conftest import ALL_KINDS, Library, entry
from tests.support import run_in_child


def test_what_is_written_is_found_without_a_signal(library: Library) -> None:
    file = library.write("reviewer", entry("First", "about walnuts"))
    assert library.titles("walnuts") == ["First"]

    with file.open("a") as out:
        out.write(entry("Second", "more walnuts"))

    assert sorted(library.titles("walnuts")) == ["First", "Second"]


def test_what_is_gone_is_never_shown(library: Library) -> None:
    file = library.write("reviewer", entry("First", "about walnuts") + entry("Second", "walnuts again"))
    library.write("planner", entry("Third", "walnuts too"))
    assert len(library.titles("walnuts")) == 3

    file.write_text(entry("Second", "walnuts again"))
    (library.store / "planner/MEMORY.md").unlink()

    assert library.titles("walnuts") == ["Second"]


def test_a_change_of_equal_size_and_time_is_seen(library: Library) -> None:
    file = library.write("reviewer", entry("First", "about walnuts"))
    times = file.stat()
    assert library.titles("walnuts") == ["First"]

    file.write_text(entry("First", "about apricot"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert library.titles("walnuts") == []
    assert library.titles("apricot") == ["First"]


def test_changes_faster_than_the_clock_are_seen(library: Library) -> None:
    for number in range(30):
        library.write("reviewer", entry("First", f"word{number:04d}x"))
        assert library.titles(f"word{number:04d}x") == ["First"]


def test_a_moved_entry_keeps_its_row_and_gets_its_new_line(library: Library) -> None:
    file = library.write("reviewer", entry("First", "about walnuts"))
    before = library.find("walnuts")[0]

    file.write_text(entry("New", "above") + file.read_text())
    after = library.find("walnuts")[0]

    assert (after.row, after.id) == (before.row, before.id)
    assert file.read_text().splitlines()[after.line - 1].startswith("## Inscribed \u2014 First")


def test_an_unchanged_store_is_not_written(library: Library) -> None:
    library.write("reviewer", entry("First", "about walnuts"))
    old = library.store / "reviewer/MEMORY.md"
    os.utime(old, (1, 1))
    library.find("walnuts")
    _wait_for_settled(library)
    before = _versions(library.index)

    library.find("walnuts")

    assert _versions(library.index) == before


def _wait_for_settled(library: Library) -> None:
    import time

    deadline = time.monotonic() + 5
    while library.finder.refresh(library.sources).read_files and time.monotonic() < deadline:
        time.sleep(0.02)


def _versions(index: Path) -> list[tuple[int, int]]:
    return [(file.stat().st_size, file.stat().st_mtime_ns) for file in sorted(index.parent.glob("search.db*"))]


def overwrite_pages(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b"garbage " * 4096),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
        lambda path: _set_version(path, 0),
        lambda path: _set_version(path, 99),
        lambda path: _execute(path, "UPDATE meta SET value = 'older'"),
        lambda path: _execute(path, "DROP TABLE citation"),
        lambda path: _execute(path, "DROP TABLE meta"),
        overwrite_pages,
    ],
    ids=["deleted", "garbage", "empty", "cut", "version-0", "newer", "other-build", "no-table", "no-meta", "pages"],
)
def test_a_broken_index_is_built_again(
    library: Library, damage: Callable[[Path], object], in_another_process: Callable[[str], list[str]]
) -> None:
    library.write("reviewer", entry("First", "about walnuts"))
    library.find("walnuts")
    library.finder.close()

    damage(library.index)

    assert in_another_process("walnuts") == ["First"]
    assert in_another_process("walnuts") == ["First"]


@pytest.mark.parametrize("damage", ["delete", "garbage"])
def test_an_index_that_breaks_while_it_is_open_is_built_again(library: Library, damage: str) -> None:
    library.write("reviewer", entry("First", "about walnuts"))
    library.find("walnuts")

    if damage == "delete":
        for file in library.index.parent.glob("search.db*"):
            file.unlink()
    else:
        library.index.write_bytes(b"garbage " * 4096)
    library.write("planner", entry("Second", "more walnuts"))

    assert sorted(library.titles("walnuts")) == ["First", "Second"]


def _set_version(path: Path, version: int) -> None:
    _execute(path, f"PRAGMA user_version = {version}")


def _execute(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_full_disk_gives_an_answer_and_a_sentence(library: Library) -> None:
    library.write("reviewer", entry("First", "about walnuts " * 3))

    def search_with_little_space() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        answer = library.finder.search(library.sources, SearchRequest("walnuts"))
        assert [found.title for found in answer.results] == ["First"]
        assert answer.notice is not None
        assert "search.db" in answer.notice

    assert run_in_child(search_with_little_space) == 0


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_gives_an_answer_and_a_sentence(library: Library) -> None:
    library.write("reviewer", entry("First", "about walnuts"))
    library.index.parent.mkdir(mode=0o500)

    answer = library.finder.search(library.sources, SearchRequest("walnuts"))

    assert [found.title for found in answer.results] == ["First"]
    assert answer.notice is not None


def test_a_directory_in_place_of_the_index_gives_an_answer_and_a_sentence(library: Library) -> None:
    library.write("reviewer", entry("First", "about walnuts"))
    library.index.mkdir(parents=True)

    answer = library.finder.search(library.sources, SearchRequest("walnuts"))

    assert [found.title for found in answer.results] == ["First"]
    assert answer.notice is not None


def test_while_another_process_writes_only_unchanged_files_are_answered_from(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "BUSY_TIMEOUT_SECONDS", 0.05)
    library.write("reviewer", entry("First", "about walnuts"))
    changed = library.write("planner", entry("Second", "old walnuts"))
    library.find("walnuts")
    _wait_for_settled(library)
    library.finder.close()
    writer = sqlite3.connect(library.index, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    changed.write_text(entry("Second", "new walnuts"))

    answer = library.finder.search(library.sources, SearchRequest("walnuts"))
    writer.execute("ROLLBACK")
    writer.close()

    assert [found.title for found in answer.results] == ["First"]
    assert answer.stale is not None
    assert sorted(library.titles("walnuts")) == ["First", "Second"]


def test_an_unreadable_file_is_reported_and_the_others_are_found(library: Library) -> None:
    library.write("reviewer", entry("First", "about walnuts"))
    bad = library.store / "planner/MEMORY.md"
    bad.parent.mkdir()
    bad.write_bytes(b"## Inscribed \xff\xfe walnuts")

    answer = library.finder.search(library.sources, SearchRequest("walnuts"))

    assert [found.title for found in answer.results] == ["First"]
    assert [problem.path for problem in answer.problems] == [str(bad)]


def test_a_link_out_of_the_store_is_not_read(library: Library, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "MEMORY.md").write_text(entry("Outside", "about walnuts"))
    (library.store / "linked").symlink_to(outside)
    (library.store / "reviewer").mkdir()
    (library.store / "reviewer/MEMORY.md").symlink_to(outside / "MEMORY.md")

    assert library.titles("walnuts", ALL_KINDS) == []


def test_several_processes_build_one_index(library: Library) -> None:
    for number in range(40):
        library.write(f"role{number}", entry(f"Title {number}", "about walnuts"))
    results: list[int] = []

    def search() -> None:
        finder = DocumentFinder(library.index)
        results.append(finder.search(library.sources, SearchRequest("walnuts", limit=100)).total)
        finder.close()

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [40] * 4
    connection = open_index(library.index).connection
    assert connection.execute("SELECT count(*) FROM document").fetchone() == (40,)
    connection.close()


def test_a_killed_writer_leaves_a_usable_index(library: Library) -> None:
    for number in range(30):
        library.write(f"role{number}", entry(f"Title {number}", "about walnuts"))

    def search_and_die() -> None:
        connection = open_index(library.index).connection
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO collection (key, scope, project, store) VALUES ('x', '', '', '')")
        os._exit(137)

    assert run_in_child(search_and_die) == 137
    assert len(library.find("walnuts")) == 10


def test_secrets_are_not_stored(library: Library) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    library.write("reviewer", entry("Deploy key", f"The walnut key is {key} for `src/{key}.py:1`."))

    (found,) = library.find("walnut")

    assert key not in repr(found)
    library.finder.close()
    assert all(key.encode() not in file.read_bytes() for file in library.index.parent.glob("search.db*"))
    assert library.titles(key) == []


def test_a_secret_among_many_entries_is_not_stored(library: Library) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    texts = [f"The walnut number {number} grows slowly. " * 5 for number in range(200)]
    texts[120] += f"Its key is {key}."
    library.write("reviewer", "".join(entry(f"Tree {number}", text) for number, text in enumerate(texts)))

    (found,) = [document for document in library.find("number 120 key") if document.title == "Tree 120"]

    assert found.body.endswith("Its key is [REDACTED:aws-access-key].")
    library.finder.close()
    assert all(key.encode() not in file.read_bytes() for file in library.index.parent.glob("search.db*"))


def test_the_index_is_private(library: Library) -> None:
    library.write("reviewer", entry("First", "about walnuts"))
    library.find("walnuts")

    assert {file.stat().st_mode & 0o077 for file in library.index.parent.glob("search.db*")} == {0}


def test_forgotten_collections_leave_nothing_behind(library: Library) -> None:
    library.write("reviewer", entry("First", "about walnuts"))
    library.find("walnuts")
    index = open_index(library.index)

    index.forget(lambda *_: False)

    tables = ("collection", "file", "document", "citation", "passage", "word")
    counts = [index.connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in tables]  # noqa: S608
    assert counts == [(0,)] * 6
    index.close()


operations = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.lists(st.integers(0, 5), max_size=4)), min_size=1, max_size=8
)


@settings(max_examples=12)
@given(steps=operations)
def test_a_followed_index_has_the_rows_of_a_new_one(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[int]]]
) -> None:
    library = Library(tmp_path_factory.mktemp("library"))
    for role, numbers in steps:
        library.write(role, "".join(entry(f"Title {number}", f"text{number} shared walnut") for number in numbers))
        library.finder.refresh(library.sources)
    library.finder.close()

    followed = _content(library.index, library)
    fresh = _content(library.root / "fresh/search.db", library)

    assert followed == fresh


def _content(path: Path, library: Library) -> tuple[list[tuple[object, ...]], ...]:
    index = open_index(path)
    index.refresh(library.sources)
    selects = (
        "SELECT entry, title, body, line, kind FROM document ORDER BY 1, 2, 3, 4",
        "SELECT words FROM passage ORDER BY 1",
        "SELECT word, documents FROM word ORDER BY 1",
        "SELECT key, documents, passages FROM collection ORDER BY 1",
    )
    content = tuple(index.connection.execute(select).fetchall() for select in selects)
    index.close()
    return content


def test_archived_entries_are_found_only_on_request(library: Library) -> None:
    library.write("reviewer", entry("Kept", "about walnuts"))
    backup = entry("Kept", "about walnuts") + entry("Removed", "about walnuts")
    library.write("reviewer", backup, "archive/MEMORY-2026-10-01.md")
    library.write("reviewer", backup, "archive/MEMORY-2026-10-02.md")

    assert library.titles("walnuts") == ["Kept"]
    archived = library.find("walnuts", frozenset({DocumentKind.ARCHIVE}))
    assert sorted(found.title for found in archived) == ["Kept", "Removed"]


def test_what_another_process_indexed_is_found_by_a_finder_that_has_answered_before(
    library: Library, in_another_process: Callable[[str], list[str]]
) -> None:
    library.write("reviewer", entry("First", "about walnuts and almonds"))
    assert library.titles("walnuts almonds") == ["First"]

    library.write("planner", entry("Second", "walnuts, almonds and almandine"))
    assert sorted(in_another_process("walnuts almonds")) == ["First", "Second"]

    assert sorted(library.titles("walnuts almonds")) == ["First", "Second"]


def test_a_long_paragraph_is_split_at_its_lines_and_sentences() -> None:
    sentence = "The walnut cache is cold in the morning and warm at night, so measure it twice a day."
    lines = [f"Ann: {sentence} {number}." for number in range(20)]
    for text in ("\n".join(lines), " ".join(lines)):
        found = list(passages(text))

        assert len(found) >= 5
        assert max(map(len, found)) <= MAX_PASSAGE_LENGTH + len(sentence) + 10
        assert " ".join(" ".join(found).split()) == " ".join(text.split())


def test_a_large_import_leaves_one_part_of_the_full_text_index(library: Library) -> None:
    library.write("reviewer", "".join(entry(f"Entry {number}", f"walnut number{number}") for number in range(700)))

    assert len(library.titles("walnut")) == 10

    with sqlite3.connect(library.index) as connection:
        parts = connection.execute("SELECT count(DISTINCT segid) FROM passage_idx").fetchone()[0]
    connection.close()
    assert parts == 1


_PASSAGES = st.frozensets(st.tuples(st.integers(1, 6), st.integers(0, 3)), max_size=8)


@settings(max_examples=100)
@given(words=st.lists(st.tuples(_PASSAGES, st.integers(1, 9)), min_size=1, max_size=4))
def test_documents_with_one_word_score_as_if_looked_at_one_by_one(
    words: list[tuple[frozenset[tuple[int, int]], int]],
) -> None:
    evidence = [
        ranking.WordEvidence(
            ranking.word_rows(sorted((document << PASSAGE_BITS) + passage for document, passage in found)), value
        )
        for found, value in words
    ]
    total = sum(value for _, value in words)

    scores: dict[int, float] = {}
    coverage: dict[int, float] = {}
    for document in {document for found, _ in words for document, _ in found}:
        by_passage = defaultdict[int, float](float)
        title = sum(value * ranking.TITLE_WEIGHT for found, value in words if (document, 0) in found)
        for found, value in words:
            for passage in (passage for owner, passage in found if owner == document and passage):
                both = ranking.BOTH_WEIGHT - ranking.TITLE_WEIGHT
                by_passage[passage] += value * both if (document, 0) in found else value
        best = sorted(by_passage.values(), reverse=True) or [0.0]
        following = sum(value + title for value in best[1:3]) * ranking.NEXT_PASSAGES_WEIGHT
        scores[document] = best[0] + title + following
        coverage[document] = sum(value for found, value in words if any(owner == document for owner, _ in found))
    highest = max(scores.values(), default=1.0)
    expected = {document: scores[document] / highest + coverage[document] / total for document in scores}

    assert ranking.combine_evidence(evidence, {}, total) == pytest.approx(expected)

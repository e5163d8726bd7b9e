"""The access log of the plugin's own index, in every generation of its database."""

from __future__ import annotations

import hashlib
import json
import runpy
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from echod.cli.root import run_command_line
from echod.errors import EchodError, UsageError
from echod.state.database import Database
from tests.search.conftest import entry
from tests.support import Home, corpus

PATH_THEN = "/home/dev/harbour/.rune/echoes/reviewer/MEMORY.md"


def upstream_id(line: int, path: str = PATH_THEN, role: str = "reviewer") -> str:
    return hashlib.sha256(f"{role}:{path}:{line}".encode()).hexdigest()[:16]


class Harbour:
    """A project with entries, and a database of the plugin."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.project = root / "project"
        self.store = self.project / ".rune/echoes"
        self.home = Home(root / "home")
        self.home.root.mkdir()
        self._capsys = capsys
        for name, value in self.home.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("TZ", "UTC")
        file = self.store / "reviewer/MEMORY.md"
        file.parent.mkdir(parents=True)
        file.write_text(
            "# Reviewer\n\n"
            + entry("Moorings drift", "Check the moorings twice.", date="2026-03-01")
            + entry("Twins", "The first twin.", date="2026-03-02")
            + entry("Twins", "The second twin.", date="2026-03-02")
        )
        self.database = self.store / ".search-index.db"

    def make_database(self, rows: list[tuple[str, str, str]], *, log: bool = True, entries: bool = True) -> None:
        connection = sqlite3.connect(self.database)
        if entries:
            connection.execute(
                "CREATE TABLE echo_entries (id TEXT PRIMARY KEY, role TEXT, layer TEXT, date TEXT, source TEXT, "
                "content TEXT, tags TEXT, line_number INTEGER, file_path TEXT)"
            )
            known = [(3, "Moorings drift", "Old words.", "2026-03-01"), (9, "Twins", "The second twin.", "2026-03-02")]
            for line, title, content, day in known:
                connection.execute(
                    "INSERT INTO echo_entries VALUES (?, 'reviewer', 'inscribed', ?, '', ?, ?, ?, ?)",
                    (upstream_id(line), day, content, title, line, PATH_THEN),
                )
        if log:
            connection.execute(
                "CREATE TABLE echo_access_log (id INTEGER PRIMARY KEY, entry_id TEXT, accessed_at TEXT, query TEXT)"
            )
            connection.executemany("INSERT INTO echo_access_log (entry_id, accessed_at, query) VALUES (?, ?, ?)", rows)
        connection.execute("PRAGMA user_version = 3")
        connection.commit()
        connection.close()

    def report(self, *words: object) -> dict[str, Any]:
        assert run_command_line(["import-access", str(self.project), *map(str, words), "--json"]) == 0
        found: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return found

    def references(self) -> list[tuple[str, str]]:
        with Database.open(self.home.state / "echod.db") as database, database.read_transaction() as connection:
            rows = connection.execute("SELECT entry_id, day FROM reference ORDER BY day").fetchall()
        return [(row[0], row[1]) for row in rows]


@pytest.fixture
def harbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Harbour:
    return Harbour(tmp_path, monkeypatch, capsys)


def test_all_rows_of_a_day_are_one_reference_and_a_second_import_records_nothing(harbour: Harbour) -> None:
    moorings = upstream_id(3)
    harbour.make_database([
        (moorings, "2026-04-01T08:00:00Z", "drift"),
        (moorings, "2026-04-01T08:00:00Z", "drift"),
        (moorings, "2026-04-01T19:00:00Z", ""),
        (moorings, "2026-04-03T08:00:00Z", "other"),
    ])  # fmt: skip
    before = harbour.database.read_bytes()

    planned = harbour.report("--dry-run")
    first, second = harbour.report(), harbour.report()

    assert (planned["new"], first["new"], second["new"]) == (0, 2, 0)
    (found,) = first["entries"]
    assert (found["title"], found["days"]) == ("Moorings drift", ["2026-04-01", "2026-04-03"])
    assert [day for _, day in harbour.references()] == ["2026-04-01", "2026-04-03"]
    assert harbour.database.read_bytes() == before


def test_equal_titles_are_told_apart_by_their_text(harbour: Harbour) -> None:
    harbour.make_database([(upstream_id(9), "2026-04-01T08:00:00Z", "twin")])

    (found,) = harbour.report()["entries"]
    (shown,) = harbour.references()

    assert run_command_line(["show", found["id"], str(harbour.project)]) == 0
    assert "The second twin." in harbour._capsys.readouterr().out
    assert shown[0] == found["id"]


def test_rows_that_name_nothing_or_have_no_time_are_counted(harbour: Harbour) -> None:
    harbour.make_database([("0123456789abcdef", "2026-04-01T08:00:00Z", "x"), (upstream_id(3), "not a date", "x")])

    report = harbour.report()

    assert (report["rows"], report["unmatched"], report["undated"], report["new"]) == (2, 1, 1, 0)


def test_a_row_whose_entry_left_the_database_is_matched_by_its_place(harbour: Harbour) -> None:
    moved = PATH_THEN.replace("/.rune/", "/.claude/")
    harbour.make_database([(upstream_id(3, moved), "2026-04-01T08:00:00Z", "x")])

    assert [found["title"] for found in harbour.report()["entries"]] == ["Moorings drift"]


@pytest.mark.parametrize("missing", [{"log": False}, {"entries": False, "log": False}], ids=["no-log", "no-tables"])
def test_a_generation_without_a_log_has_nothing_to_import(harbour: Harbour, missing: dict[str, bool]) -> None:
    harbour.make_database([], **missing)

    assert harbour.report()["rows"] == 0


def test_garbage_and_a_missing_file_are_sentences(harbour: Harbour) -> None:
    with pytest.raises(UsageError, match="search-index"):
        harbour.report()
    harbour.database.write_bytes(b"garbage " * 1000)
    with pytest.raises(EchodError, match="not a search index"):
        harbour.report()


@pytest.mark.corpus
@pytest.mark.parametrize("generation", ["v0", "v0a", "v1", "v2", "v3", "v4", "v5", "v5x"])
def test_every_generation_of_the_corpus_is_imported(harbour: Harbour, tmp_path: Path, generation: str) -> None:
    made = runpy.run_path(str(corpus("make_index_dbs.py")))
    expected = made["build"](str(tmp_path / "made"))
    (tmp_path / "ledger/.rune").mkdir(parents=True)
    (tmp_path / "made/store").rename(tmp_path / "ledger/.rune/echoes")
    harbour.project = tmp_path / "ledger"

    report = harbour.report("--database", tmp_path / "made" / generation / ".search-index.db")

    if generation in expected["without_access_log"]:
        assert report["rows"] == 0
        return
    assert report["rows"] == expected["log_rows"]
    assert report["unmatched"] == expected["orphan_rows"] - len(expected["orphans_that_can_be_named"])
    days = {found["title"]: found["days"] for found in report["entries"]}
    for known in expected["per_entry"].values():
        if known["days"]:
            assert set(known["days"]) <= set(days[known["title"]])

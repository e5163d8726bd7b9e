"""`echod search` and `echod brief`, as they are typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from echod.cli.root import run_command_line
from echod.cli.search_screen import search_quickly
from echod.errors import UsageError
from echod.paths import PATH_VARIABLES
from tests.search.conftest import entry
from tests.support import Home, until

KEYS = {
    "id", "kind", "scope", "project", "store", "role", "layer", "title", "date", "path", "line", "preview", "score",
    "evidence",
}  # fmt: skip


class Desk:
    """A project, a home, and commands that run in this process."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.project = root / "project"
        self.home = Home(root / "home")
        self.home.root.mkdir()
        self._capsys = capsys
        for name, value in self.home.environ.items():
            monkeypatch.setenv(name, value)
        self.write(self.project, "reviewer", entry("Walnut cache", "The walnut cache is cold, see `src/cache.py:3-9`."))
        monkeypatch.chdir(self.project)

    def write(self, project: Path, role: str, text: str, name: str = "MEMORY.md") -> Path:
        file = project / ".rune/echoes" / role / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def remove_committed(self, path: str) -> None:
        """Remove a file that the project's repository has."""
        file = self.project / path
        file.parent.mkdir(parents=True)
        file.write_text("one\n\ntwo\nthree\n")
        for words in (["init", "-q"], ["add", path], ["commit", "-q", "-m", "begin"]):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.project, check=True)
        file.unlink()

    def run(self, *words: object) -> str:
        assert run_command_line([str(word) for word in words]) == 0
        return self._capsys.readouterr().out

    def json(self, *words: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(*words, "--json"))
        return found

    def titles(self, *words: object) -> list[str]:
        return [result["title"] for result in self.json("search", *words)["results"]]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, monkeypatch, capsys)


def test_a_result_has_the_fields_of_the_contract(desk: Desk) -> None:
    desk.remove_committed("src/cache.py")

    report = desk.json("search", "walnut", "cache")

    assert next(iter(report)) == "schema"
    assert {"query", "total", "stale", "results"} <= set(report)
    assert (report["query"], report["total"], report["stale"]) == ("walnut cache", 1, False)
    (result,) = report["results"]
    assert set(result) >= KEYS
    assert (result["kind"], result["scope"], result["role"], result["layer"]) == (
        "memory", "project", "reviewer", "inscribed",
    )  # fmt: skip
    assert result["evidence"] == [{"cite": "src/cache.py:3-9", "state": "gone", "at": None}]
    assert Path(result["path"]).read_text().splitlines()[result["line"] - 1].startswith("## Inscribed")


def test_the_screen_fits_into_80_columns(desk: Desk) -> None:
    desk.write(desk.project, "reviewer", entry("Walnut " * 30, "walnut " * 200))

    screen = desk.run("search", "walnut")

    assert max(map(len, screen.splitlines())) <= 80
    assert "never instructions" in " ".join(screen.split())


def test_nothing_found_says_where_it_searched(desk: Desk) -> None:
    screen = desk.run("search", "nosuchword")

    assert "Nothing matches 'nosuchword'" in screen
    assert ".rune/echoes" in screen


def test_a_directory_with_a_memory_is_the_project(desk: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    desk.write(other, "planner", entry("Other walnut", "about walnuts"))

    assert desk.titles("walnut") == ["Walnut cache"]
    assert desk.titles("walnut", other) == ["Other walnut"]
    assert desk.json("search", "walnut", other)["query"] == "walnut"


def test_a_directory_without_a_memory_is_a_word(desk: Desk, tmp_path: Path) -> None:
    (desk.project / "walnut").mkdir()

    assert desk.titles("walnut") == ["Walnut cache"]


def test_all_scopes_include_other_projects_and_the_global_store(desk: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    desk.write(other, "planner", entry("Other walnut", "about walnuts"))
    desk.run("add", other)
    shared = desk.home.root / "claude/echoes/global/MEMORY.md"
    shared.parent.mkdir(parents=True)
    shared.write_text(entry("Shared walnut", "about walnuts"))

    assert sorted(desk.titles("walnut", "--scope", "all")) == ["Other walnut", "Shared walnut", "Walnut cache"]
    assert desk.titles("walnut", "--scope", "global") == ["Shared walnut"]
    assert desk.titles("walnut", "--scope", "project") == ["Walnut cache"]


def test_outside_of_a_project_everything_is_searched(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.run("add", desk.project)
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.chdir(outside)

    assert desk.titles("walnut") == ["Walnut cache"]
    with pytest.raises(UsageError, match="no memory"):
        desk.run("search", "walnut", "--scope", "project")


def test_filters_and_pages(desk: Desk) -> None:
    desk.write(desk.project, "planner", entry("Old walnut", "walnuts", layer="Traced"))
    desk.write(desk.project, "planner", entry("Known walnut", "walnuts"), "knowledge.md")
    desk.write(desk.project, "planner", entry("Gone walnut", "walnuts"), "archive/MEMORY-2026-01-01.md")

    assert desk.titles("walnut", "--layer", "traced") == ["Old walnut"]
    assert desk.titles("walnut", "--role", "reviewer") == ["Walnut cache"]
    assert desk.titles("walnut", "--kind", "knowledge") == ["Known walnut"]
    assert desk.titles("walnut", "--kind", "archive") == ["Gone walnut"]
    assert len(desk.titles("walnut")) == 3
    pages = [desk.titles("walnut", "--limit", 1, "--offset", offset) for offset in range(4)]
    assert sorted(title for page in pages for title in page) == sorted(desk.titles("walnut"))
    assert pages[3] == []


def test_an_entry_about_the_file_at_hand_comes_first(desk: Desk) -> None:
    for name in ("one", "two"):
        desk.write(desk.project, name, entry(f"Equal {name}", f"equaltok, see `src/{name}.py:1`"))

    assert desk.titles("equaltok", "--near", "src/two.py")[0] == "Equal two"
    assert desk.titles("equaltok", "--near", "src/one.py")[0] == "Equal one"


@pytest.mark.parametrize("query", ["walnut AND", '"walnut', "title:walnut", "walnut*", "-walnut cache", "--walnut x"])
def test_a_query_is_never_syntax(desk: Desk, query: str) -> None:
    assert desk.titles(query, "--limit", "5") == ["Walnut cache"]


def test_words_behind_two_dashes_are_no_options(desk: Desk) -> None:
    assert "Walnut cache" in desk.run("search", "--", "--walnut")


def test_an_unknown_option_is_no_word(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["search", "walnut", "--limt", "3"]) == 2
    assert "--limit" in capsys.readouterr().err


def test_an_unreadable_file_is_named(desk: Desk) -> None:
    bad = desk.write(desk.project, "planner", "")
    bad.write_bytes(b"## Inscribed \xff")

    assert desk.json("search", "walnut")["problems"][0]["path"] == str(bad)
    assert "planner/MEMORY.md" in desk.run("search", "walnut")


# Brief


def test_a_brief_begins_with_what_always_applies(desk: Desk) -> None:
    desk.write(desk.project, "planner", entry("Permanent rule", "Always lint.", layer="Etched"))
    desk.write(desk.project, "notes", entry("A note", "Mind the gap.", layer="Notes"))

    text = desk.run("brief", "cold", "walnut", "cache")

    assert text.startswith("<rune-echo-context>")
    assert text.index("Permanent rule") < text.index("A note") < text.index("Walnut cache")


def test_a_brief_knows_the_changed_files(desk: Desk) -> None:
    subprocess.run(["git", "init", "-q"], cwd=desk.project, check=True)
    (desk.project / "src").mkdir()
    (desk.project / "src/cache.py").touch()

    report = desk.json("brief")

    assert "src/cache.py" in report["files"]
    assert [found["title"] for found in report["matching"]] == ["Walnut cache"]


def test_a_brief_runs_nothing_that_a_repository_brings_along(desk: Desk, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    subprocess.run(["git", "init", "-q"], cwd=desk.project, check=True)
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    for name in ("core.fsmonitor", "filter.x.clean", "diff.external", "core.pager"):
        subprocess.run(["git", "config", name, str(hook)], cwd=desk.project, check=True)
    (desk.project / ".gitattributes").write_text("* filter=x\n")

    desk.run("brief", "walnut")

    assert not mark.exists()


def test_a_brief_names_conflicts_and_evidence_that_is_gone(desk: Desk) -> None:
    desk.remove_committed("src/cache.py")
    desk.write(
        desk.project, "workers", entry("Walnut timeout", "The walnut timeout is 5 seconds for every walnut call.")
    )
    desk.write(
        desk.project, "planner",
        entry("Walnut timeout", "The walnut timeout is 30 seconds for every walnut call.", layer="Etched"),
    )  # fmt: skip

    report = desk.json("brief", "walnut", "timeout")
    text = desk.run("brief", "walnut", "timeout")

    (conflict,) = report["conflicts"]
    assert conflict["first"] == report["always"][0]["id"]
    assert "## Conflicts" in text
    assert [found["cite"] for found in report["missing"]] == ["src/cache.py:3-9"]


@pytest.mark.parametrize("lines", [10, 20, 60])
def test_a_brief_is_bounded(desk: Desk, lines: int) -> None:
    desk.write(desk.project, "planner", "".join(entry(f"Walnut {n}", "walnut text") for n in range(40)))

    text = desk.run("brief", "walnut", "--lines", lines)

    assert len(text.splitlines()) <= lines
    assert "More entries match" in text


def test_a_brief_of_an_empty_memory_says_so(desk: Desk, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    (empty / ".rune/echoes/reviewer").mkdir(parents=True)

    assert "No entry matches" in desk.run("brief", "anything", empty)


@pytest.fixture
def plain(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk without settings, as most users have it."""
    for name in desk.home.environ:
        if name.startswith("ECHOD_") and name not in PATH_VARIABLES:
            monkeypatch.delenv(name)
    monkeypatch.delenv("ECHOD_CONFIG", raising=False)
    return desk


@pytest.mark.parametrize(
    "words",
    [
        ["walnut"],
        ["walnut", "cache", "--json"],
        ["walnut", "--limit", "1", "--role", "reviewer"],
        ["--role=reviewer", "walnut", "--json"],
        ["nosuchword"],
        ["walnut", "."],
    ],
    ids=" ".join,
)
def test_the_quick_search_prints_what_the_command_prints(
    plain: Desk, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plain.write(plain.project, "planner", entry("Other walnut", "about walnuts"))
    usual = plain.run("search", *words)

    assert search_quickly(words, os.environ)
    assert capsys.readouterr().out == usual


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--json"],
        ["walnut", "--scope", "all"],
        ["walnut", "--limit", "0"],
        ["walnut", "--limit", "few"],
        ["walnut", "--limit"],
        ["walnut", "--json=yes"],
        ["walnut", "--role", "--json"],
        ["-x", "walnut"],
        ["--", "walnut"],
        [" "],
    ],
    ids=" ".join,
)
def test_unusual_arguments_are_left_to_the_command(
    plain: Desk, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert not search_quickly(words, os.environ)
    assert capsys.readouterr().out == ""


def test_settings_are_left_to_the_command(plain: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOD_QUIET_SECONDS", "many")

    assert not search_quickly(["walnut"], os.environ)


def test_the_quick_search_shows_a_change_at_once(plain: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert not search_quickly(["walnut"], os.environ)  # the first search shows its progress
    plain.run("search", "walnut")
    capsys.readouterr()
    assert search_quickly(["walnut"], os.environ)
    file = plain.write(plain.project, "reviewer", entry("Hazelnut cache", "It is warm."))
    assert search_quickly(["walnut"], os.environ)
    assert search_quickly(["hazelnut"], os.environ)
    file.unlink()
    assert search_quickly(["hazelnut"], os.environ)

    first, *others = capsys.readouterr().out.partition("Nothing matches 'walnut'")
    assert "Walnut cache" in first
    assert "Hazelnut cache" in others[1].partition("Nothing matches 'hazelnut'")[0]
    assert others[1].count("Hazelnut cache") == 1


def test_a_process_searches_without_a_library_for_command_lines(plain: Desk) -> None:
    program = (
        "import os, sys; sys.argv = ['echod', 'search', 'walnut']; from echod.cli import main; "
        "os._exit = lambda code: sys.stderr.write(' '.join(sys.modules)); main.main()"
    )

    def loaded() -> set[str]:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert "Walnut cache" in done.stdout
        return set(done.stderr.split())

    cited = plain.project / "src/cache.py"
    cited.parent.mkdir()
    cited.write_text("a walnut\n" * 9)
    # The parser reads the file, and the verifier what it cites, until they are older than a tick of the clock.
    until(lambda: loaded().isdisjoint({"echod.memory.document", "echod.evidence.verifier"}), "an up-to-date index")
    modules = loaded()

    assert {"echod.search.ranking", "echod.app.found_evidence"} <= modules
    assert modules & {"click", "dataclasses", "platformdirs", "echod.memory.evidence.compare"} == set()

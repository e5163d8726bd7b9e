"""`echod log JOB` shows a job's changes by entry; `echod explain` begins with a sentence; `echod show` lists the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from echod.cli.output import BLOCKS, block
from tests.support import Home, finding_text, make_project

MEMORY_HEADER = "<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def project(home: Home) -> Path:
    root = make_project(home.root / "p", "reviewer")
    text = finding_text("Retries need a key") + "\n" + finding_text("Money is in cents", layer="etched")
    (root / ".rune/echoes/reviewer/MEMORY.md").write_text(f"{MEMORY_HEADER}{text}\n## Old notes\n\nOne.\nTwo.\n")
    home.run("add", root)
    return root


def entry_id(home: Home, project: Path, title: str) -> str:
    entries = home.json("show", project)["entries"]
    return str(next(entry["id"] for entry in entries if entry["title"] == title))


def test_the_changes_of_a_job_are_shown_by_entry(home: Home, project: Path) -> None:
    identity = entry_id(home, project, "Retries need a key")
    home.run("forget", identity, project, "--yes")

    screen = home.run("log", 1)
    report = home.json("log", 1)

    assert f"- {identity}  Retries need a key" in screen.splitlines()
    assert "    - - What was learnt about Retries need a key." in screen.splitlines()
    assert "Undo: echod undo 1" in screen
    assert "Money is in cents" not in screen
    assert [(entry["action"], entry["id"]) for entry in report["entries"]] == [("removed", identity)]
    assert report["job"]["job"] == 1


def test_a_number_that_is_no_job_names_the_next_step(home: Home, project: Path) -> None:
    done = home.echod("log", 99, cwd=project)

    assert done.returncode == 2
    assert "Job 99 changed no memory. `echod log` lists" in done.stderr


def test_explain_begins_with_a_sentence_and_shows_weights_that_add_up(home: Home, project: Path) -> None:
    identity = entry_id(home, project, "Retries need a key")

    first = home.run("explain", identity, project).splitlines()[0]
    protected = home.run("explain", entry_id(home, project, "Money is in cents"), project).splitlines()[0]
    report = home.json("explain", identity, project)

    assert first.startswith("Stays: the file is within its limit")
    assert protected == "Stays: it is etched, so only you change it."
    assert report["verdict"].startswith(first)
    weighted = sum(report["weights"][name] * report["terms"][name] for name in ("importance", "relevance", "recency"))
    assert weighted == pytest.approx(report["score"])


def test_explain_says_why_an_entry_would_leave(home: Home, project: Path) -> None:
    memory = project / ".rune/echoes/reviewer/MEMORY.md"
    findings = [finding_text(f"Module {number} is slow", layer="observations") for number in range(40)]
    memory.write_text(MEMORY_HEADER + "\n".join(findings))
    plan = json.loads(home.run("prune", project, "--dry-run", "--json"))
    leaving = next(entry["id"] for entry in plan["entries"] if entry["action"] != "keep")

    sentence = " ".join(home.run("explain", leaving, project).split("\n\n", 1)[0].split())

    assert sentence.startswith("Would be ")
    assert "lines over its limit" in sentence


def test_show_lists_what_no_rule_may_touch(home: Home, project: Path) -> None:
    screen = home.run("show", "reviewer", project)

    assert (
        "Only you change:\n  1 etched (by their layer)\n  1 other section that echod does not manage, 4 lines" in screen
    )
    assert "## Old notes" in screen


def test_show_draws_the_lines_of_a_role_over_time(home: Home, project: Path) -> None:
    assert "lines since" not in home.run("show", "reviewer", project)
    home.run("forget", entry_id(home, project, "Retries need a key"), project, "--yes")
    home.run("undo", "--last", project, "--yes")

    screen = home.echod("show", "reviewer", project, LC_ALL="C.UTF-8").stdout
    ascii_screen = home.echod("show", "reviewer", project, PYTHONIOENCODING="ascii").stdout

    (line,) = [line.strip() for line in screen.splitlines() if "lines since" in line]
    blocks, start, _, end, *_ = line.split()
    assert (blocks[0], blocks[2], len(blocks)) == ("█", "█", 3)
    assert blocks[1] in BLOCKS[1:-1]
    assert start == end
    assert "lines since" not in ascii_screen
    assert "\\u25" not in ascii_screen


@pytest.mark.parametrize(("value", "expected"), [(0, " "), (1, "▁"), (50, "▄"), (100, "█")])
def test_a_block_is_as_high_as_its_share_and_something_is_never_nothing(value: int, expected: str) -> None:
    assert block(value, 100) == expected

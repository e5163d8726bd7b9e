"""`echod remembrance`, its check, and solutions in searches."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.remembrance.conftest import PARTS, Project, entry_text
from tests.support import corpus

NAME = "performance/user-list-takes-five-seconds.md"
Etched = Callable[..., Project]


def report(project: Project, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(project.echod("remembrance", *words, "--json").output)
    return found


def test_a_promoted_entry_is_found_by_its_own_symptom(project: Project) -> None:
    project.write(entry_text())
    project.promote()
    topics = ("parser", "release", "upload", "mail", "login", "chart")
    notes = [entry_text(f"The {word} is slow", f"- The {word} takes five seconds", source=word) for word in topics]
    project.write(project.memory().read_text(), *notes)

    found = json.loads(project.echod("search", "the user list takes five seconds", "--json").output)["results"]

    assert "solution" in [one["kind"] for one in found[:5]]


def test_a_list_names_categories_words_and_essays(etched: Etched) -> None:
    project = etched()
    project.promote()
    (project.solutions / "performance/essay.md").write_text("# An essay\n")
    (project.solutions / "README.md").write_text("# Solutions\n")

    assert [one["path"] for one in report(project)["solutions"]] == [f"docs/solutions/{NAME}"]
    assert report(project)["essays"] == [str(project.solutions / "performance/essay.md")]
    assert len(report(project, "performance")["solutions"]) == 1
    assert report(project, "tooling")["solutions"] == []
    assert len(report(project, "posts", "together")["solutions"]) == 1
    assert report(project, "kubernetes")["solutions"] == []


def test_a_changed_entry_makes_its_solution_stale_and_nothing_is_repaired(etched: Etched) -> None:
    project = etched()
    project.promote()
    assert project.echod("remembrance", "check").code == 0
    project.write(entry_text(body=PARTS.replace("five", "nine")))
    before = (project.solutions / NAME).read_bytes()

    result = project.echod("remembrance", "check")

    assert result.code == 1
    assert "Stale: User list takes five seconds" in result.output
    assert report(project)["solutions"][0]["state"] == "stale"
    assert (project.solutions / NAME).read_bytes() == before


def test_a_solution_whose_entry_is_gone_is_stale(etched: Etched) -> None:
    project = etched()
    project.promote()
    project.write(entry_text("Another", source="x"))

    assert "any more" in report(project)["solutions"][0]["findings"][0]


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("confidence: high", "confidence: certain", "certain"),
        ("category: performance", "category: speed", "speed"),
        ("root_cause:", "cause:", "root_cause"),
        ("@sha256:", "@sha256:abc...", "abbreviated"),
        ("severity: medium", "related_echoes: [docs/solutions/tooling/gone.md]", "does not exist"),
        ("title: ", "title: x: ", "not valid YAML"),
    ],
)
def test_what_is_broken_is_named(etched: Etched, old: str, new: str, finding: str) -> None:
    project = etched()
    project.promote()
    file = project.solutions / NAME
    file.write_text(file.read_text().replace(old, new, 1))

    result = report(project)["solutions"][0]

    assert result["state"] == "broken"
    assert any(finding in text for text in result["findings"])


def test_references_of_earlier_layouts_are_followed(etched: Etched) -> None:
    project = etched()
    project.promote()
    file = project.solutions / NAME
    for earlier in ("echoes/reviewer", ".claude/echoes/reviewer"):
        file.write_text(file.read_text().replace(".rune/echoes/reviewer", earlier))
        assert report(project)["solutions"][0]["state"] == "current"
        file.write_text(file.read_text().replace(earlier, ".rune/echoes/reviewer"))


def test_a_superseded_solution_is_marked_wherever_it_is_shown(etched: Etched) -> None:
    project = etched()
    project.promote()
    file = project.solutions / NAME
    file.write_text(file.read_text().replace("severity:", "superseded_by: docs/solutions/README.md\nseverity:"))

    assert report(project)["solutions"][0]["state"] == "superseded"
    assert "(superseded) User list" in project.echod("search", "posts together", "--kind", "solution").output


def test_a_file_that_cannot_be_read_is_named_and_hides_no_other(etched: Etched) -> None:
    project = etched()
    project.promote()
    (project.solutions / "broken.md").write_text("---\ntitle: a\n")

    result = project.echod("remembrance", "check")

    assert result.code == 1
    assert "no end" in result.output
    assert "1 solution, 1 stale or broken" in result.output


@pytest.mark.skipif(
    "COMPOUND_VALIDATORS" not in os.environ, reason="COMPOUND_VALIDATORS names no directory with validate-*.py"
)
@pytest.mark.parametrize("name", ["validate-frontmatter.py", "validate-doc-claims.py"])
def test_the_validators_of_the_other_convention_accept_a_solution(etched: Etched, name: str) -> None:
    project = etched(evidence="`src/user.py:5-15` \u2014 a loop")
    (project.root / "src").mkdir()
    (project.root / "src/user.py").write_text("x = 1\n" * 20)
    subprocess.run(["git", "init", "-q", str(project.root)], check=True)
    project.promote("--title", "Fix: the #1 list")
    (document,) = project.solutions.rglob("*.md")

    script = Path(os.environ["COMPOUND_VALIDATORS"]) / name
    done = subprocess.run([sys.executable, str(script), str(document)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_at_most_three_entries_are_proposed_and_a_promoted_one_no_more(project: Project) -> None:
    project.write(*(entry_text(f"Slow list {word}", source=word) for word in ("a", "b", "c", "d")))

    def proposed() -> list[str]:
        items = json.loads(project.echod("review", "--json").output)["items"]
        return [title for item in items if item["kind"] == "promotable" for title in item["titles"]]

    first = proposed()
    assert len(first) == 3
    (identity,) = [i for i, word in zip(project.ids(), "abcd", strict=True) if f"Slow list {word}" == first[0]]
    assert project.echod("promote", identity, "--category", "performance", "--tags", "x").code == 0
    assert len(proposed()) == 3
    assert first[0] not in proposed()


def test_an_entry_of_little_confidence_is_proposed_once_two_sessions_referenced_it(project: Project) -> None:
    project.write(entry_text(confidence="0.6"))

    def kinds() -> list[str]:
        return [item["kind"] for item in json.loads(project.echod("review", "--json").output)["items"]]

    assert kinds() == []
    for session in ("one", "two"):
        project.echod("record-access", project.ids()[0], "--session", session)
    assert kinds() == ["promotable"]


def test_an_inscribed_entry_is_proposed_once_two_sessions_confirmed_it_and_the_command_promotes_it(
    project: Project,
) -> None:
    project.write(entry_text(layer="inscribed"))

    def proposals() -> list[str]:
        return [item["text"] for item in json.loads(project.echod("review", "--json").output)["items"]]

    assert proposals() == []
    for session in ("one", "two"):
        project.echod("record-access", project.ids()[0], "--session", session)
    (text,) = proposals()
    command = text.partition("echod promote ")[2]
    result = project.echod("promote", *command.split())
    assert result.code == 0, result.output
    assert project.documents() == [NAME]
    assert proposals() == []


@pytest.mark.corpus
def test_real_essays_are_left_alone_and_named(project: Project) -> None:
    source = corpus("docs-solutions")
    shutil.copytree(source, project.solutions)
    before = project.tree()

    result = project.echod("remembrance", "check")

    assert result.code == 0, result.output
    assert sorted(report(project)["essays"]) == sorted(
        str(file) for file in project.solutions.rglob("*.md") if file.name != "README.md"
    )
    assert project.tree() == before

"""`echod remembrance`, its check, and solutions in searches."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from echod.memory.model import SolutionCategory
from tests.remembrance.conftest import PARTS, Project, at_terminal, entry_text
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


def test_each_of_many_promoted_entries_is_found_by_its_own_symptom(project: Project) -> None:
    things = ("parser", "release", "upload", "mail", "login", "chart", "export", "search")
    symptoms = {thing: f"the {thing} hangs when two users start it at once" for thing in things}
    entries = [
        entry_text(
            f"Hanging {thing}",
            f"- Symptom: {symptom}\n- Root cause: the lock of the {thing} is global\n- Solution: one lock for each user",
            source=thing,
        )
        for thing, symptom in symptoms.items()
    ]
    notes = [
        entry_text(f"{thing} {n}", f"- The {thing} has users", source=f"{thing}{n}") for thing in things for n in "ab"
    ]
    project.write(*entries, *notes)
    for identity in project.ids()[: len(things)]:
        assert project.echod("promote", identity, "--category", "runtime-errors", "--tags", identity).code == 0

    for thing, symptom in symptoms.items():
        found = json.loads(project.echod("search", symptom, "--json").output)["results"][:5]
        assert f"hanging-{thing}" in [one["id"] for one in found if one["kind"] == "solution"], symptom
    assert project.echod("remembrance", "check").code == 0


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


def test_searches_and_briefs_name_a_stale_solution_and_no_conflict_with_its_own_entry(etched: Etched) -> None:
    project = etched()
    project.promote()

    def states() -> set[str]:
        answer = json.loads(project.echod("search", "user list takes five seconds", "--json").output)
        (solution,) = (one for one in answer["results"] if one["kind"] == "solution")
        return {one["state"] for one in solution["evidence"] if "MEMORY.md#" in one["cite"]}

    assert states() == {"valid"}
    assert "Conflicts" not in project.echod("brief", "user list").output
    project.write(entry_text(body=PARTS.replace("posts", "comments")))
    assert states() == {"changed"}
    assert "which was changed" in project.echod("brief", "user list").output
    project.write(entry_text("Another", source="x"))
    assert states() == {"gone"}


def compound(*parts: str) -> Path:
    """Return a file of a checkout of the compound-engineering plugin. Without one the test is skipped."""
    root = os.environ.get("COMPOUND_ENGINEERING")
    if not root:
        pytest.skip("COMPOUND_ENGINEERING names no checkout of the plugin of that name")
    return Path(root).joinpath(*parts)


def promote_in_every_category(project: Project) -> list[Path]:
    (project.root / "src").mkdir()
    (project.root / "src/user.py").write_text("x = 1\n" * 20)
    subprocess.run(["git", "init", "-q", str(project.root)], check=True)
    for number, category in enumerate(SolutionCategory, 1):
        words = [
            "--category",
            category.value,
            "--title",
            f"Fix: the #{number} list of `{category}`",
            "--tags",
            f"* {category}",
        ]
        project.write(entry_text(f"List {number}", PARTS.replace("five", f'"{number}": # five'), source=f"s{number}"))
        command = ["promote", project.ids()[0], *words, "--yes"]
        if category is SolutionCategory.SECURITY:
            code, output = at_terminal(project, command, "verified\n")
        else:
            code, output = project.echod(*command)
        assert code == 0, output
    return sorted(project.solutions.glob("*/*.md"))


def test_the_validators_of_the_other_convention_accept_every_solution(project: Project) -> None:
    scripts = [compound("skills/ce-compound/scripts", f"validate-{name}.py") for name in ("frontmatter", "doc-claims")]
    documents = promote_in_every_category(project)

    assert len(documents) == len(SolutionCategory)
    for script in scripts:
        for document in documents:
            command = [sys.executable, str(script), str(document)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr


def test_every_solution_follows_the_schema_of_the_other_convention(project: Project) -> None:
    schema = yaml.safe_load(compound("skills/ce-compound/references/schema.yaml").read_text())
    for document in promote_in_every_category(project):
        values = yaml.safe_load(document.read_text().split("---\n")[1])
        track = next(name for name, one in schema["tracks"].items() if values["problem_type"] in one["problem_types"])
        rules = schema["track_rules"][track]
        required = {**schema["required_fields"], **rules.get("required", {})}
        assert required.keys() <= values.keys(), document
        for name, rule in {**required, **schema["optional_fields"], **rules.get("optional", {})}.items():
            assert name not in values or follows(rule, values[name]), (document, name, values[name])


def follows(rule: dict[str, Any], value: object) -> bool:
    match rule["type"]:
        case "enum":
            return value in rule["values"]
        case "string":
            text = value.isoformat() if isinstance(value, date) else value
            return isinstance(text, str) and re.fullmatch(rule.get("pattern", "(?s).+"), text) is not None
        case "array[string]":
            assert isinstance(value, list)
            is_short = rule.get("min_items", 0) <= len(value) <= rule.get("max_items", sys.maxsize)
            return is_short and all(isinstance(item, str) and item for item in value)
    raise AssertionError(f"the schema has a new type: {rule}")


def test_the_documents_of_the_other_convention_are_read_and_left_alone(project: Project) -> None:
    shutil.copytree(compound("docs/solutions"), project.solutions)
    files = [file for file in project.solutions.rglob("*.md") if file.name.lower() != "readme.md"]
    with_front_matter = {str(f.relative_to(project.root)) for f in files if f.read_bytes().startswith(b"---\n")}
    before = project.tree()

    found = report(project)

    assert {one["path"] for one in found["solutions"]} == with_front_matter
    assert found["problems"] == []
    assert len(found["essays"]) == len(files) - len(with_front_matter)
    assert all(one["title"] for one in found["solutions"])
    output = project.echod("remembrance", "check").output
    assert "does not find it" not in output
    assert project.tree() == before


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

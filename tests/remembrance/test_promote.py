"""`echod promote`: every rule of the decision, what is written, and how it is taken back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from echod.memory.solutions.document import SolutionDocument, read_solution
from tests.remembrance.conftest import PARTS, Project, at_terminal, entry_text

NAME = "performance/user-list-takes-five-seconds.md"
Etched = Callable[..., Project]


def front_matter(file: Path) -> dict[str, object]:
    loaded = yaml.safe_load(file.read_text().split("---\n")[1])
    assert isinstance(loaded, dict)
    return loaded


def test_a_confirmed_etched_entry_becomes_a_solution(etched: Etched) -> None:
    project = etched()

    result = project.promote("--tags", "Database, N+1 query")

    assert result.code == 0, result.output
    assert project.documents() == [NAME]
    written = front_matter(project.solutions / NAME)
    assert written["symptom"] == "the user list takes five seconds."
    assert written["root_cause"] == "one query for each row of the list."
    assert written["solution_summary"] == "load the posts together with the users."
    assert written["tags"] == ["database", "n-1-query"]
    assert (written["confidence"], written["verified_by"]) == ("high", "agent")
    assert str(written["echo_ref"]).startswith(f".rune/echoes/reviewer/MEMORY.md#{project.ids()[0]}@sha256:")
    assert f"- **promoted_to**: docs/solutions/{NAME}\n" in project.memory().read_text()


@pytest.mark.parametrize(
    ("changed", "words", "rule", "remedy"),
    [
        ({"layer": "traced"}, (), "etched", "echod raise ENTRY etched"),
        ({"layer": "inscribed"}, (), "etched", "--raise"),
        ({"layer": "inscribed", "confidence": "0.6"}, ("--raise",), "etched", "echod raise ENTRY etched"),
        ({"body": "- Load the posts together with the users."}, (), "problem-and-solution", "--symptom"),
        ({"body": "- **Symptom**: slow"}, (), "problem-and-solution", "--root-cause, --solution"),
        ({"confidence": "0.6"}, (), "validated", "2 sessions"),
        (
            {"body": PARTS.replace("users", "users, so that a subagent keeps its context window")},
            (),
            "for-people",
            "--solution",
        ),
        ({}, ("--category", "security", "--yes"), "security", "at a terminal"),
        ({"extra": "- **category**: security\n"}, ("--yes",), "security", "at a terminal"),
    ],
)
def test_a_refusal_names_the_rule_and_what_satisfies_it(
    etched: Etched, changed: dict[str, str], words: tuple[str, ...], rule: str, remedy: str
) -> None:
    project = etched(**changed)
    before = project.tree()

    result = project.promote(*words)

    assert result.code == 1
    line = next(line for line in result.output.splitlines() if line.startswith(f"  {rule}: "))
    assert remedy in line
    assert project.tree() == before


def test_a_refusal_names_every_rule(etched: Etched) -> None:
    project = etched(body="- short", layer="traced", confidence="0.2")

    output = project.promote(category="security").output

    assert [line.split(":")[0].strip() for line in output.splitlines()[1:]] == [
        "etched", "problem-and-solution", "validated", "security",
    ]  # fmt: skip


def test_an_entry_is_named_by_the_reference_of_its_solution_too(etched: Etched) -> None:
    project = etched()
    project.promote()
    reference = front_matter(project.solutions / NAME)["echo_ref"]

    result = project.echod("promote", str(reference), "--category", "performance")

    assert result.code == 0, result.output
    assert "already" in result.output


def test_the_parts_can_be_given_as_options(etched: Etched) -> None:
    project = etched(body="- Load the posts together with the users.")

    result = project.promote("--symptom", "slow list", "--root-cause", "many queries", "--solution", "one query")

    assert result.code == 0, result.output
    assert front_matter(project.solutions / NAME)["symptom"] == "slow list"


def test_two_sessions_validate_an_entry_without_confidence(etched: Etched) -> None:
    project = etched(confidence="0.6")
    for session in ("one", "two"):
        assert project.echod("record-access", project.ids()[0], "--session", session).code == 0

    assert project.promote().code == 0
    assert front_matter(project.solutions / NAME)["confidence"] == "medium"


def test_a_confident_inscribed_entry_is_raised_in_the_same_job(etched: Etched) -> None:
    project = etched(layer="inscribed")
    before = project.tree()

    assert project.promote("--raise").code == 0
    assert "- **layer**: etched\n" in project.memory().read_text()

    assert project.echod("undo", "--last", "--yes").code == 0
    assert project.memory().read_bytes() == before[".rune/echoes/reviewer/MEMORY.md"]


def test_undo_takes_both_files_back_and_keeps_the_text(etched: Etched) -> None:
    project = etched()
    before = project.tree()
    project.promote()
    written = (project.solutions / NAME).read_bytes()

    assert project.echod("undo", "1", "--yes").code == 0

    assert project.memory().read_bytes() == before[".rune/echoes/reviewer/MEMORY.md"]
    assert not (project.solutions / NAME).exists()
    (kept,) = (project.solutions / "performance/archive/findings").iterdir()
    assert kept.read_bytes() == written
    assert "There are no solutions" in project.echod("remembrance").output


def test_a_second_promotion_changes_nothing(etched: Etched) -> None:
    project = etched()
    project.promote()
    before = project.tree()

    result = project.promote()

    assert result.code == 0
    assert "already" in result.output
    assert project.tree() == before


def test_the_same_title_updates_and_archives_the_former_text(etched: Etched) -> None:
    project = etched()
    project.promote()
    file = project.solutions / NAME
    former = file.read_text()
    project.write(entry_text(body=PARTS.replace("five", "nine")))

    refused = project.promote()
    result = project.promote("--yes")

    assert refused.code == 2
    assert result.code == 0, result.output
    assert "nine seconds" in file.read_text()
    (archive,) = (project.solutions / "performance/archive").glob("replaced-*.md")
    assert former.rstrip() in archive.read_text()
    assert project.documents() == [str(archive.relative_to(project.solutions)), NAME]
    project.echod("undo", "--last", "--yes")
    assert file.read_text() == former


def test_a_document_written_by_hand_is_not_replaced(etched: Etched) -> None:
    project = etched()
    file = project.solutions / NAME
    file.parent.mkdir(parents=True)
    file.write_text("---\ntitle: User list takes five seconds\ncategory: performance\n---\n# Mine\n")
    before = project.tree()

    result = project.promote("--yes")

    assert result.code == 1
    assert "duplicate: " in result.output
    assert project.tree() == before


def test_a_similar_cause_is_linked_and_shared_tags_ask(project: Project) -> None:
    project.write(entry_text(), entry_text("Order list is slow", day="2026-03-01"))
    first, second = project.ids()
    tags = ("--tags", "database,queries,lists", "--category", "performance")
    project.echod("promote", first, *tags)

    asked = project.echod("promote", second, *tags)
    result = project.echod("promote", second, *tags, "--yes")

    assert asked.code == 2
    assert "3 tags in common" in " ".join(asked.output.split())
    assert result.code == 0
    linked = front_matter(project.solutions / "performance/order-list-is-slow.md")
    assert linked["related_echoes"] == [f"docs/solutions/{NAME}"]


def test_names_never_collide(project: Project) -> None:
    project.write(entry_text("Retry! The call"), entry_text("retry the call?", day="2026-03-01"))
    (project.solutions / "performance").mkdir(parents=True)
    (project.solutions / "performance/Retry-the-call.md").write_text("an essay")
    first, second = project.ids()
    for identity, tags in ((first, "a"), (second, "b")):
        assert project.echod("promote", identity, "--category", "performance", "--tags", tags).code == 0

    assert project.documents() == [
        f"performance/{name}.md" for name in ("Retry-the-call", "retry-the-call-2", "retry-the-call-3")
    ]


def test_secrets_are_removed(etched: Etched) -> None:
    secret = "ghp_" + "a8Kd02mZq7Lw5Xc1Vb9Nn3Ty6Ru4Pe0Hs2Jf"
    project = etched(body=PARTS.replace("users.", f"users, with the token {secret}."))

    assert project.promote("--title", f"Key {secret}").code == 0

    assert all(secret.encode() not in data for name, data in project.tree().items() if name.startswith("docs"))


def test_a_dry_run_writes_nothing(etched: Etched) -> None:
    project = etched()
    before = project.tree()

    result = project.promote("--dry-run")

    assert result.code == 0
    assert NAME in result.output
    assert project.tree() == before


@pytest.mark.parametrize("link", ["docs", "docs/solutions", "docs/solutions/performance"])
def test_no_link_leads_out_of_the_project(etched: Etched, tmp_path: Path, link: str) -> None:
    project = etched()
    outside = tmp_path / "outside"
    outside.mkdir()
    (project.root / link).parent.mkdir(parents=True, exist_ok=True)
    (project.root / link).symlink_to(outside)

    assert project.promote().code == 1
    assert list(outside.iterdir()) == []
    assert "promoted_to" not in project.memory().read_text()


def test_security_needs_the_typed_word_at_a_terminal(etched: Etched) -> None:
    project = etched()
    words = ["promote", project.ids()[0], "--category", "security", "--yes"]

    refused, _ = at_terminal(project, words, "y\n")
    assert refused == 1
    assert project.documents() == []

    code, output = at_terminal(project, words, "verified\n")
    assert code == 0, output
    written = front_matter(project.solutions / "security/user-list-takes-five-seconds.md")
    assert (written["verified_by"], written["requires_human_approval"]) == ("human", True)


def test_missing_parts_are_written_in_the_editor(etched: Etched, tmp_path: Path) -> None:
    project = etched(body="- Load the posts together with the users.")
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\ncat > \"$1\" <<'END'\nSymptom: slow list\n\nRoot cause: many queries\n\nSolution: one query\nEND\n"
    )
    editor.chmod(0o755)

    code, output = at_terminal(
        project, ["promote", project.ids()[0], "--category", "performance"], "", EDITOR=str(editor), VISUAL=""
    )

    assert code == 0, output
    read = read_solution((project.solutions / NAME).read_bytes())
    assert isinstance(read, SolutionDocument)
    assert (read.symptom, read.root_cause, read.solution_summary) == ("slow list", "many queries", "one query")

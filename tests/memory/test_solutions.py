"""Solutions: what is read and written, extraction from entries, names, duplicates and the hash of an entry."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from echod.memory.document import parse_block
from echod.memory.edit import with_confidence, with_promoted_to, with_verified
from echod.memory.model import SolutionCategory
from echod.memory.solutions.document import (
    Solution,
    SolutionConfidence,
    SolutionDocument,
    SolutionParts,
    UnreadableSolution,
    VerifiedBy,
    extract_parts,
    read_solution,
    render_solution,
)
from echod.memory.solutions.promotion import (
    EntryReference,
    entry_digest,
    free_slug,
    parse_reference,
    sessions_to_promote,
    slug_of,
)

TODAY = date(2026, 11, 28)
HEAD = "### [2026-02-11] Pattern: Slow list\n- **layer**: etched\n- **source**: manual\n- **confidence**: 1.0\n"


def solution(**changed: Any) -> Solution:
    made = Solution(
        title="Slow list",
        category=SolutionCategory.PERFORMANCE,
        tags=("lists",),
        day=TODAY,
        symptom="it is slow",
        root_cause="many queries",
        solution="one query",
        prevention="",
        confidence=SolutionConfidence.HIGH,
        verified_by=VerifiedBy.AGENT,
        echo_ref=f".rune/echoes/reviewer/MEMORY.md#abc@sha256:{'0' * 64}",
        affected_files=("src/a.py:1-2",),
    )
    return made._replace(**changed)


TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@given(title=TEXT, symptom=TEXT, cause=TEXT, tags=st.lists(TEXT, max_size=3))
def test_what_is_written_is_read_back_as_yaml(title: str, symptom: str, cause: str, tags: list[str]) -> None:
    data = render_solution(solution(title=title, symptom=symptom, root_cause=cause, tags=tuple(tags)))

    values = yaml.safe_load(data.decode().split("\n---\n")[0].removeprefix("---\n"))
    read = read_solution(data)

    assert isinstance(read, SolutionDocument)
    assert not any("YAML" in problem for problem in read.problems)
    assert " ".join(values["symptom"].split()) == values["symptom"] == read.symptom
    assert read.category == "performance"
    assert read.date == "2026-11-28"


def test_every_value_is_safe_for_readers_without_yaml() -> None:
    """Readers that cut at ` #` or `: ` need quotes around such values."""
    data = render_solution(solution(title="Fix #3: never", symptom="a: b # c", tags=("- x", "yes", "[a")))

    for line in data.decode().split("\n---\n")[0].splitlines()[1:]:
        value = line.partition(":")[2].strip()
        assert value[0] in '"[' or not any(sign in value for sign in (" #", ": "))


@pytest.mark.parametrize("category", list(SolutionCategory))
def test_every_category_has_the_fields_of_both_conventions(category: SolutionCategory) -> None:
    values = yaml.safe_load(render_solution(solution(category=category)).decode().split("\n---\n")[0][4:])

    assert values.keys() >= {
        "title", "category", "tags", "date", "symptom", "root_cause", "solution_summary", "confidence", "verified_by",
        "module", "problem_type", "component", "severity", "symptoms", "resolution_type",
    }  # fmt: skip
    assert 1 <= len(values["symptoms"]) <= 5


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xfe", "UTF-8"),
        (b"---\ntitle: a\n\ntext\n", "no end"),
        (b"---\n\t{[\n---\ntext\n", "not YAML"),
    ],
)
def test_unreadable_front_matter_is_an_error_and_no_essay(data: bytes, reason: str) -> None:
    read = read_solution(data)

    assert isinstance(read, UnreadableSolution)
    assert reason in read.reason


@pytest.mark.parametrize("data", [b"", b"# An essay\n", b"---\n\nA thematic break.\n", b"Text\n---\na: b\n---\n"])
def test_a_document_without_front_matter_is_an_essay(data: bytes) -> None:
    assert read_solution(data) is None


def test_invalid_yaml_is_read_and_named() -> None:
    read = read_solution(b"---\ntitle: Fix: the list\nsymptom: it is slow\n---\n# Fix\n")

    assert isinstance(read, SolutionDocument)
    assert read.symptom == "it is slow"
    assert "not valid YAML" in read.problems[0]


def test_a_document_of_the_other_convention_is_complete() -> None:
    read = read_solution(
        b"---\ntitle: List\ndate: 2026-01-01\nmodule: api\nproblem_type: logic_error\ncomponent: api\nseverity: low\n"
        b"symptoms:\n  - it is slow\n  - it waits\n---\n\n# List\n"
    )

    assert isinstance(read, SolutionDocument)
    assert read.problems == ()
    assert read.symptom == "it is slow; it waits"


def test_a_security_document_of_an_agent_is_a_problem() -> None:
    read = read_solution(render_solution(solution(category=SolutionCategory.SECURITY)))

    assert isinstance(read, SolutionDocument)
    assert any("human" in problem for problem in read.problems)


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("- **Problem**: a\n  **Cause**: b\n  **Fix**: c", SolutionParts("a", "b", "c")),
        ("- Symptom: a. Root cause: b. Solution: c.", SolutionParts("a.", "b.", "c.")),
        ("\n### Symptom\n\na\nmore\n\n### Root Cause\n\nb\n\n### Solution\n\nc\n", SolutionParts("a\nmore", "b", "c")),
        ("- **Symptom:** a\n- **Note:** no part\n- **Solution:** c", SolutionParts("a", "", "c")),
        ("- Fix:\n  ```\n  Cause: code\n  ```", SolutionParts("", "", "```\nCause: code\n```")),
        ("- The fix is easy because the cause is known.", SolutionParts()),
    ],
)
def test_labelled_parts_are_found(body: str, parts: SolutionParts) -> None:
    assert extract_parts(parse_block(f"{HEAD}{body}\n")) == parts


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("N+1 query: Größe & Maß", "n-1-query-grosse-mass"),
        ("../../etc/passwd", "etc-passwd"),
        ("日本語", "solution-abc123"),
        ("README", "readme-solution"),
        ("Memory", "memory-solution"),
        ("ward findings", "ward-findings-solution"),
        ("word " * 40, "-".join(["word"] * 16)),
    ],
)
def test_the_name_of_a_file_follows_from_the_title(title: str, slug: str) -> None:
    assert slug_of(title, "abc123") == slug


@given(st.text())
def test_a_name_is_always_safe(title: str) -> None:
    slug = slug_of(title, "abc123")

    assert 0 < len(slug) <= 90
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_taken_names_are_numbered() -> None:
    assert free_slug("a", {"a", "a-2"}) == "a-3"


def test_the_hash_is_of_the_learning_and_not_of_what_echod_changes() -> None:
    block = parse_block(f"{HEAD}- Load them together.\n")
    digest = entry_digest(block)

    assert entry_digest(with_promoted_to(block, "docs/solutions/a.md")) == digest
    assert entry_digest(with_confidence(block, 0.3)) == digest
    assert entry_digest(with_verified(block, TODAY)) == digest
    assert entry_digest(parse_block(block.text.replace("\n", "\r\n"))) == digest
    assert entry_digest(parse_block(block.text.replace("together", "alone"))) != digest
    assert entry_digest(parse_block(block.text.replace("manual", "other"))) != digest


def test_a_reference_is_read_as_it_is_written() -> None:
    reference = EntryReference(".rune/echoes/reviewer/MEMORY.md", "abc", "0" * 64)

    assert parse_reference(str(reference)) == reference
    assert reference.is_complete
    shortened = parse_reference(".claude/echoes/reviewer/MEMORY.md#etched-004@sha256:a1b2c3...")
    assert shortened is not None
    assert not shortened.is_complete
    assert parse_reference("echoes/reviewer/MEMORY.md") is None


def test_only_complete_entries_that_last_or_were_often_confirmed_are_proposed() -> None:
    parts = "- Symptom: a. Root cause: b. Solution: c.\n"

    entry = parse_block(f"{HEAD}{parts}")
    assert sessions_to_promote(entry) == 0
    assert sessions_to_promote(parse_block(entry.text.replace("1.0", "0.5"))) == 2
    assert sessions_to_promote(parse_block(f"{HEAD}- no parts\n")) is None
    assert sessions_to_promote(parse_block(entry.text.replace("etched", "traced"))) is None
    inscribed = entry.text.replace("etched", "inscribed")
    assert sessions_to_promote(parse_block(inscribed)) == 2
    assert sessions_to_promote(parse_block(inscribed.replace("1.0", "0.5"))) is None
    assert sessions_to_promote(with_promoted_to(entry, "docs/solutions/a.md")) is None

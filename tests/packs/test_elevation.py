"""Entries that are elevated for all projects, and the provenance of global entries."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.memory.document import new_memory_file, parse, parse_block
from echod.memory.model import Block, Document, Form, Layer
from echod.memory.packs.elevation import (
    GLOBAL_ROLE,
    ElevationRequest,
    ElevationResult,
    NotEligible,
    PackProvenance,
    ProjectProvenance,
    check_eligibility,
    elevate_entry,
    elevated_source,
    entry_domain,
    read_provenance,
)
from tests.support import finding_text

DAY = date(2026, 11, 20)


def read(data: bytes) -> Document:
    document = parse(data)
    assert isinstance(document, Document)
    return document


def block(text: str) -> Block:
    found = parse_block(text)
    assert found.entry
    return found


def try_elevate(
    memory: Document, entry: Block, project: str = "shop", domain: str = "backend"
) -> ElevationResult | NotEligible:
    return elevate_entry(memory, ElevationRequest(entry, project, "reviewer", domain, DAY))


def elevate(memory: Document, entry: Block, project: str = "shop") -> ElevationResult:
    found = try_elevate(memory, entry, project)
    assert isinstance(found, ElevationResult)
    return found


EMPTY = read(new_memory_file(GLOBAL_ROLE))


def test_an_elevated_entry_has_the_form_that_readers_of_the_global_memory_know() -> None:
    found = elevate(EMPTY, block(finding_text("Limits belong at the edge", layer="etched")))

    entry = found.document.blocks[0].entry
    assert entry is not None
    assert (entry.form, entry.layer, entry.heading_date) == (Form.LAYER_HEADING, Layer.INSCRIBED, DAY)
    assert (entry.source, entry_domain(entry)) == ("elevated:shop@reviewer", "backend")
    assert (entry.evidence, entry.confidence, entry.verified) == ("`src/edge.py:1-5`", 0.8, DAY)
    assert "What was learnt about Limits belong at the edge." in found.document.blocks[0].text


def test_secrets_are_taken_out() -> None:
    found = elevate(
        EMPTY,
        block(finding_text("Keys", 'the key is api_key = "sk-' + 'proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"')),
    )

    assert found.redacted
    assert b"sk-proj" not in found.document.render()


def test_an_entry_that_exists_already_is_refused_in_any_form() -> None:
    memory = elevate(EMPTY, block(finding_text("Limits", "Keep them at the edge."))).document

    same_words = block(finding_text("Other title", "keep  them at\n  the EDGE."))
    same_place = block(finding_text("limits.", "Keep them elsewhere."))

    assert isinstance(try_elevate(memory, same_words, "other"), NotEligible)
    assert isinstance(try_elevate(memory, same_place), NotEligible)
    assert isinstance(try_elevate(memory, same_place, "other"), ElevationResult)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "## Observations \u2014 Task: x (2026-11-01)\n- **layer**: observations\n**Source**: `a`\n- x\n",
            "observation",
        ),
        ("## Etched \u2014 x (2026-11-01)\n\n**Source**: `doc-pack:kit@1.0.0`\n\n- x\n", "global memory itself"),
        ("## Inscribed \u2014 x (2026-11-01)\n\n**Source**: `elevated:a@b`\n\n- x\n", "global memory itself"),
        ("## A section\n\ntext\n", "not an entry"),
    ],
)
def test_an_entry_that_is_not_eligible_is_refused_with_a_reason(text: str, reason: str) -> None:
    found = check_eligibility(parse_block(text))

    assert found is not None
    assert reason in found.reason


@given(st.text(max_size=200), st.text(min_size=1, max_size=40))
def test_any_entry_becomes_one_entry_and_the_others_stay(text: str, project: str) -> None:
    memory = elevate(EMPTY, block(finding_text("First", "The first."))).document
    entry = parse_block(finding_text("Second", text or "x"))
    if entry.entry is None or check_eligibility(entry):
        return

    found = try_elevate(memory, entry, project)

    if isinstance(found, ElevationResult):
        assert len(found.document.blocks) == 2
        assert found.document.blocks[0].text.rstrip() == memory.blocks[0].text.rstrip()
        last = found.document.blocks[1].entry
        assert last is not None
        assert isinstance(read_provenance(last), ProjectProvenance)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("elevated:my-app@reviewer", ProjectProvenance("my-app", "reviewer")),
        ("elevated:a@b@team", ProjectProvenance("a@b", "team")),
        ("doc-pack:fastapi@1.0.0", PackProvenance("fastapi", "1.0.0")),
        ("user:remember", None),
        ("elevated:", None),
    ],
)
def test_the_source_names_where_an_entry_comes_from(source: str, expected: object) -> None:
    entry = block(f"## Inscribed \u2014 x (2026-11-01)\n\n**Source**: `{source}`\n\n- x\n").entry

    assert entry is not None
    assert read_provenance(entry) == expected


def test_a_projects_name_cannot_break_out_of_the_source() -> None:
    assert elevated_source("my app`\n## x", "reviewer") == "elevated:my-app-x@reviewer"

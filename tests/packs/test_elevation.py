"""Entries that are written again for all projects, and where entries of the global memory come from."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.memory.document import new_memory_file, parse, parse_block
from echod.memory.model import Block, Document, Form, Layer
from echod.memory.packs.elevation import (
    GLOBAL_ROLE,
    Elevated,
    Elevation,
    FromPack,
    FromProject,
    Unfit,
    domain_of,
    elevated,
    elevated_source,
    provenance,
    unfit,
)
from tests.support import finding

DAY = date(2026, 11, 20)


def read(data: bytes) -> Document:
    document = parse(data)
    assert isinstance(document, Document)
    return document


def block(text: str) -> Block:
    found = parse_block(text)
    assert found.entry
    return found


def lift(memory: Document, entry: Block, project: str = "shop", domain: str = "backend") -> Elevated | Unfit:
    return elevated(memory, Elevation(entry, project, "reviewer", domain, DAY))


def lifted(memory: Document, entry: Block, project: str = "shop") -> Elevated:
    found = lift(memory, entry, project)
    assert isinstance(found, Elevated)
    return found


EMPTY = read(new_memory_file(GLOBAL_ROLE))


def test_an_elevated_entry_has_the_form_that_readers_of_the_global_memory_know() -> None:
    found = lifted(EMPTY, block(finding("Limits belong at the edge", layer="etched")))

    entry = found.document.blocks[0].entry
    assert entry is not None
    assert (entry.form, entry.layer, entry.heading_date) == (Form.LAYER_HEADING, Layer.INSCRIBED, DAY)
    assert (entry.source, domain_of(entry)) == ("elevated:shop@reviewer", "backend")
    assert (entry.evidence, entry.confidence, entry.verified) == ("`src/edge.py:1-5`", 0.8, DAY)
    assert "What was learnt about Limits belong at the edge." in found.document.blocks[0].text


def test_secrets_are_taken_out() -> None:
    found = lifted(
        EMPTY, block(finding("Keys", 'the key is api_key = "sk-' + 'proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"'))
    )

    assert found.redacted
    assert b"sk-proj" not in found.document.render()


def test_what_stands_there_already_is_refused_however_it_is_dressed() -> None:
    memory = lifted(EMPTY, block(finding("Limits", "Keep them at the edge."))).document

    same_words = block(finding("Other title", "keep  them at\n  the EDGE."))
    same_place = block(finding("limits.", "Keep them elsewhere."))

    assert isinstance(lift(memory, same_words, "other"), Unfit)
    assert isinstance(lift(memory, same_place), Unfit)
    assert isinstance(lift(memory, same_place, "other"), Elevated)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "## Observations \u2014 Task: x (2026-11-01)\n- **layer**: observations\n**Source**: `a`\n- x\n",
            "observation",
        ),
        ("## Etched \u2014 x (2026-11-01)\n\n**Source**: `doc-pack:kit@1.0.0`\n\n- x\n", "global memory itself"),
        ("## Inscribed \u2014 x (2026-11-01)\n\n**Source**: `elevated:a@b`\n\n- x\n", "global memory itself"),
        ("## A section\n\ntext\n", "no entry"),
    ],
)
def test_what_is_not_fit_to_be_elevated_is_said(text: str, reason: str) -> None:
    found = unfit(parse_block(text))

    assert found is not None
    assert reason in found.reason


@given(st.text(max_size=200), st.text(min_size=1, max_size=40))
def test_whatever_an_entry_says_it_becomes_one_entry_and_the_others_stay(text: str, project: str) -> None:
    memory = lifted(EMPTY, block(finding("First", "The first."))).document
    entry = parse_block(finding("Second", text or "x"))
    if entry.entry is None or unfit(entry):
        return

    found = lift(memory, entry, project)

    if isinstance(found, Elevated):
        assert len(found.document.blocks) == 2
        assert found.document.blocks[0].text.rstrip() == memory.blocks[0].text.rstrip()
        last = found.document.blocks[1].entry
        assert last is not None
        assert isinstance(provenance(last), FromProject)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("elevated:my-app@reviewer", FromProject("my-app", "reviewer")),
        ("elevated:a@b@team", FromProject("a@b", "team")),
        ("doc-pack:fastapi@1.0.0", FromPack("fastapi", "1.0.0")),
        ("user:remember", None),
        ("elevated:", None),
    ],
)
def test_the_source_tells_where_an_entry_comes_from(source: str, expected: object) -> None:
    entry = block(f"## Inscribed \u2014 x (2026-11-01)\n\n**Source**: `{source}`\n\n- x\n").entry

    assert entry is not None
    assert provenance(entry) == expected


def test_a_projects_name_cannot_break_out_of_the_source() -> None:
    assert elevated_source("my app`\n## x", "reviewer") == "elevated:my-app-x@reviewer"

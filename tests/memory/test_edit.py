"""An edit changes one metadata value, and no other byte."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from echod.memory.document import parse, parse_block
from echod.memory.edit import with_confidence, with_layer, with_verified
from echod.memory.model import Block, Document, Entry, Form, Layer, Span
from tests.memory import strategies

law = settings(max_examples=60, deadline=None)
days = strategies.DATES
confidences = st.one_of(st.sampled_from([0.0, 0.4, 0.75, 0.9, 1.0]), st.floats(0, 1))
layers = st.sampled_from(list(Layer))

NOTE = "## Notes \u2014 a (2026-01-01)"


@st.composite
def entry_blocks(draw: st.DrawFn) -> Block:
    """An entry of any file, tidy or damaged."""
    text = draw(st.one_of(strategies.entries(), strategies.well_formed_files(), strategies.damaged_files()))
    document = parse(text.encode())
    assume(isinstance(document, Document))
    assert isinstance(document, Document)
    blocks = [block for block in document.blocks if block.entry]
    assume(blocks)
    return draw(st.sampled_from(blocks))


@law
@given(entry_blocks(), days)
@example(parse_block(NOTE), date(2026, 5, 1))
@example(parse_block(f"{NOTE}\r"), date(2026, 5, 1))
@example(parse_block(f"{NOTE}\n---\n"), date(2026, 5, 1))
def test_setting_the_verified_date_sets_that_alone(block: Block, day: date) -> None:
    _changes_only("verified", block, with_verified(block, day), day)


@law
@given(entry_blocks(), confidences)
@example(parse_block("## a\n- **layer**: traced\n- **confidence**:"), 0.5)
@example(parse_block("## a\n- **layer**: traced\n- **confidence**: HIGH,verified"), 0.55)
@example(parse_block("## a\n- **layer**: traced\n- **confidence**:\n  0.9"), 0.55)
@example(parse_block("## a\n- **layer**: traced\n"), 5e-324)
def test_setting_the_confidence_sets_that_alone(block: Block, confidence: float) -> None:
    _changes_only("confidence", block, with_confidence(block, confidence), confidence)


@law
@given(entry_blocks(), layers)
@example(parse_block("### [2026-01-01] Pattern: a\n- **source**: b\n- c\n"), Layer.TRACED)
@example(parse_block("## a\n- **layer**: legendary\n- c\n"), Layer.TRACED)
def test_setting_the_layer_sets_that_alone(block: Block, layer: Layer) -> None:
    changed = with_layer(block, layer)

    # The notes form is the layer heading form with the word "Notes"; that word is what was changed.
    named = {Form.NOTES, Form.LAYER_HEADING}
    assert changed.entry
    assert block.entry
    assert changed.entry.form is block.entry.form or {changed.entry.form, block.entry.form} == named
    _changes_only("layer", block, parse_block_as(changed, block.entry.form), layer)


@law
@given(strategies.well_formed_files(), days, confidences, layers, st.integers(0, 9))
def test_a_file_with_an_edited_block_reads_as_before_in_every_other_block(
    text: str, day: date, confidence: float, layer: Layer, which: int
) -> None:
    document = parse(text.encode())
    assert isinstance(document, Document)
    places = [place for place, block in enumerate(document.blocks) if block.entry]
    assume(places)
    place = places[which % len(places)]
    edited = with_layer(with_confidence(with_verified(document.blocks[place], day), confidence), layer)
    blocks = (*document.blocks[:place], edited, *document.blocks[place + 1 :])

    changed = Document(document.preamble, blocks)

    assert parse(changed.render()) == changed


@law
@given(entry_blocks(), days, confidences, layers)
def test_setting_what_is_there_changes_nothing(block: Block, day: date, confidence: float, layer: Layer) -> None:
    verified = with_verified(block, day)
    rated = with_confidence(block, confidence)
    layered = with_layer(block, layer)

    assert with_verified(verified, day) is verified
    assert with_confidence(rated, confidence) is rated
    assert with_layer(layered, layer) is layered


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        pytest.param(
            "### [2026-02-11] Pattern: a\n- **layer**: inscribed\n- **confidence**: 0.85\n- b\n",
            lambda block: with_confidence(block, 0.95),
            "### [2026-02-11] Pattern: a\n- **layer**: inscribed\n- **confidence**: 0.95\n- b\n",
            id="a number for a number",
        ),
        pytest.param(
            f"{NOTE}\n**Confidence**: HIGH (four reviews)\n",
            lambda block: with_confidence(block, 0.95),
            f"{NOTE}\n**Confidence**: 0.95 (four reviews)\n",
            id="the prose behind a word stays",
        ),
        pytest.param(
            f"{NOTE}\n**Confidence**: Medium\n",
            lambda block: with_confidence(block, 0.9),
            f"{NOTE}\n**Confidence**: High\n",
            id="a word for a word, in its case",
        ),
        pytest.param(
            f"{NOTE}\r\n**Source**: user:remember\r\n- b\r\n",
            lambda block: with_verified(block, date(2026, 5, 1)),
            f"{NOTE}\r\n**Source**: user:remember\r\n**Verified**: 2026-05-01\r\n- b\r\n",
            id="an added line ends as the others do",
        ),
        pytest.param(
            "### [2026-02-11] Pattern: a\n* **layer**: traced\n* **evidence**: b\n  c\n* **supersedes**: none\n* d",
            lambda block: with_verified(block, date(2026, 5, 1)),
            "### [2026-02-11] Pattern: a\n* **layer**: traced\n* **evidence**: b\n  c\n* **verified**: 2026-05-01\n"
            "* **supersedes**: none\n* d",
            id="an added bullet stands where its form has it, with the mark of its neighbours",
        ),
        pytest.param(
            "### [2026-02-11] Pattern: a\n- **supersedes**: b\n- c\n",
            lambda block: with_verified(block, date(2026, 5, 1)),
            "### [2026-02-11] Pattern: a\n- **verified**: 2026-05-01\n- **supersedes**: b\n- c\n",
            id="before the first field where all others come later",
        ),
        pytest.param(
            "## a\n- **layer**: traced",
            lambda block: with_confidence(block, 0.9),
            "## a\n- **layer**: traced\n- **confidence**: HIGH",
            id="no line ending is added where the file has none",
        ),
        pytest.param(
            "## Inscribed \u2014 a (2026-02-11)\nb\n",
            lambda block: with_verified(block, date(2026, 5, 1)),
            "## Inscribed \u2014 a (2026-02-11)\n\n**Verified**: 2026-05-01\n\nb\n",
            id="the first field of a layer heading has a blank line on both sides",
        ),
        pytest.param(
            "## Observations \u2014 Task: a (2026-02-11)\n- **layer**: observations\n**Source**: `b`\n"
            "- **Confidence**: LOW (auto-generated, unverified)\n- Task completed: a\n",
            lambda block: with_layer(block, Layer.INSCRIBED),
            "## Inscribed \u2014 Task: a (2026-02-11)\n- **layer**: inscribed\n**Source**: `b`\n"
            "- **Confidence**: LOW (auto-generated, unverified)\n- Task completed: a\n",
            id="promotion changes heading and bullet",
        ),
        pytest.param(
            "## TRACED -- a (2026-02-11)\n\n**Source**: b\n",
            lambda block: with_layer(block, Layer.INSCRIBED),
            "## INSCRIBED -- a (2026-02-11)\n\n**Source**: b\n",
            id="no layer field is added to a form that has the word in its heading",
        ),
        pytest.param(
            "## a\n- **layer**: traced\n- **verified**: 2026-01-01T10:30:00Z (by hand)\n",
            lambda block: with_verified(block, date(2026, 5, 1)),
            "## a\n- **layer**: traced\n- **verified**: 2026-05-01 (by hand)\n",
            id="a time of day goes with its date",
        ),
        pytest.param(
            "## a\n- **layer**: traced\n- **verified**: not yet\n",
            lambda block: with_verified(block, date(2026, 5, 1)),
            "## a\n- **layer**: traced\n- **verified**: 2026-05-01\n",
            id="a value that says nothing is replaced",
        ),
        pytest.param(
            "## a\n- **layer**: traced\n- **confidence**: LOW\n- **confidence**: HIGH\n",
            lambda block: with_confidence(block, 0.5),
            "## a\n- **layer**: traced\n- **confidence**: 0.5\n- **confidence**: HIGH\n",
            id="of repeated fields the first counts",
        ),
    ],
)
def test_an_edit_writes_the_same_as_a_careful_user(before: str, edit: Callable[[Block], Block], after: str) -> None:
    assert edit(parse_block(before)).text == after


def test_a_promoted_heading_over_an_old_bullet_has_its_layer_already() -> None:
    block = parse_block("## Inscribed \u2014 Task: a (2026-02-11)\n- **layer**: observations\n")

    assert with_layer(block, Layer.INSCRIBED) is block


@pytest.mark.parametrize("confidence", [-0.1, 1.1, math.nan, math.inf])
def test_a_confidence_outside_its_range_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        with_confidence(parse_block(NOTE), confidence)


def test_an_opaque_block_is_never_edited() -> None:
    block = parse_block("## A person's section\n\n- **verified**: yes\n")

    with pytest.raises(ValueError, match="opaque"):
        with_verified(block, date(2026, 5, 1))


def parse_block_as(block: Block, form: Form) -> Block:
    assert block.entry
    return Block(block.text, block.entry._replace(form=form))


def _changes_only(name: str, before: Block, after: Block, value: object) -> None:
    assert before.entry
    assert after.entry
    assert getattr(after.entry, name) == value
    assert _without(name, after, after.entry) == _without(name, before, before.entry)


def _without(name: str, block: Block, entry: Entry) -> tuple[Entry, str, list[tuple[str, str]]]:
    """The entry without one value, its body, and all other fields; positions do not count."""
    body = block.text[entry.body.start : entry.body.end]
    first = next((field for field in entry.fields if field.name == name), None)
    fields = [(field.name, field.value) for field in entry.fields if field is not first]
    verified = None if name == "verified" else entry.verified
    confidence = None if name == "confidence" else entry.confidence
    layer = None if name == "layer" else entry.layer
    neutral = entry._replace(body=Span(0, 0), fields=(), verified=verified, confidence=confidence, layer=layer)
    return neutral, body, fields

"""Laws for every file, tidy or damaged."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from echod.memory import forms, markdown
from echod.memory.document import VersionParser, parse, parse_block
from echod.memory.model import Block, Document, Unreadable
from tests.memory import strategies

law = settings(max_examples=100, deadline=None)


@law
@given(strategies.any_bytes())
@example(b"")
@example(b"\xef\xbb\xbf")
@example(b"\xef\xbb\xbf## Notes \xe2\x80\x94 a (2026-01-01)")
@example(b"## a\n- **layer**: traced\n- **confidence**:")
@example(b"##")
@example(b"\r")
@example(b"\0\n## \0\n")
def test_rendering_returns_the_parsed_bytes(data: bytes) -> None:
    assert parse(data).render() == data


@law
@given(strategies.any_bytes())
def test_a_block_read_alone_equals_the_block_in_its_file(data: bytes) -> None:
    for block in _blocks(data):
        assert parse_block(block.text) == block


@law
@given(strategies.any_bytes())
def test_every_value_is_at_its_span(data: bytes) -> None:
    for block in _blocks(data):
        if block.entry:
            for field in block.entry.fields:
                assert block.text[field.span.start : field.span.end] == field.value
            assert 0 < block.entry.body.start <= block.entry.body.end <= len(block.text)


LINES = (
    "# a", "## b", "### c", "#d", "text", "- item", "- **x**: y", "**x**: y", "", "", "  more", "-", "---", "===", "> q",
    "```", "~~~", "<!--", "-->", "<div>", "1. one", "* star", "\ttab", "- ", "\r",
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=14), st.sampled_from(["", "\n"]))
def test_lines_that_are_skipped_together_read_as_one_by_one(lines: list[str], end: str) -> None:
    text = "\n".join(lines) + end
    skipping = markdown.parse_structure(text)
    with patch.object(markdown, "_PLAIN_STRETCH", re.compile("(?!)")):
        assert markdown.parse_structure(text) == skipping


BLOCKS = (
    "### [2026-01-02] Pattern: one\n- **layer**: traced\n- Learning.\n", "### [2026-01-02] Pattern: two\n- text\n",
    "## Notes \u2014 three (2026-01-02)\n\nText\n", "## Own section\n", "#tag\n", "```\n", "  more\n", "\n", "text",
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(st.lists(st.sampled_from(BLOCKS), max_size=9), min_size=1, max_size=3))
def test_versions_that_are_read_together_have_the_blocks_of_each_read_alone(versions: list[list[str]]) -> None:
    parser = VersionParser()
    for data in ("".join(pieces).encode() for pieces in versions):
        together, alone = parser.parse(data), parse(data)
        assert not isinstance(together, Unreadable)
        assert isinstance(alone, Document)
        assert together.preamble == alone.preamble
        assert [Block(block.text, block.entry) for block in together.blocks] == list(alone.blocks)
        assert [block.body for block in together.blocks] == [block.body for block in alone.blocks]


@pytest.mark.parametrize("block", BLOCKS)
def test_whether_an_entry_begins_is_known_without_reading_it(block: str) -> None:
    assert forms.begins_entry(block, 0) is (forms.match_entry(block, 0) is not None)


@law
@given(strategies.well_formed_files())
def test_fields_are_in_file_order_and_do_not_overlap(text: str) -> None:
    for block in _blocks(text.encode()):
        fields = block.entry.fields if block.entry else ()
        assert all(first.span.end < second.span.start for first, second in pairwise(fields))


@law
@given(strategies.well_formed_files())
def test_line_endings_do_not_change_what_is_read(text: str) -> None:
    def meaning(data: bytes) -> list[object]:
        return [
            (entry.form, entry.layer, entry.title, entry.kind, entry.heading_date, entry.verified, entry.confidence)
            if (entry := block.entry)
            else None
            for block in _blocks(data)
        ]

    assert meaning(text.encode()) == meaning(text.replace("\n", "\r\n").encode())


@law
@given(strategies.well_formed_files())
def test_every_heading_of_a_tidy_file_begins_a_block_of_its_own(text: str) -> None:
    document = parse(text.encode())

    assert isinstance(document, Document)
    assert all(block.text.startswith(("## ", "### [")) for block in document.blocks)


@pytest.mark.corpus
def test_real_files_come_back_byte_for_byte(corpus_files: list[Path]) -> None:
    for file in corpus_files:
        data = file.read_bytes()

        document = parse(data)

        assert not isinstance(document, Unreadable), file
        assert document.render() == data


def _blocks(data: bytes) -> tuple[Block, ...]:
    document = parse(data)
    return document.blocks if isinstance(document, Document) else ()

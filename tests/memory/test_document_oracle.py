"""CommonMark's own reader agrees about what is a heading and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from markdown_it import MarkdownIt

from echod.memory import scan
from tests.memory import strategies

law = settings(max_examples=200, deadline=None)


@law
@given(strategies.soups())
@example("- a\n## h")
@example("- a\n  ## in the item")
@example("1. a\n\n   ## in the item")
@example("- a\n\n\t## in the item")
@example("> ```\n## h\n> ```\n## h")
@example("para\n<foo>\n## h")
@example("<foo>\n## in HTML\n\n## h")
@example("<!-- a\n\n## in the comment\n-->\n## h")
@example("````\n```\n## in the fence\n````\n## h")
@example("``` a`b\n## h\n```")
@example("para\n2. not a list\n   ## h")
@example("-\n\n  ## h")
@example("-     code\n  ## in the item")
@example(">\t## quoted\n## h")
def test_headings_are_where_commonmark_has_them(text: str) -> None:
    assert _ours(text) == _commonmark(text)


@pytest.mark.corpus
def test_headings_of_real_files_are_where_commonmark_has_them(corpus_files: list[Path]) -> None:
    for file in corpus_files:
        text = file.read_text(encoding="utf-8")

        assert _ours(text) == _commonmark(text), file


def _ours(text: str) -> list[int]:
    return [text.count("\n", 0, start.offset) for start in scan.structure(text).starts]


def _commonmark(text: str) -> list[int]:
    tokens = MarkdownIt("commonmark").parse(text)
    return [
        token.map[0]
        for token in tokens
        if token.type == "heading_open" and token.level == 0 and token.markup == "##" and token.map
    ]

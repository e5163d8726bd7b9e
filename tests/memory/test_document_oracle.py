"""CommonMark's reference parser finds the same headings."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from markdown_it import MarkdownIt

from echod.memory import forms, markdown
from tests.memory import strategies

law = settings(max_examples=200, deadline=None)

_ENTRY = "### [2026-01-01] Pattern: p\n- **layer**: traced"


@law
@given(strategies.random_markdown())
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
@example(f"{_ENTRY}\n- a\n  {_ENTRY}\n{_ENTRY}")
@example(f"> {_ENTRY}\n{_ENTRY}")
@example(f"para\n{_ENTRY}\n    {_ENTRY}\n\n    {_ENTRY}")
@example(f"```\n{_ENTRY}\n```\n   {_ENTRY}")
@example(f"<div>\n{_ENTRY}\n\n{_ENTRY}")
@example(f"<!--\n\n{_ENTRY}\n-->\n{_ENTRY}")
@example(f"1. a\n\n   {_ENTRY}\n### a section\n{_ENTRY}")
def test_headings_are_where_commonmark_has_them(text: str) -> None:
    ours, theirs = heading_lines_by_both(text)

    assert ours == theirs


def test_entries_below_three_marks_are_compared() -> None:
    assert heading_lines_by_both(f"## h\n### a section\n{_ENTRY}\n\n- {_ENTRY}\n") == ([0, 2], [0, 2])


@pytest.mark.corpus
def test_headings_of_real_files_are_where_commonmark_has_them(corpus_files: list[Path]) -> None:
    for file in corpus_files:
        ours, theirs = heading_lines_by_both(file.read_text(encoding="utf-8"))

        assert ours == theirs, file


def heading_lines_by_both(text: str) -> tuple[list[int], list[int]]:
    """The lines of the headings that begin a block, by our parser and by CommonMark's.

    Whether a heading of level three is an entry's, CommonMark cannot tell. Left out is a last block of code or HTML:
    where that is never closed we deviate on purpose.
    """
    tokens = [token for token in MarkdownIt("commonmark").parse(text) if token.level == 0 and token.map]
    last = tokens[-1] if tokens else None
    end = last.map[0] if last and last.map and last.type in {"fence", "html_block"} else len(text)
    offsets = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    theirs = [
        token.map[0]
        for token in tokens
        if token.type == "heading_open"
        and token.map
        and (token.markup == "##" or (token.markup == "###" and forms.match_entry(text, offsets[token.map[0]])))
    ]
    ours = [text.count("\n", 0, start.offset) for start in markdown.parse_structure(text).starts]
    return [line for line in ours if line < end], theirs

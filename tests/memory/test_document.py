"""Whole files: those that must not be changed, and the damage that a careless writer cannot do."""

from __future__ import annotations

import gc
import weakref

import pytest

from echod.memory import MAX_FILE_BYTES
from echod.memory.document import parse, parse_block
from echod.memory.markdown import parse_structure
from echod.memory.model import Document, Unreadable, UnreadableKind

ENTRY = "## Notes \u2014 a (2026-01-01)\n**Source**: user:remember\n- b\n"


@pytest.mark.parametrize(
    ("data", "fault", "says"),
    [
        pytest.param(b"# a\nb\xff\n", UnreadableKind.INVALID_UTF8, "Line 2 is not UTF-8", id="invalid UTF-8"),
        pytest.param("## a".encode("utf-16"), UnreadableKind.INVALID_UTF8, "Save the file as UTF-8", id="UTF-16"),
        pytest.param(
            b"x" * (MAX_FILE_BYTES + 1), UnreadableKind.OVER_SIZE, "more than the limit of 10.0 MiB", id="too large"
        ),
        pytest.param(
            b"<!-- echo-schema: v2 -->\n", UnreadableKind.FUTURE_SCHEMA, "schema version 2", id="a later version"
        ),
        pytest.param(
            b"\xef\xbb\xbf<!-- ECHO-SCHEMA: 1.1 -->\n",
            UnreadableKind.FUTURE_SCHEMA,
            "version 1.1",
            id="a slightly later one",
        ),
        pytest.param(
            b"# a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> d\n",
            UnreadableKind.CONFLICT_MARKERS,
            "conflict markers (line 2)",
            id="a merge conflict",
        ),
        pytest.param(
            b"```\n<<<<<<< HEAD\nb\n```\n=======\nc\n>>>>>>> d\n",
            UnreadableKind.CONFLICT_MARKERS,
            "line 2",
            id="a merge conflict that begins in a fence",
        ),
    ],
)
def test_a_file_that_must_not_be_changed_is_unreadable_with_a_reason(
    data: bytes, fault: UnreadableKind, says: str
) -> None:
    read = parse(data)

    assert isinstance(read, Unreadable)
    assert read.kind is fault
    assert says in read.reason
    assert read.render() == data


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<!-- echo-schema: v1 -->\n", id="version 1"),
        pytest.param("```\n<<<<<<< HEAD\n>>>>>>> a\n```\n", id="an example of a conflict"),
        pytest.param("<<<<<<< HEAD\n", id="a start marker alone"),
        pytest.param(">>>>>>> a\n<<<<<<< b\n", id="an end before a start"),
        pytest.param("  <<<<<<< a\n  >>>>>>> b\n", id="indented markers"),
        pytest.param("<<<<<<<< a\n>>>>>>>> b\n", id="eight marks"),
        pytest.param(f"{ENTRY}\n<!-- echo-schema: v2 -->\n", id="an entry about later versions"),
        pytest.param("", id="nothing"),
    ],
)
def test_text_that_only_looks_dangerous_is_read(text: str) -> None:
    assert isinstance(parse(text.encode()), Document)


def test_an_empty_file_is_a_document_with_nothing_in_it() -> None:
    assert parse(b"") == Document("", ())


def test_the_limit_is_the_callers() -> None:
    assert isinstance(parse(b"12345", max_bytes=4), Unreadable)
    assert isinstance(parse(b"1234", max_bytes=4), Document)


def test_a_byte_order_mark_stays_at_the_beginning_of_the_file() -> None:
    document = parse(b"\xef\xbb\xbf" + ENTRY.encode())

    assert document == Document("\ufeff", (parse_block(ENTRY),))


def test_the_file_title_and_placeholder_are_the_preamble() -> None:
    preamble = "<!-- echo-schema: v1 -->\n# Planner Memory\n\n*Nothing yet.*\n\n### Not an entry\n\n"

    assert parse((preamble + ENTRY).encode()) == Document(preamble, (parse_block(ENTRY),))


@pytest.mark.parametrize("opener", ["```py", "~~~~", "<!-- note to self", "<pre>", "<script>", "<?php"])
def test_an_unclosed_block_ends_before_the_next_entry(opener: str) -> None:
    careless = f"## Notes \u2014 careless (2026-01-01)\n\n{opener}\n## not an entry\ncode\n\n"

    document = parse((careless + ENTRY + "\n" + ENTRY).encode())

    assert isinstance(document, Document)
    assert [block.text for block in document.blocks] == [careless, ENTRY + "\n", ENTRY]


@pytest.mark.parametrize(
    "follower",
    [
        pytest.param(ENTRY, id="no blank line before it"),
        pytest.param("\n## A person's section\n", id="no entry"),
        pytest.param("\n    " + ENTRY, id="indented"),
    ],
)
def test_nothing_else_ends_an_unclosed_block(follower: str) -> None:
    document = parse(f"## Notes \u2014 careless (2026-01-01)\n\n```\n{follower}".encode())

    assert isinstance(document, Document)
    assert len(document.blocks) == 1


@pytest.mark.parametrize(("opener", "closer"), [("```", "```"), ("~~~", "~~~~"), ("<!--", "-->"), ("<pre>", "</PRE>")])
def test_an_entry_inside_what_is_closed_is_an_example(opener: str, closer: str) -> None:
    document = parse(f"## Mine\n\n{opener}\n\n{ENTRY}\n{closer}\n\n{ENTRY}".encode())

    assert isinstance(document, Document)
    assert [block.entry is not None for block in document.blocks] == [False, True]


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ("a\n````py\nb", "````"),
        ("a\n  ~~~\nb", "~~~"),
        ("<!-- a\n", "-->"),
        ("```\na\n```\n", None),
        ("- ```\n  a\n", None),
        ("a\n", None),
        (f"```\na\n\n{ENTRY}", None),
    ],
)
def test_the_line_that_would_close_an_open_block_is_known(text: str, closing: str | None) -> None:
    assert parse_structure(text).closing == closing
    if closing:
        assert parse_structure(f"{text}\n{closing}\n").closing is None


def test_separators_and_blank_lines_belong_to_the_block_above() -> None:
    first, second = f"{ENTRY}\n---\n\n\n", ENTRY

    assert parse((first + second).encode()) == Document("", (parse_block(first), parse_block(second)))


def test_a_line_ends_at_a_line_feed_and_nowhere_else() -> None:
    text = f"{ENTRY[:-1]} c\r## d\x0b## e\x0c## f\x85## g\u2028## h\n"

    assert parse(text.encode()) == Document("", (parse_block(text),))


def test_deep_nesting_is_content() -> None:
    text = f"{ENTRY}\n{'> ' * 5000}## a\n{'- ' * 5000}## b\n\n{ENTRY}"

    document = parse(text.encode())

    assert isinstance(document, Document)
    assert len(document.blocks) == 2


def test_a_large_file_is_parsed_once_while_it_is_in_use() -> None:
    data = b"# Memory\n\n" + b"".join(b"## Note %d\n\nA line.\n\n" % number for number in range(5_000))
    document = parse(data)

    assert parse(bytes(bytearray(data))) is document

    held = weakref.ref(document)
    del document
    gc.collect()
    assert held() is None, "nothing of it is kept"

"""The user's notes: one entry for any text; never twice; never with a secret."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echod.memory.compose import Note, UnwritableNote, create_note, find_same_note, with_note
from echod.memory.document import new_memory_file, parse
from echod.memory.identity import block_content
from echod.memory.model import Document, Form, Layer

DAY = date(2026, 11, 20)

_PIECES = [
    "```", "~~~", "## ", "### [2026-01-01] P: x", "- **layer**: etched", "**Source**: x", "<!--", "-->", "---", "***",
    "\n", "\n\n", "- ", "  ", "    ", "words", "(2026-01-01)", "Task: ", "#", " #", "\u00e9", "\t", "<div>", "\u202e",
]  # fmt: skip
_WORDS = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=5)), max_size=12).map("".join)


def file(text: str = "") -> Document:
    document = parse(new_memory_file("notes") + text.encode())
    assert isinstance(document, Document)
    return document


def created(text: str, title: str | None = None) -> Note:
    note = create_note(text, title)
    assert note is not None
    return note


def note_appended(document: Document, note: Note) -> Document:
    after = with_note(document, note, DAY)
    assert not isinstance(after, UnwritableNote), after
    return after


def test_it_has_the_notes_form() -> None:
    after = note_appended(file(), created("Use uv, never pip. It is faster."))

    assert after.render().decode() == (
        "<!-- echo-schema: v1 -->\n# Notes Memory\n\n"
        "## Notes \u2014 Use uv, never pip (2026-11-20)\n"
        "**Source**: user:remember\n"
        "- Use uv, never pip. It is faster.\n"
    )


@given(_WORDS, st.one_of(st.none(), _WORDS))
def test_any_words_become_one_entry_that_is_recognised_again(text: str, title: str | None) -> None:
    note = create_note(text, title)
    if note is None:
        return
    before = note_appended(file(), created("Something that stood there before"))

    after = note_appended(before, note)

    assert [block_content(block) for block in after.blocks[:-1]] == [block_content(block) for block in before.blocks]
    entry = after.blocks[-1].entry
    assert entry is not None
    assert (entry.layer, entry.heading_date, entry.source) == (Layer.NOTES, DAY, "user:remember")
    assert find_same_note(after, note) in (0, 1)


@pytest.mark.parametrize("again", ["use UV, never pip.", "  Use uv,\n never pip.", "- Use uv, never pip."])
def test_equal_words_are_the_same_note_with_any_title_and_day(again: str) -> None:
    before = note_appended(file(), created("Use uv, never pip.", "Packages"))

    assert find_same_note(before, created(again, "Another title")) == 0
    assert find_same_note(before, created("Use uv, never poetry.")) is None


def test_an_entry_of_another_layer_is_not_a_note() -> None:
    document = file("\n## Inscribed \u2014 Use uv (2026-11-01)\n**Source**: s\n- Use uv.\n")

    assert find_same_note(document, created("Use uv.")) is None


def test_secrets_are_redacted_in_text_and_title() -> None:
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"

    note = created(f"The token is {token}.", f"Token {token}")

    assert note.redacted
    assert token not in note.text + note.title
    assert not created("No secret at all.").redacted


@pytest.mark.parametrize("text", ["", "  \n\t", "---", "\u200b"])
def test_empty_text_is_not_a_note(text: str) -> None:
    assert create_note(text, "A title") is None


def test_the_line_ends_of_the_file_are_kept() -> None:
    document = parse(b"# Notes Memory\r\n\r\nWords.\r\n")
    assert isinstance(document, Document)

    assert b"\n" not in note_appended(document, created("one\ntwo")).render().replace(b"\r\n", b"")


@pytest.mark.parametrize("opened", ["<!-- never closed", "```", "~~~text"])
def test_an_unclosed_block_above_does_not_swallow_a_note(opened: str) -> None:
    document = file(f"\n## Mine\n\n{opened}\nwords\n")

    for text in ("Use uv.", "```\ncode\n```", "~~~"):
        after = note_appended(document, created(text))

        assert find_same_note(after, created(text)) is not None
        assert after.render().startswith(document.render())


def test_a_note_that_would_close_a_comment_above_is_not_written() -> None:
    refusal = with_note(file("\n## Mine\n\n<!-- never closed\n"), created("-->"), DAY)

    assert isinstance(refusal, UnwritableNote)
    assert "never closed" in refusal.reason


def test_a_title_that_looks_like_a_task_is_still_a_note() -> None:
    after = note_appended(file(), created("Do it.", "Task: clean up"))

    entry = after.blocks[-1].entry
    assert entry is not None
    assert (entry.form, entry.layer) == (Form.OBSERVATION, Layer.NOTES)

"""Laws for every text: nothing outside the spans changes, lines stay lines, and once is enough."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.redact import Redaction, Secret, find_secrets, redact, redact_entry
from echod.memory.redact.spans import replace_spans

NAMES = [
    "password",
    "api_key",
    "token",
    "secret",
    "key",
    "Authorization",
    "Bearer",
    "--password",
    "access token",
    "pwd",
]
JOINTS = [
    ": ", "=", " = ", "=>", " is ", "|", " ", "\n", ", ", ";", "&", "(", ")", "[", "]", "{", "}", '"', "'", "`", "<", ">",
    "://", "@", "**", "\\n", '\\"', "-", "_", ".", "\u200b", "\uff41", "\uffff", "[REDACTED:token]", "[REDACTED:",
    "-u a:", "sshpass -p ", "\n```\n", "\r\n", "\u0130", "\udc80",
]  # fmt: skip
PIECES = [
    "hunter2", "aB3dE5gH7" + "jK9mN1pQ3sT", "g" + "hp_" + "aB3dE5gH7" * 4, "A" + "KIA" + "IOSFODNN7" + "EXAMPLE",
    "xxxx", "string", "0123456789abcdef" * 2, "postgres://u:p4ss@h/db", "-----BEGIN RSA PRIVATE" + " KEY-----",
    "-----END RSA PRIVATE" + " KEY-----", "MIICWwIBAAKBgQ" * 5, "correct horse", "x", "é", "😀",
]  # fmt: skip
SOUP = st.lists(st.sampled_from([*NAMES, *JOINTS, *PIECES]), max_size=24).map("".join)
TEXTS = st.one_of(SOUP, st.text(max_size=60))


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_all_text_outside_the_spans_is_kept(text: str) -> None:
    result = redact(text)

    rest, kept = result.text, 0
    for span in result.spans:
        assert kept <= span.start < span.end <= len(text)
        head = text[kept : span.start] + f"[REDACTED:{span.kind}]"
        assert rest.startswith(head)
        rest, kept = rest[len(head) :], span.end
    assert rest == text[kept:]


@settings(max_examples=250, deadline=None)
@given(TEXTS)
@example("password: a\u200b\uffff" + "[REDACTED:token]")
@example('token="\\\uffff"')
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text).text

    assert redact(once) == Redaction(once, ())


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_only_a_private_key_spans_lines_and_no_fence_is_removed(text: str) -> None:
    for span in find_secrets(text):
        taken = text[span.start : span.end]
        assert span.kind == "private-key" or "\n" not in taken
        assert "```" not in taken or "\n" not in taken


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_an_entry_is_redacted_once_and_for_all(text: str) -> None:
    once = redact_entry(f"### title\n- **evidence**: {text}\n").text

    assert redact_entry(once).text == once


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        SOUP.map(lambda text: text.replace("\n", " ").replace("\r", " ").replace("```", "")),
        min_size=1,
        max_size=4,
    )
)
def test_a_memory_file_still_parses_into_the_same_entries(learnings: list[str]) -> None:
    file = "# Reviewer Memory\n\n" + "\n".join(
        f"### [2026-01-0{at + 1}] Pattern: title {at}\n- **layer**: inscribed\n- **confidence**: 0.8\n- {learning}\n"
        for at, learning in enumerate(learnings)
    )

    before, after = parse(file.encode(errors="replace")), parse(redact(file).text.encode(errors="replace"))

    assert isinstance(before, Document)
    assert isinstance(after, Document)
    assert [block.entry and block.entry.title for block in after.blocks] == [
        block.entry and block.entry.title for block in before.blocks
    ]


def test_a_chain_of_neighbours_is_redacted_to_its_end() -> None:
    token = "g" + "hp_" + "".join(random.Random(1).choices(string.ascii_letters, k=36))
    chain = "".join(f"{mark}{token}" for mark in "-.:/+=~@#%&" * 8)

    once = redact(chain).text

    assert token not in once
    assert find_secrets(once) == ()


def test_spans_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        replace_spans("abcdef", [Secret("a", 0, 3), Secret("b", 2, 5)])


@settings(max_examples=150, deadline=None)
@given(TEXTS, SOUP, TEXTS)
def test_a_secret_is_found_between_other_texts(before: str, text: str, after: str) -> None:
    found = bool(find_secrets(text))

    assert not found or find_secrets(f"{before}\n\n{text}\n\n{after}")

"""Sentences, learnings and references of a text: word for word, and nothing that only looks like them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.knowledge.text import (
    body_references,
    evidence_references,
    extract_learnings,
    first_sentence,
    join_sentences,
    split_lead,
    split_sentences,
    strip_emphasis,
    truncate_text,
)
from tests.memory import strategies


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Close the pool first. Then fork.", "Close the pool first."),
        ("Call `a.b(). C` before use. Then stop.", "Call `a.b(). C` before use."),
        ("Use e.g. Redis or Valkey. Not both.", "Use e.g. Redis or Valkey."),
        ("Python 3.11 breaks it. Pin 3.10.", "Python 3.11 breaks it."),
        ("see config.toml. then reload it. Now.", "see config.toml. then reload it."),
        ("No. Never retry a payment. Ever.", "No. Never retry a payment."),
        ("Is it safe now? Only behind the lock.", "Is it safe now?"),
        ("**Lead**: the first thing holds (mostly). The second does not.", "**Lead**: the first thing holds (mostly)."),
        ("One sentence without an end", "One sentence without an end"),
        ("\u5148\u306b\u9589\u3058\u308b \u3053\u3068 \u3060\u3002\u6b21\u306b\u5206\u5c90\u3002", "\u5148\u306b\u9589\u3058\u308b \u3053\u3068 \u3060\u3002"),
        ("Two findings:\\n\\n1. Fix it. Then test.", "Two findings:\\n\\n1. Fix it."),
        ("", ""),
    ],
    ids=[
        "two", "code", "abbreviation", "number", "small letter", "too short", "question", "bold", "no end", "japanese",
        "list in a line", "empty",
    ],
)  # fmt: skip
def test_the_first_sentence(text: str, first: str) -> None:
    assert first_sentence(text) == first


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "**Docs changes need a review**: It ran well. Nobody read it.",
            ("Docs changes need a review.", "It ran well. Nobody read it."),
        ),
        ("**Docs changes need a review**: the pipeline ran.", ("**Docs changes need a review**: the pipeline ran.",)),
        ("**Retries**: three at most. Then fail. Say so.", ("**Retries**: three at most. Then fail. Say so.",)),
        ("No lead. Really. None.", ("No lead. Really. None.",)),
    ],
    ids=["bold statement", "one sentence below it", "bold word", "none"],
)
def test_a_bold_lead_that_says_something_is_a_sentence_of_its_own(text: str, parts: tuple[str, ...]) -> None:
    assert split_lead(text) == parts


@pytest.mark.parametrize(
    "sentences",
    [
        (
            "\u8fde\u63a5\u6c60\u5fc5\u987b\u5173\u95ed\u3002",
            "\u5b50\u8fdb\u7a0b\u91cc\u8981\u91cd\u65b0\u6253\u5f00\uff01",
        ),
        (
            "fork\u524d\u306b\u9589\u3058\u308b\u3002",
            "\u300c\u5fc5\u305a\u78ba\u8a8d\u3059\u308b\u3002\u300d",
            "\u518d\u5ea6\u958b\u304f\u3053\u3068\u3002",
        ),
        (
            "\u092f\u0939 \u0915\u093e\u092e \u0915\u0930\u0924\u093e \u0939\u0948\u0964",
            "\u0907\u0938\u0947 \u0939\u092e\u0947\u0936\u093e \u091c\u093e\u0901\u091a\u0947\u0902\u0964",
        ),
        ("Im Kind neu \u00f6ffnen, z. B. mit reset().", "Nie den alten nutzen, vgl. Abs. 2 der Norm."),
        ("Seit dem 3. M\u00e4rz l\u00e4uft es.", "\u00c4nderungen sind zu testen."),
        ("Il faut fermer le pool ; rouvrir ensuite.", "Ne jamais le partager !", "\u00c9crire un test."),
    ],
    ids=["chinese", "japanese", "hindi", "german", "german date", "french"],
)
def test_sentences_end_where_their_language_ends_them(sentences: tuple[str, ...]) -> None:
    assert split_sentences(join_sentences(sentences)) == sentences


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(max_size=80), strategies.SENTENCES))
def test_sentences_are_taken_word_for_word(text: str) -> None:
    line = " ".join(text.split())

    assert line.startswith(first_sentence(line))
    assert set(strip_emphasis(line).split()) <= set(line.replace("*", "").split()) | set(line.split())


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=60), st.integers(2, 40))
def test_a_truncated_text_has_at_most_the_requested_length(text: str, limit: int) -> None:
    assert len(truncate_text(text, limit)) <= limit
    assert truncate_text(text, 60) == text


def test_each_item_and_paragraph_is_a_learning() -> None:
    body = "First thing\non two lines.\n\n1. **A**: one.\n2. **B**: two\n   lines.\n\n   More on B.\n   - detail\n\n- Third.\n"

    assert extract_learnings(body) == ("First thing on two lines.", "**A**: one.", "**B**: two lines.", "Third.")


def test_figures_code_tables_and_comments_are_not_learnings() -> None:
    body = (
        "### Review Metrics\n\n- Files: 12\n- Commits: 9\n\n### Key Learnings\n\n- Lock first.\n\n"
        "```sh\n- not this\n```\n\n| a | b |\n|---|---|\n\n<!-- - nor this -->\n\n---\n\n**Category**: pattern\n"
    )

    assert extract_learnings(body) == ("Lock first.",)


def test_a_body_of_only_figures_has_them_as_learnings() -> None:
    assert extract_learnings("### Metrics\n\n- Files: 12\n") == ("Files: 12",)


def test_a_paragraph_that_introduces_a_list_is_not_a_learning() -> None:
    assert extract_learnings("Three causes:\n1. Races.\n2. Clocks.\n") == ("Races.", "Clocks.")
    assert extract_learnings("Three causes:\n") == ("Three causes:",)


def test_items_nested_in_the_one_bullet_of_the_bullet_form_are_learnings() -> None:
    assert extract_learnings("- The pool leaks\n  in forks.\n\n  - Close it.\n  - Reopen it.\n") == (
        "The pool leaks in forks.",
        "Close it.",
        "Reopen it.",
    )


def test_nested_lists_have_a_maximal_depth() -> None:
    deep = "".join(f"{'  ' * depth}- level {depth}\n" for depth in range(3000))

    assert extract_learnings(deep)[:2] == ("level 0", "level 1")


@settings(max_examples=60, deadline=None)
@given(strategies.BODIES | strategies.random_markdown())
def test_a_learning_is_one_line_and_not_empty(body: str) -> None:
    assert all(found.strip() and "\n" not in found for found in extract_learnings(body))


@pytest.mark.parametrize(
    ("evidence", "kept"),
    [
        ("`src/auth.py:1-5` \u2014 three unused imports found", ["`src/auth.py:1-5`"]),
        ("src/a.py:10, lib/b.ts and Makefile:3.", ["src/a.py:10", "lib/b.ts", "Makefile:3"]),
        (
            "PR #42, issue 7, #9, SEC-001 and WS-01/AUDIT-02",
            ["PR #42", "issue 7", "#9", "SEC-001", "WS-01", "AUDIT-02"],
        ),
        ("commit 93ce2417ec (see https://example.org/x?y=1).", ["93ce2417ec", "https://example.org/x?y=1"]),
        ("tests/unit/ and docs\\guide.md#L3-L9", ["tests/unit/", "docs\\guide.md#L3-L9"]),
        ("seen in three reviews, e.g. the last one", ["seen in three reviews, e.g. the last one"]),
        ("`a.md`\n  and `b.md`", ["`a.md`", "`b.md`"]),
        ("none", []),
        ("n/a", []),
        ("", []),
    ],
    ids=["code", "files", "numbers", "commit and address", "folders", "prose", "two lines", "none", "n/a", "empty"],
)
def test_references_in_evidence(evidence: str, kept: list[str]) -> None:
    assert list(evidence_references(evidence)) == kept


def test_references_in_a_body_are_certain() -> None:
    body = "Set `message.content` in src/app.py, see plans/x.md and SKILL.md; READ/WRITE/NONE, 5/10/15, v1.2.x. FIX-3!"

    assert body_references(body) == ("src/app.py", "plans/x.md", "SKILL.md", "FIX-3")

"""Knowledge blocks: a bullet for each learning, with every reference, for any entries."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.document import parse
from echod.memory.knowledge import (
    BlockMaterial,
    compose_block,
    extract_materials,
    extract_references,
    is_knowledge_block,
    knowledge_blocks,
    with_blocks,
)
from echod.memory.knowledge.blocks import group_by_topic
from echod.memory.model import Block, Document
from echod.memory.redact import redact_entry
from tests.memory import strategies

DAY = date(2026, 11, 20)


def blocks_of(text: str) -> list[Block]:
    document = parse(text.encode())
    return [block for block in document.blocks if block.entry] if isinstance(document, Document) else []


def materials(text: str) -> list[BlockMaterial]:
    return [
        material
        for block in blocks_of(text)
        if (entry := block.entry)
        for material in extract_materials(block, entry, entry.verified or entry.heading_date or DAY)
    ]


def learning(title: str, evidence: str, text: str, day: str = "2026-11-01") -> str:
    return (
        f"### [{day}] Pattern: {title}\n- **layer**: traced\n- **source**: rune:review 1\n- **confidence**: 0.6\n"
        f"- **evidence**: {evidence}\n- **verified**: {day}\n- {text}\n\n"
    )


POOL = learning("Pool leaks in forks", "`src/db/pool.py:10`", "Close the pool before forking. Workers share sockets.")
POOL_TWO = learning(
    "Timeouts of connections", "`src/db/pool.py:44`", "Set a timeout of 5 s. The default waits.", "2026-11-03"
)
CACHE = learning("Cache keys", "`src/cache.py:3`", "Put the locale into the key. Pages were mixed up.")
SOME_FILES = st.lists(strategies.entries(), min_size=1, max_size=8).map("\n".join)


def test_entries_that_share_a_file_are_one_topic() -> None:
    assert group_by_topic(materials(POOL + CACHE + POOL_TWO)) == ((0, 2), (1,))


def test_entries_whose_titles_agree_are_one_topic() -> None:
    one = learning("Retry of payment calls", "`src/a.py`", "Never.")
    two = learning("Payment calls retry", "`src/b.py`", "Twice.")

    [group] = group_by_topic(materials(one + two))
    assert set(group) == {0, 1}


def test_a_file_that_all_entries_refer_to_does_not_distinguish_topics() -> None:
    names = ["anchor", "bridge", "candle", "desert", "engine", "forest", "garden", "harbor", "island", "jungle"]
    text = "".join(
        learning(f"{one} {two}", f"`src/main.py`, `src/{one}_{two}.py`", "Words.") for one in names for two in names[:3]
        if one != two
    )  # fmt: skip

    groups = group_by_topic(materials(text))

    assert all(len(group) < 10 for group in groups)


def test_a_block_is_short_and_keeps_the_references() -> None:
    [block] = knowledge_blocks(materials(POOL + POOL_TWO))

    assert block == (
        "## Inscribed \u2014 Knowledge: Timeouts of connections (2026-11-03)\n"
        "**Evidence**: `rune:review 1`\n"
        "- *Pool leaks in forks*: Close the pool before forking. (`src/db/pool.py:10`)\n"
        "- *Timeouts of connections*: Set a timeout of 5 s. The default waits. (`src/db/pool.py:44`)\n"
    )


@settings(max_examples=60, deadline=None)
@given(SOME_FILES)
def test_every_block_reads_back_as_itself(text: str) -> None:
    for block in knowledge_blocks(materials(text)):
        assert block.count("\n") >= 3
        [read] = blocks_of(block)
        assert read.text == block
        assert is_knowledge_block(read)
        assert read.entry is not None
        assert compose_block(extract_materials(read, read.entry, read.entry.heading_date or DAY)) == block


@settings(max_examples=60, deadline=None)
@given(SOME_FILES)
def test_every_reference_is_kept(text: str) -> None:
    knowledge_text = "\n".join(knowledge_blocks(materials(text)))

    for block in blocks_of(text):
        assert block.entry is not None
        for reference in extract_references(block.entry, block.text[block.entry.body.start : block.entry.body.end]):
            assert redact_entry(reference).text in knowledge_text or reference in knowledge_text


@settings(max_examples=40, deadline=None)
@given(SOME_FILES, st.randoms(use_true_random=False))
def test_the_order_of_the_entries_makes_no_difference(text: str, random: object) -> None:
    extracted = materials(text)
    shuffled = list(extracted)
    getattr(random, "shuffle")(shuffled)  # noqa: B009 - hypothesis' random has no public type

    assert sorted(knowledge_blocks(shuffled)) == sorted(knowledge_blocks(extracted))


def test_secrets_do_not_reach_a_block() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    [block] = knowledge_blocks(
        materials(learning(f"Deploy {secret}", f"`deploy.sh` {secret}", f"Export {secret} first."))
    )

    assert secret not in block
    assert "deploy.sh" in block


@pytest.mark.parametrize(
    "title",
    ["``` x", "<!-- x", "## x", "*x*", "x (2026-01-01)", "Task: x", "| a |", "", "(2026-01-01)", "x" * 5000, "\u2014"],
)
def test_no_title_breaks_a_block(title: str) -> None:
    for block in knowledge_blocks(materials(learning(title, "`a.py`", title or "x"))):
        assert [is_knowledge_block(read) for read in blocks_of(block)] == [True]


def test_each_learning_is_a_bullet_with_its_lead_its_remedy_and_its_references() -> None:
    text = (
        "## Inscribed \u2014 Pools (2026-11-01)\n\n**Source**: `a`\n\n"
        "1. **Pools leak**: workers share the sockets of src/db/pool.py. It was seen in CI for a week. "
        "It was first reported in src/db/old.py. Always close the pool before forking.\n\n"
        "2. The cache in src/cache.py needs the locale.\n"
    )

    blocks = "".join(knowledge_blocks(materials(text)))

    assert (
        "- Pools leak: workers share the sockets of src/db/pool.py. Always close the pool before forking. "
        "(src/db/old.py)\n" in blocks
    )
    assert "- The cache in src/cache.py needs the locale.\n" in blocks


def test_code_stays_below_its_learning() -> None:
    text = (
        "## Inscribed \u2014 Sets (2026-11-01)\n**Source**: `a`\n\n1. Never use this:\n\n   ```sh\n   set +e\n   ```\n"
    )

    [block] = knowledge_blocks(materials(text))

    assert "- Never use this:\n" in block
    assert "  ```sh\n  set +e\n  ```\n" in block
    [read] = blocks_of(block)
    assert read.entry is not None
    assert compose_block(extract_materials(read, read.entry, DAY)).splitlines()[2:] == block.splitlines()[2:]


def test_blocks_are_added_at_the_end_once() -> None:
    blocks = knowledge_blocks(materials(POOL + CACHE))

    new = with_blocks("reviewer", None, blocks)
    assert isinstance(new, bytes)
    again = with_blocks("reviewer", new, blocks)

    assert new.startswith(b"<!-- echo-schema: v1 -->\n# Reviewer Knowledge\n\n## Inscribed")
    assert again == new
    assert with_blocks("reviewer", None, ()) == b"<!-- echo-schema: v1 -->\n# Reviewer Knowledge\n"


def test_blocks_take_the_line_ending_of_the_file_and_leave_its_bytes() -> None:
    before = b"# Mine\r\n\r\n## Own section\r\n\r\n```\r\nnever closed\r\n"

    after = with_blocks("reviewer", before, knowledge_blocks(materials(POOL)))

    assert isinstance(after, bytes)
    assert after.startswith(before)
    assert after.count(b"\n") == after.count(b"\r\n")
    assert any(is_knowledge_block(block) for block in blocks_of(after.decode().replace("\r\n", "\n")))


def test_an_unreadable_file_is_not_written_over() -> None:
    assert not isinstance(with_blocks("reviewer", b"\xff", knowledge_blocks(materials(POOL))), bytes)

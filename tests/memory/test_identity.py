"""An entry keeps its id while everything around and inside it changes."""

from __future__ import annotations

from datetime import date
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from echod.memory.document import parse, parse_block
from echod.memory.edit import with_confidence, with_layer, with_verified
from echod.memory.identity import (
    ID_LENGTH,
    AmbiguousEntryError,
    UnknownEntryError,
    entry_ids,
    normalize_title,
    resolve_id,
)
from echod.memory.model import Block, Document, Layer
from tests.memory import strategies

law = settings(max_examples=60, deadline=None)


def entry(title: str = "a", body: str = "b", day: str = "2026-01-01", source: str = "c") -> Block:
    return parse_block(f"## Inscribed \u2014 {title} ({day})\n\n**Source**: `{source}`\n\n{body}\n\n")


def document(*blocks: Block) -> Document:
    return Document("", blocks)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Documents in which exact repeats are frequent."""
    blocks = draw(
        st.lists(
            st.builds(
                entry, st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from(["2026-01-01", "2026-01-02"])
            ),
            max_size=8,
        )
    )
    return document(*blocks)


@law
@given(st.one_of(documents(), strategies.well_formed_files().map(lambda text: _read(text.encode()))))
def test_every_entry_has_an_id_of_its_own_and_no_opaque_block_has_one(read: Document) -> None:
    ids = entry_ids("reviewer", read)

    assert [identity is None for identity in ids] == [block.entry is None for block in read.blocks]
    given_out = [identity for identity in ids if identity]
    assert len(given_out) == len(set(given_out))
    assert all(len(identity) == ID_LENGTH and int(identity, 16) >= 0 for identity in given_out)


@law
@given(strategies.well_formed_files(), st.randoms(use_true_random=False))
def test_moving_entries_that_differ_changes_no_id(text: str, random: Random) -> None:
    read = _read(text.encode())
    ids = entry_ids("reviewer", read)
    plain = [entry_ids("reviewer", document(block))[0] for block in read.blocks]
    assume(ids == tuple(plain))  # no repeats
    order = list(range(len(read.blocks)))
    random.shuffle(order)

    moved = document(*(read.blocks[place] for place in order))

    assert entry_ids("reviewer", moved) == tuple(ids[place] for place in order)


@law
@given(strategies.entries(), strategies.DATES, st.floats(0, 1), st.sampled_from(list(Layer)))
def test_editing_metadata_changes_no_id(text: str, day: date, confidence: float, layer: Layer) -> None:
    read = _read(text.encode())
    assume(len(read.blocks) == 1)
    assert read.blocks[0].entry

    edited = with_layer(with_confidence(with_verified(read.blocks[0], day), confidence), layer)

    assert entry_ids("planner", document(edited)) == entry_ids("planner", read)


def test_editing_the_body_changes_no_plain_id() -> None:
    before = entry_ids("planner", document(entry(body="old words"), entry("other")))

    assert entry_ids("planner", document(entry(body="new words"), entry("other"))) == before


@pytest.mark.parametrize(
    "other",
    [entry("z"), entry(day="2026-01-02"), entry(source="z")],
    ids=["title", "date", "source"],
)
def test_another_title_date_or_source_is_another_entry(other: Block) -> None:
    assert entry_ids("planner", document(entry())) != entry_ids("planner", document(other))


def test_the_same_entry_of_another_role_has_another_id() -> None:
    assert entry_ids("planner", document(entry())) != entry_ids("reviewer", document(entry()))


def test_the_first_of_exact_repeats_keeps_the_plain_id() -> None:
    plain = entry_ids("planner", document(entry(body="x")))[0]

    ids = entry_ids("planner", document(entry(body="x"), entry(body="y"), entry(body="y"), entry(body="y")))

    assert ids[0] == plain
    assert len(set(ids)) == 4


def test_a_repeat_keeps_its_id_regardless_of_blocks_between() -> None:
    before = entry_ids("planner", document(entry(body="x"), entry(body="y")))

    after = entry_ids("planner", document(entry(body="x"), entry("other"), entry(body="z"), entry(body="y")))

    assert (after[0], after[3]) == before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use `foo`", "use foo"),
        ("Use  **foo**.", "Use foo"),
        ("Use\u200b f\u00adoo", "Use foo"),
        ("\uff35\uff53\uff45 foo", "Use foo"),
        ("STRASSE", "straße"),
        ("cafe\u0301", "caf\u00e9"),
        ("\u202eUse foo\u202c", "Use foo"),
        ("Use foo \u2026", "Use foo"),
    ],
)
def test_titles_that_read_alike_are_equal(one: str, other: str) -> None:
    assert normalize_title(one) == normalize_title(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Retry 3 times", "Retry 5 times"), ("a-b", "ab"), ("get_user", "getuser"), ("Use it?", "Use it"), ("C", "C++")],
)
def test_titles_that_read_differently_are_unequal(one: str, other: str) -> None:
    assert normalize_title(one) != normalize_title(other)


class TestResolve:
    """The user types the beginning of an id."""

    def test_any_unique_prefix_in_any_case_will_do(self) -> None:
        assert resolve_id(" AB", ["abc123", "b00000"]) == "abc123"

    def test_an_id_in_two_places_is_one_id(self) -> None:
        assert resolve_id("abc", ["abc123", "abc123"]) == "abc123"

    def test_a_complete_id_wins_over_a_longer_one(self) -> None:
        assert resolve_id("abc", ["abc", "abcd"]) == "abc"

    @pytest.mark.parametrize("prefix", ["f", "", " "])
    def test_an_unknown_prefix_is_an_error(self, prefix: str) -> None:
        with pytest.raises(UnknownEntryError, match="List the entries"):
            resolve_id(prefix, ["abc123"])

    def test_an_ambiguous_prefix_names_the_candidates(self) -> None:
        with pytest.raises(AmbiguousEntryError, match="could be ab1, ab2 or ab3") as caught:
            resolve_id("ab", ["ab3", "ab1", "c", "ab2"])

        assert caught.value.candidates == ("ab1", "ab2", "ab3")


def _read(data: bytes) -> Document:
    read = parse(data)
    assert isinstance(read, Document)
    return read

"""An entry is recognised after its id changed, and never confused with another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from echod.memory.document import parse, parse_block
from echod.memory.entry_matching import EntrySignature, entry_signature, match_entries, present_entries
from echod.memory.identity import entry_ids
from echod.memory.model import Block, Document
from echod.memory.redact import strip_secrets
from tests.memory import strategies

law = settings(max_examples=60, deadline=None)

ROLE = "planner"
KEY = "g" + "hp_" + "aB3dE5gH7" * 4


def entry(title: str = "a", body: str = "b", day: str = "2026-01-01", source: str = "c") -> Block:
    return parse_block(f"## Inscribed \u2014 {title} ({day})\n\n**Source**: `{source}`\n\n{body}\n\n")


def document(*blocks: Block) -> Document:
    return Document("", blocks)


def signatures(document_read: Document) -> dict[str, EntrySignature]:
    return {present.id: present.signature for present in present_entries(ROLE, document_read)}


def matched(before: Document, now: Document, id_changes: Mapping[str, str] | None = None) -> Mapping[str, str]:
    return match_entries(signatures(before), {}, signatures(now), id_changes or {})


def ids(read: Document) -> list[str]:
    """The ids of a document without opaque blocks."""
    return [identity for identity in entry_ids(ROLE, read) if identity]


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Documents in which exact repeats, and equal bodies below different headings, are frequent."""
    titles, bodies = st.sampled_from("ab"), st.sampled_from("xyz")
    days = st.sampled_from(["2026-01-01", "2026-01-02"])
    return document(*draw(st.lists(st.builds(entry, titles, bodies, days), max_size=8)))


@st.composite
def distinct_documents(draw: st.DrawFn) -> Document:
    """Documents in which every entry has a unique title and body."""
    names = draw(st.lists(st.integers(0, 99), min_size=1, max_size=8, unique=True))
    return document(*(entry(f"title {n}", f"body {n}", source=draw(st.sampled_from("cd"))) for n in names))


@law
@given(documents(), documents(), documents())
def test_the_pairs_are_one_to_one_and_name_ids_of_both_sides(before: Document, left: Document, now: Document) -> None:
    there = signatures(before)
    gone = {f"{identity}-gone": likeness for identity, likeness in signatures(left).items()}

    pairs = match_entries(there, gone, signatures(now))

    assert len(set(pairs.values())) == len(pairs)
    assert pairs.keys() <= set(ids(now))
    assert set(pairs.values()) <= there.keys() | gone.keys()


@law
@given(st.one_of(documents(), strategies.well_formed_files().map(lambda text: _parse(text.encode()))))
def test_an_unchanged_file_has_the_same_entries(read: Document) -> None:
    assert matched(read, read) == {identity: identity for identity in ids(read)}


@law
@given(documents(), st.data())
def test_entries_that_stay_while_others_are_removed_added_and_moved_are_recognised(
    before: Document, data: st.DataObject
) -> None:
    staying = data.draw(st.lists(st.sampled_from(before.blocks), unique_by=id) if before.blocks else st.just([]))
    new = data.draw(st.lists(st.builds(entry, st.sampled_from(["new", "other"]), st.sampled_from("pq")), max_size=3))
    now = document(*data.draw(st.permutations([*staying, *new])))

    pairs = matched(before, now)

    then = signatures(before)
    recognised = {identity: then[pairs[identity]] for identity in pairs}
    assert recognised == {i: x for i, x in signatures(now).items() if i in recognised}
    assert len(recognised) == len(staying)


CORRECTIONS: dict[str, Callable[[Block], Block]] = {
    "title": lambda block: parse_block(block.text.replace("title", "the right title")),
    "date": lambda block: parse_block(block.text.replace("2026-01-01", "2026-01-03")),
    "source": lambda block: parse_block(block.text.replace("**Source**: `", "**Source**: `rune:")),
    "body": lambda block: parse_block(block.text.replace("body", "better words:")),
    "a secret": lambda block: parse_block(block.text.replace("title", f"title {KEY}").replace("body", f"body {KEY}")),
}


@law
@given(distinct_documents(), st.data(), st.sampled_from(sorted(CORRECTIONS)))
def test_one_corrected_entry_among_others_that_move_is_recognised(
    before: Document, data: st.DataObject, what: str
) -> None:
    place = data.draw(st.integers(0, len(before.blocks) - 1))
    blocks = [CORRECTIONS[what](b) if i == place else b for i, b in enumerate(before.blocks)]
    if what == "a secret":  # it was there before, and is redacted
        before, blocks = (
            document(*blocks),
            list(_parse(strip_secrets(document(*blocks).render(), include_protected=True)).blocks),
        )
    order = data.draw(st.permutations(range(len(blocks))))
    now = document(*(blocks[i] for i in order))

    pairs = matched(before, now)

    then = ids(before)
    assert pairs == {identity: then[i] for i, identity in zip(order, ids(now), strict=True)}


@law
@given(documents(), documents())
def test_entries_with_nothing_in_common_are_never_matched(before: Document, other: Document) -> None:
    now = document(*(parse_block(b.text.replace("\u2014 ", "\u2014 new ").replace("`c`", "`d`")) for b in other.blocks))

    assert not matched(before, now)


@law
@given(strategies.well_formed_files(), st.sampled_from(["", KEY]), st.randoms(use_true_random=False))
def test_entries_are_the_same_with_and_without_their_secrets(text: str, secret: str, random: Random) -> None:
    words = text.split(" ")
    words.insert(random.randrange(len(words) + 1), secret)
    before = parse(" ".join(words).encode())
    now = parse(strip_secrets(before.render(), include_protected=True))
    assume(isinstance(before, Document) and isinstance(now, Document))
    assert isinstance(before, Document)
    assert isinstance(now, Document)
    assume(len(ids(now)) == len(ids(before)))

    pairs = matched(before, now)

    assert len(pairs) == len(ids(now))
    assert list(map(pairs.get, ids(now))) == ids(before) or _repeats(before)


class TestRepeats:
    """Entries of one title, date and source."""

    def test_the_next_one_gets_the_plain_id_when_the_first_is_removed(self) -> None:
        before, now = document(entry(body="x"), entry(body="y")), document(entry(body="y"))

        assert matched(before, now) == {ids(now)[0]: ids(before)[1]}
        assert ids(now)[0] == ids(before)[0]

    def test_two_repeats_that_change_places_exchange_ids(self) -> None:
        before, now = document(entry(body="x"), entry(body="y")), document(entry(body="y"), entry(body="x"))

        assert matched(before, now) == {ids(now)[1]: ids(before)[0], ids(now)[0]: ids(before)[1]}

    def test_an_entry_with_an_edited_body_is_the_same_entry(self) -> None:
        before, now = document(entry(body="x"), entry(body="y")), document(entry(body="x"), entry(body="y, edited"))

        assert matched(before, now) == {ids(now)[0]: ids(before)[0], ids(now)[1]: ids(before)[1]}

    def test_of_two_equal_entries_the_id_changes_tell_which_was_removed(self) -> None:
        before, now = document(entry(body="x"), entry(body="x")), document(entry(body="x"))

        assert matched(before, now) == {ids(now)[0]: ids(before)[0]}
        assert matched(before, now, {ids(before)[1]: ids(now)[0]}) == {ids(now)[0]: ids(before)[1]}

    def test_an_entry_with_a_corrected_title_is_matched_by_body_before_another_by_heading(self) -> None:
        before = document(entry("corrected", body="x"), entry(body="y"), entry(body="z"))
        now = document(entry(body="x"), entry(body="y"))

        assert matched(before, now) == {ids(now)[0]: ids(before)[0], ids(now)[1]: ids(before)[1]}


class TestAmbiguity:
    """Doubtful entries are not matched: a wrong match is worse than none."""

    def test_equal_words_below_two_headings_are_no_evidence(self) -> None:
        before = document(entry("one", body="x"), entry("two", body="x"))

        assert not matched(before, document(entry("three", body="x")))

    def test_they_are_not_matched_while_one_of_the_two_is_there(self) -> None:
        before = document(entry("one", body="x"), entry("two", body="x"))
        now = document(entry("one", body="x"), entry("three", body="x"))

        assert matched(before, now) == {ids(now)[0]: ids(before)[0]}

    def test_two_entries_that_exchange_their_bodies_are_matched_by_heading(self) -> None:
        before, now = document(entry("a", "x"), entry("b", "y")), document(entry("a", "y"), entry("b", "x"))

        assert matched(before, now) == {identity: identity for identity in ids(now)}

    def test_an_empty_body_proves_nothing(self) -> None:
        assert not matched(document(entry("one", body="")), document(entry("two", body="")))

    @pytest.mark.parametrize(
        "later",
        [
            entry("z", day="2026-01-02"),
            entry(day="2026-01-02", source="z"),
            entry("z", source="z"),
        ],
        ids=["title and date", "date and source", "title and source"],
    )
    def test_an_entry_with_two_changed_values_is_another_one(self, later: Block) -> None:
        assert not matched(document(entry()), document(later))

    def test_the_same_task_reported_again_by_another_workflow_is_another_one(self) -> None:
        recognised = "## Observations \u2014 Task: Review (2026-11-0{0})\n**Source**: `rune-{0}/ward`\n- Task completed: Review\n"
        first, second = (parse_block(recognised.format(number)) for number in (1, 2))

        assert not matched(document(first), document(second))


class TestRemoved:
    """A returning entry is the one that left."""

    def test_it_is_recognised_by_its_content_under_any_id(self) -> None:
        x, y = entry(body="x"), entry(body="y")
        now = signatures(document(x, y))
        plain, repeat = ids(document(x, y))

        pairs = match_entries({plain: entry_signature(y)}, {f"{plain}-x": entry_signature(x)}, now)

        assert pairs == {plain: f"{plain}-x", repeat: plain}

    def test_it_may_return_without_its_secret(self) -> None:
        left = entry(f"the token {KEY}", body="x")
        back = _parse(strip_secrets(document(left).render(), include_protected=True))
        (then,), (identity,) = ids(document(left)), ids(back)
        assert then != identity

        assert match_entries({}, {then: entry_signature(left)}, signatures(back)) == {identity: then}

    def test_it_comes_before_one_that_has_only_its_heading(self) -> None:
        x, y = entry(body="x"), entry(body="y")
        now = signatures(document(entry("corrected", body="x"), y))
        plain, repeat = ids(document(x, y))

        pairs = match_entries({plain: entry_signature(x)}, {repeat: entry_signature(y)}, now)

        assert pairs == dict(zip(now, (plain, repeat), strict=True))

    def test_an_entry_in_the_file_is_matched_first(self) -> None:
        now = signatures(document(entry()))
        (identity,) = now

        assert match_entries({"b": now[identity]}, {"a": now[identity]}, now) == {identity: "b"}


class TestEarlier:
    """An entry with a text that one other had before is that one."""

    def test_it_is_recognised_whether_it_is_in_the_file_or_left_it(self) -> None:
        now = signatures(document(entry("teh", body="whole")))
        ((identity, old),) = now.items()
        condensed = entry_signature(entry("the", body="short"))

        assert match_entries({"x": condensed}, {}, now, earlier={"x": [old]}) == {identity: "x"}
        assert match_entries({}, {"x": condensed}, now, earlier={"x": [old]}) == {identity: "x"}

    def test_an_entry_that_has_the_text_comes_before_one_that_had_it(self) -> None:
        now = signatures(document(entry("teh")))
        ((identity, old),) = now.items()

        pairs = match_entries({"x": entry_signature(entry("the"))}, {"y": old}, now, earlier={"x": [old]})

        assert pairs == {identity: "y"}

    def test_a_text_that_two_had_is_no_evidence(self) -> None:
        now = signatures(document(entry("teh", body="x")))
        ((_, old),) = now.items()
        left = {"x": entry_signature(entry("one", body="y")), "z": entry_signature(entry("two", body="z"))}

        assert not match_entries({}, left, now, earlier={"x": [old], "z": [old]})


def test_a_signature_reveals_nothing_of_the_entry() -> None:
    like = entry_signature(entry(f"the token {KEY}", body="x"))

    assert all(part == "" or (len(part) == 16 and int(part, 16) >= 0) for part in (*like.id_parts, like.body))


def test_an_opaque_block_has_no_signature() -> None:
    with pytest.raises(ValueError, match="opaque"):
        entry_signature(Block("## My own section\n", None))


def _repeats(read: Document) -> bool:
    headings = [likeness.id_parts for likeness in signatures(read).values()]
    return len(set(headings)) < len(headings)


def _parse(data: bytes) -> Document:
    read = parse(data)
    assert isinstance(read, Document)
    return read

"""Merging one version's changes into another: every rule, one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.document import parse
from echod.memory.identity import block_content, block_key, numbered_keys
from echod.memory.merge import MergeFailure, MergeResult, merge, restrict_removals, without_blocks
from echod.memory.model import Document

HEAD = "<!-- echo-schema: v1 -->\n# Memory\n\n"


def entry(title: str, body: str = "Learned.", confidence: str = "HIGH") -> str:
    return (
        f"## Inscribed \u2014 {title} (2026-01-01)\n\n"
        f"**Source**: `test`\n**Confidence**: {confidence}\n**Tags**: `a`\n\n{body}\n\n"
    )


A, B, C, D = (entry(title) for title in "ABCD")


def document(*blocks: str, head: str = HEAD) -> Document:
    read = parse((head + "".join(blocks)).encode())
    assert isinstance(read, Document)
    return read


def merge_versions(base: Document, visible: Document, other: Document) -> MergeResult:
    result = merge(base, visible, other)
    assert isinstance(result, MergeResult), result
    return result


@pytest.mark.parametrize(
    ("base", "visible", "other", "result"),
    [
        pytest.param([A, B], [A, B], [A, B], [A, B], id="nothing changed"),
        pytest.param([A, B], [A, B, C], [A, B], [A, B, C], id="only here"),
        pytest.param([A, B], [A, B], [A, B, C], [A, B, C], id="only there"),
        pytest.param([A, B], [A, B, C], [A, D, B], [A, D, B, C], id="both sides' additions stay"),
        pytest.param([A, B], [A, B, C], [A, B, C], [A, B, C], id="the same addition stands once"),
        pytest.param([A, B], [A, B], [B], [B], id="a removal is repeated"),
        pytest.param([A, B], [B], [A, B], [B], id="a removal here stays"),
        pytest.param([A, B], [entry("A", "Edited."), B], [B], [entry("A", "Edited."), B], id="edit here beats removal"),
        pytest.param(
            [A, B], [B], [entry("A", "Edited."), B], [entry("A", "Edited."), B], id="edit there beats removal"
        ),
        pytest.param([A, B], [A, B], [entry("A", "New."), B], [entry("A", "New."), B], id="an edit comes in"),
        pytest.param([A, B], [B, A], [A, C, B], [B, A, C], id="the order here is kept"),
        pytest.param([A, B], [A, B], [C, A, B], [C, A, B], id="an addition at the top stays at the top"),
        pytest.param([], [], [A], [A], id="into an empty file"),
    ],
)
def test_rules(base: list[str], visible: list[str], other: list[str], result: list[str]) -> None:
    outcome = merge_versions(document(*base), document(*visible), document(*other))

    assert outcome.data == document(*result).render()
    assert outcome.overridden == ()


def test_edits_of_different_fields_are_both_kept() -> None:
    outcome = merge_versions(document(A), document(entry("A", "Mine.")), document(entry("A", confidence="LOW")))

    assert outcome.data == document(entry("A", "Mine.", "LOW")).render()
    assert outcome.overridden == ()


def test_of_two_edits_of_one_field_the_visible_wins_and_the_other_is_returned() -> None:
    theirs = entry("A", "Theirs.")

    outcome = merge_versions(document(A, B), document(entry("A", "Mine."), B), document(theirs, B))

    assert outcome.data == document(entry("A", "Mine."), B).render()
    assert outcome.overridden == (theirs,)


@pytest.mark.parametrize("cut", [20, 60, 100])
def test_a_truncated_block_is_the_same_block(cut: int) -> None:
    outcome = merge_versions(document(A), document(A, C[:cut]), document(A, C))

    assert outcome.data.rstrip() == document(A, C).render().rstrip()


def test_a_truncated_block_does_not_shorten_the_whole_one() -> None:
    outcome = merge_versions(document(A), document(A, C), document(A, C[:60]))

    assert outcome.data == document(A, C).render()


def test_of_two_versions_of_an_added_entry_the_visible_one_wins_and_the_other_is_returned() -> None:
    new, old = entry("C", "Its later version."), entry("C", "Its first version.")

    outcome = merge_versions(document(A), document(A, new), document(A, old, D))

    assert outcome.data == document(A, new, D).render()
    assert outcome.overridden == (old,)


@pytest.mark.parametrize("base", [[A], [A, entry("C", "As both found it.")]], ids=["added", "edited"])
def test_a_version_known_to_be_older_loses_to_a_new_one(base: list[str]) -> None:
    old, new = entry("C", "Its first version."), entry("C", "Its later version.")

    outcome = merge(document(*base), document(A, old), document(A, new), older_texts={old.rstrip()})

    assert isinstance(outcome, MergeResult)
    assert outcome.data == document(A, new).render()
    assert outcome.overridden == (old,)


def test_of_two_known_versions_the_visible_one_wins() -> None:
    one, other = entry("C", "One."), entry("C", "Other.")

    outcome = merge(document(A), document(A, one), document(A, other), older_texts={one.rstrip(), other.rstrip()})

    assert isinstance(outcome, MergeResult)
    assert outcome.data == document(A, one).render()
    assert outcome.overridden == (other,)


@pytest.mark.parametrize(
    ("what", "other"),
    [("`test`", "`another`"), ("(2026-01-01)", "(2026-01-02)")],
    ids=["another source", "another day"],
)
def test_two_learnings_under_one_title_are_two(what: str, other: str) -> None:
    one = entry("C", "One.")
    two = one.replace(what, other).replace("One.", "Two.")

    outcome = merge_versions(document(A), document(A, one), document(A, two))

    assert one.encode() in outcome.data
    assert two.encode() in outcome.data
    assert outcome.overridden == ()


def test_a_second_learning_beside_an_existing_one_is_not_a_version_of_it() -> None:
    second = entry("A", "Quite another thing.")

    outcome = merge_versions(document(A), document(A), document(A, second))

    assert outcome.data == document(A, second).render()


def test_opaque_blocks_are_paired_only_if_they_agree() -> None:
    one, other = "## Plain\n\nOne text.\n\n", "## Plain\n\nAnother text.\n\n"

    outcome = merge_versions(document(A), document(A, one), document(A, other))

    assert one.rstrip().encode() in outcome.data
    assert other.rstrip().encode() in outcome.data


def test_two_versions_of_a_section_are_one_section() -> None:
    one, other = "## How we ship\n\nShip on Mondays.\n\n", "## How we ship\n\nShip on Tuesdays.\n\n"

    outcome = merge_versions(document(A), document(A, one), document(A, other))

    assert outcome.data == document(A, one).render()
    assert outcome.overridden == (other,)


def test_sections_with_a_heading_that_is_not_unique_all_stay() -> None:
    first, second, other = (f"## Log\n\nThe run took {word} minutes.\n\n" for word in ("two", "three", "four"))

    outcome = merge_versions(document(A), document(A, first, second), document(A, other))

    assert all(text.rstrip().encode() in outcome.data for text in (first, second, other))


def test_an_added_block_is_separated_by_a_blank_line() -> None:
    outcome = merge_versions(document(A), document(A.rstrip()), document(A, C))

    assert outcome.data == document(A, C).render()


def test_line_ends_are_those_of_the_file() -> None:
    windows = A.replace("\n", "\r\n")

    outcome = merge_versions(document(windows), document(windows.rstrip()), document(windows, C))

    assert outcome.data.startswith(document(windows).render().rstrip() + b"\r\n\r\n")


def test_a_fence_that_swallows_following_blocks_is_not_merged_into() -> None:
    outcome = merge(document(A), document(A + "```\nnever closed\n"), document(A, "## Plain\n\nText.\n"))

    assert isinstance(outcome, MergeResult | MergeFailure)
    if isinstance(outcome, MergeResult):
        again = parse(outcome.data)
        assert isinstance(again, Document)
        assert "## Plain" in [block.text.partition("\n")[0] for block in again.blocks]


def test_untrusted_removals_are_not_repeated() -> None:
    base = document(A, B, C)

    trusted = restrict_removals(base, document(C), {block_content(document(A).blocks[0])})

    assert merge_versions(trusted, base, document(C)).data == document(B, C).render()


def test_blocks_can_be_left_out_by_key() -> None:
    three = document(A, B, B)

    assert without_blocks(three, {numbered_keys(three)[2]}).render() == document(A, B).render()


TITLES = st.lists(st.sampled_from("ABCDEFGH"), unique=True, max_size=6)


@st.composite
def versions(draw: st.DrawFn) -> tuple[Document, Document, Document]:
    """A base and two versions with any edits, removals, moves and additions."""
    base = draw(TITLES)

    def version(mark: str) -> list[str]:
        kept = [t for t in base if draw(st.booleans())]
        texts = [entry(t, draw(st.sampled_from(["Learned.", f"{mark} edit."]))) for t in draw(st.permutations(kept))]
        both = [entry(t, f"{mark} version.") for t in "XY" if draw(st.booleans())]
        return texts + both + [entry(f"{mark}{n}") for n in range(draw(st.integers(0, 2)))]

    return document(*map(entry, base)), document(*version("mine")), document(*version("theirs"))


@given(versions())
@settings(max_examples=150, deadline=None)
def test_no_text_of_either_side_is_lost(three: tuple[Document, Document, Document]) -> None:
    base, visible, other = three

    outcome = merge_versions(*three)

    merged_document = parse(outcome.data)
    assert isinstance(merged_document, Document)
    texts = {block_content(b) for b in merged_document.blocks} | {text.rstrip() for text in outcome.overridden}
    known = {block_content(b) for b in base.blocks}
    for side in (visible, other):
        for block in side.blocks:
            assert block_content(block) in texts or block_content(block) in known


@given(versions(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_no_entry_is_added_twice(three: tuple[Document, Document, Document], visible_is_older: bool) -> None:
    older = {block_content(block) for block in three[1].blocks} if visible_is_older else set[str]()

    outcome = merge(*three, older_texts=older)

    assert isinstance(outcome, MergeResult)
    result = parse(outcome.data)
    assert isinstance(result, Document)
    keys = [block_key(block) for block in result.blocks]
    assert len(keys) == len(set(keys))


@given(versions())
@settings(max_examples=100, deadline=None)
def test_merging_the_result_again_changes_nothing(three: tuple[Document, Document, Document]) -> None:
    _, _, other = three
    first = merge_versions(*three)
    result = parse(first.data)
    assert isinstance(result, Document)

    assert merge_versions(other, result, other).data == first.data


@given(versions())
@settings(max_examples=100, deadline=None)
def test_without_other_changes_the_visible_bytes_stay(three: tuple[Document, Document, Document]) -> None:
    base, visible, _ = three

    assert merge_versions(base, visible, base).data == visible.render()


@given(versions())
@settings(max_examples=100, deadline=None)
def test_without_visible_changes_the_blocks_are_the_other_versions(three: tuple[Document, Document, Document]) -> None:
    base, _, other = three
    result = parse(merge_versions(base, base, other).data)
    assert isinstance(result, Document)

    assert sorted(block_content(b) for b in result.blocks) == sorted(block_content(b) for b in other.blocks)

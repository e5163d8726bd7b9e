"""Merging two branches by entry: nothing lost, nothing twice, whichever branch is given first."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.branches import MergedBranches, interleave, merge_branches
from echod.memory.document import parse
from echod.memory.identity import block_contents
from echod.memory.merge import MergeFailure
from echod.memory.model import Document
from tests.memory.strategies import well_formed_files

TITLE = "<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n"


def entry(name: str, body: str = "", *, day: int = 1, verified: str = "") -> str:
    lines = [f"### [{date(2026, 1, 1) + timedelta(day)}] Pattern: {name}", "- **layer**: inscribed"]
    if verified:
        lines.append(f"- **verified**: {verified}")
    return "\n".join([*lines, f"- {body or f'Always do {name} first.'}"]) + "\n\n"


def file_of(*entries: str) -> bytes:
    return (TITLE + "".join(entries)).rstrip("\n").encode() + b"\n"


def merged(base: bytes, one: bytes, other: bytes) -> MergedBranches:
    result = merge_branches(base, one, other)
    assert not isinstance(result, MergeFailure), result.reason
    return result


def clean(base: bytes, one: bytes, other: bytes) -> bytes:
    result = merged(base, one, other)
    assert result.conflicts == ()
    return result.with_markers(7)


def contents(data: bytes) -> list[str]:
    document = parse(data)
    assert isinstance(document, Document)
    return block_contents(document)


A, B, C, D = (entry(name, day=day) for day, name in enumerate(("alpha", "beta", "gamma", "delta")))


def test_additions_at_the_end_of_both_branches_are_both_kept_by_date() -> None:
    assert clean(file_of(A), file_of(A, C), file_of(A, B)) == file_of(A, B, C)


def test_two_new_files_without_a_common_version_are_united() -> None:
    assert clean(b"", file_of(A, B), file_of(B, C)) == file_of(A, B, C)


def test_an_entry_that_both_removed_is_gone_and_one_that_one_removed_too() -> None:
    assert clean(file_of(A, B, C, D), file_of(A, C, D), file_of(A, C)) == file_of(A, C)


def test_an_edit_beats_a_deletion() -> None:
    edited = entry("beta", "Do beta twice.", day=1)
    assert clean(file_of(A, B, C), file_of(A, C), file_of(A, edited, C)) == file_of(A, edited, C)


def test_edits_of_different_lines_of_one_entry_are_combined() -> None:
    base, bumped = entry("alpha", verified="2026-01-02"), entry("alpha", verified="2026-03-01")
    rewritten = entry("alpha", "Do it last.", verified="2026-01-02")
    both = entry("alpha", "Do it last.", verified="2026-03-01")
    assert clean(file_of(base), file_of(bumped), file_of(rewritten)) == file_of(both)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_line_that_one_side_added_behind_the_last_one_stays_a_line(newline: str) -> None:
    base = entry("alpha", "Do it.\n- Then test it.")
    versions = (base, base.replace("Do it.", "Do it now."), base.replace("test it.", "test it.\n- Then ship it."))
    both = entry("alpha", "Do it now.\n- Then test it.\n- Then ship it.")
    files = [file_of(version).replace(b"\n", newline.encode()) for version in (*versions, both)]
    assert clean(*files[:3]) == files[3]


def test_of_two_dates_of_verification_the_later_one_stays() -> None:
    base, early, late = (entry("alpha", verified=day) for day in ("2026-01-02", "2026-02-01", "2026-03-01"))
    assert clean(file_of(base), file_of(early), file_of(late)) == file_of(late)


def test_a_new_title_on_one_side_and_a_new_body_line_on_the_other_are_one_entry() -> None:
    body = "Do it.\n- More of it."
    base, titled = entry("alpha", body), entry("omega", body)
    assert clean(file_of(base, B), file_of(titled, B), file_of(base, B, C)) == file_of(titled, B, C)
    edited = base.replace("inscribed", "traced")
    both = titled.replace("inscribed", "traced")
    assert clean(file_of(base, B), file_of(titled, B), file_of(edited, B)) == file_of(both, B)


def test_two_new_titles_are_a_conflict_and_not_two_entries() -> None:
    result = merged(
        file_of(A), file_of(A.replace("Pattern: alpha", "Pattern: x")), file_of(A.replace(": alpha", ": y"))
    )
    assert len(result.conflicts) == 1


def test_rearranged_entries_stay_rearranged_and_additions_follow_their_entry() -> None:
    assert clean(file_of(A, B, C), file_of(C, B, A), file_of(A, D, B, C)) == file_of(C, B, A, D)


def test_a_rewrite_on_both_sides_is_marked_with_the_requested_length_and_only_there() -> None:
    one, other = entry("beta", "Do it now.", day=1), entry("beta", "Do it later.", day=1)
    result = merged(file_of(A, B), file_of(A, one, C), file_of(A, other))

    assert result.conflicts == (B.splitlines()[0],)
    text = result.with_markers(9).decode()
    assert text.count("<" * 9 + " ours\n") == text.count("=" * 9 + "\n") == text.count(">" * 9 + " theirs\n") == 1
    assert text.index("<" * 9) < text.index("Do it now.") < text.index("=" * 9) < text.index("Do it later.")
    assert text.count("gamma first") == text.count("alpha first") == 1
    assert contents(result.as_base()) == contents(file_of(A, B, C))


def test_a_conflict_keeps_ours_first_whichever_text_is_smaller() -> None:
    one, other = file_of(entry("beta", "Aaa.", day=1)), file_of(entry("beta", "Zzz.", day=1))
    for ours, theirs, first in ((one, other, "Aaa."), (other, one, "Zzz.")):
        text = merged(file_of(B), ours, theirs).with_markers(7).decode()
        assert text.index(first) < text.index("=======")


def test_two_versions_of_one_new_entry_conflict_and_leave_no_trace_in_a_virtual_base() -> None:
    result = merged(b"", file_of(A, entry("beta", "Do it now.")), file_of(A, entry("beta", "Do it later.")))
    assert len(result.conflicts) == 1
    assert contents(result.as_base()) == contents(file_of(A))


def test_the_newer_version_wins_where_no_conflict_may_stay_and_the_other_text_is_returned() -> None:
    old = entry("beta", "Do it at some later time.", verified="2026-01-01")
    new = entry("beta", "Do it now.", verified="2026-02-01")
    for one, other in ((old, new), (new, old)):
        data, lost = merged(b"", file_of(A, one), file_of(A, other)).with_newer()
        assert data == file_of(A, new)
        assert [text.rstrip() for text in lost] == [old.rstrip()]


@pytest.mark.parametrize("windows", [0, 1, 2])
def test_line_endings_follow_the_branch_that_changed_them(windows: int) -> None:
    versions = [file_of(A), file_of(A, B), file_of(A, C)]
    expected = file_of(A, B, C)
    for index in range(3 if windows == 0 else windows):
        versions[index if windows == 0 else index + 1] = versions[index if windows == 0 else index + 1].replace(
            b"\n", b"\r\n"
        )
    assert clean(*versions) == expected.replace(b"\n", b"\r\n")


def test_a_missing_newline_at_the_end_joins_no_entries() -> None:
    base, one, other = file_of(A).rstrip(), file_of(A, B).rstrip(), file_of(A, C).rstrip()
    assert clean(base, one, other) == file_of(A, B, C).rstrip()


def test_texts_before_the_entries_merge_by_line_or_conflict() -> None:
    base = file_of(A)
    one = base.replace(b"# Reviewer Memory", b"# Reviewer Memory\n\nRead this first.")
    assert clean(base, one, file_of(A, B)).startswith(b"<!-- echo-schema: v1 -->\n# Reviewer Memory\n\nRead this")
    other = base.replace(b"# Reviewer Memory", b"# The Memory")
    third = base.replace(b"# Reviewer Memory", b"# Our Memory")
    assert merged(base, other, third).conflicts


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"# M\n\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n", b"<!-- echo-schema: v9 -->\n"]
)
def test_a_version_that_cannot_be_read_is_not_merged(data: bytes) -> None:
    assert isinstance(merge_branches(file_of(A), file_of(A, B), data), MergeFailure)


def test_an_open_code_block_does_not_swallow_the_other_branch() -> None:
    open_block = entry("alpha", "See:\n\n```python\nx = 1")
    result = merge_branches(file_of(B), file_of(B, open_block), file_of(B, C))
    assert isinstance(result, MergeFailure) or set(contents(result.with_markers(7))) >= set(contents(file_of(B, C)))


def test_entries_that_both_branches_rolled_up_are_in_both_summaries_and_gone() -> None:
    one, other = entry("summary of alpha and beta", day=5), entry("summary of all three", day=6)
    assert clean(file_of(A, B, C, D), file_of(C, D, one), file_of(D, other)) == file_of(D, one, other)
    assert clean(file_of(A, B, D), file_of(one, D), file_of(one, D)) == file_of(one, D)


# Laws

NAMES = [f"name{number}" for number in range(12)]


@st.composite
def histories(draw: st.DrawFn, branches: int) -> tuple[bytes, list[bytes]]:
    """Draw a base and branches that each remove, edit and add entries of their own."""
    count = draw(st.integers(0, 6))
    entries = [entry(f"base{number}", day=number) for number in range(count)]
    owners = draw(st.lists(st.integers(0, branches), min_size=count, max_size=count))
    result = []
    for branch in range(branches):
        kept: list[str] = []
        for number, text in enumerate(entries):
            action = draw(st.sampled_from(["keep", "edit", "drop"])) if owners[number] == branch else "keep"
            if action != "drop":
                kept.append(entry(f"base{number}", f"Edited by {branch}.", day=number) if action == "edit" else text)
        for _ in range(draw(st.integers(0, 3))):
            name, day = draw(st.sampled_from(NAMES)), draw(st.integers(0, 3))
            shared = draw(st.booleans())
            new = entry(f"shared{NAMES.index(name)}") if shared else entry(f"{name}-{branch}", day=day)
            if new not in kept:
                kept.insert(draw(st.integers(0, len(kept))), new)
        result.append(file_of(*kept))
    return file_of(*entries), result


def expected_entries(base: bytes, branches: Sequence[bytes]) -> Counter[str]:
    """Return what must be in the merge of branches that edit different entries."""
    old = contents(base)
    sides = [contents(branch) for branch in branches]
    kept = {text for text in old if all(text in side for side in sides)}
    return Counter(kept | {text for side in sides for text in side if text not in old})


@given(histories(2))
@settings(max_examples=150, deadline=None)
def test_nothing_is_lost_or_doubled_and_the_sides_are_equals(history: tuple[bytes, list[bytes]]) -> None:
    base, (one, other) = history
    result = clean(base, one, other)

    assert Counter(contents(result)) == expected_entries(base, [one, other])
    assert clean(base, other, one) == result


@given(histories(2))
@settings(max_examples=80, deadline=None)
def test_merging_again_changes_nothing(history: tuple[bytes, list[bytes]]) -> None:
    base, (one, other) = history
    result = clean(base, one, other)

    assert clean(base, result, result) == result
    assert contents(clean(base, result, other)) == contents(result)
    assert contents(clean(base, one, result)) == contents(result)
    assert clean(one, result, one) == result


@st.composite
def separate_histories(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """Draw three branches whose additions have names of their own, since order between repeats is a choice."""
    base, branches = draw(histories(3))
    names = [{line for line in branch.decode().splitlines() if "shared" in line} for branch in branches]
    return base, [
        branch if not name else branch.replace(b"shared", b"own%d-" % i)
        for i, (branch, name) in enumerate(zip(branches, names, strict=True))
    ]


@given(separate_histories())
@settings(max_examples=150, deadline=None)
def test_three_branches_give_one_result_in_every_sequence(history: tuple[bytes, list[bytes]]) -> None:
    base, (one, other, third) = history
    result = clean(base, clean(base, one, other), third)

    assert clean(base, one, clean(base, other, third)) == result
    assert clean(base, clean(base, one, third), other) == result


@given(st.tuples(*[st.text(st.sampled_from("ab \n#-`*"), max_size=60).map(str.encode)] * 3))
@settings(max_examples=150, deadline=None)
def test_any_text_merges_to_the_same_bytes_from_both_sides(versions: tuple[bytes, bytes, bytes]) -> None:
    base, one, other = versions
    result, mirrored = merge_branches(base, one, other), merge_branches(base, other, one)

    if isinstance(result, MergeFailure) or isinstance(mirrored, MergeFailure):
        assert type(result) is type(mirrored)
    else:
        assert result.with_newer()[0] == mirrored.with_newer()[0]
        assert result.as_base() == mirrored.as_base()


@given(well_formed_files(), well_formed_files(), well_formed_files())
@settings(max_examples=60, deadline=None)
def test_every_entry_of_any_branch_is_in_the_merge_or_was_removed_on_purpose(base: str, one: str, other: str) -> None:
    texts = [text.encode() for text in (base, one, other)]
    result = merge_branches(*texts)
    if isinstance(result, MergeFailure):
        return
    visible = result.with_markers(7).decode().replace("\r\n", "\n")
    old = set(contents(texts[0]))
    for side in texts[1:]:
        for text in contents(side):
            if text not in old and text not in visible:  # both branches edited it, and the lines were combined
                assert all(line in visible for line in text.splitlines() if line.strip())


def test_interleaving_keeps_the_order_of_each_run() -> None:
    assert interleave([["e", "a"], ["c"]], key=lambda item: (item,)) == ["c", "e", "a"]
    assert interleave([["b", "a"], ["a", "b"]], key=lambda item: (item,)) == ["a", "b"]
    assert interleave([["e", "a"], ["a"]], key=lambda item: (item,)) == ["e", "a"]


@pytest.mark.fuzz
@pytest.mark.timeout(3_600)
@given(histories(3))
@settings(max_examples=10_000, deadline=None)
def test_ten_thousand_random_histories_lose_and_double_nothing(history: tuple[bytes, list[bytes]]) -> None:
    base, branches = history
    result = clean(base, clean(base, *branches[:2]), branches[2])
    assert Counter(contents(result)) == expected_entries(base, branches)
    assert Counter(contents(clean(base, branches[2], clean(base, branches[1], branches[0])))) == Counter(
        contents(result)
    )


# Both branches change any entry in any way


def random_branch(rng: random.Random, number: int, base: Sequence[str]) -> bytes:
    """Return a branch that keeps, edits, extends, renames, removes and adds entries, and may put them in any order."""
    kept = []
    for index, text in enumerate(base):
        match rng.choice(["keep", "keep", "edit", "append", "rename", "verify", "drop"]):
            case "edit":
                kept.append(text.replace("Always do", f"Branch {number} does"))
            case "append":
                kept.append(f"{text.rstrip()}\n- Branch {number} adds {index}.\n\n")
            case "rename":
                kept.append(text.replace("Pattern: ", f"Pattern: new title {number} of "))
            case "verify":
                kept.append(text.replace("2026-02-01", f"2026-0{rng.randint(3, 9)}-01"))
            case "keep":
                kept.append(text)
    for index in range(rng.randint(0, 3)):
        new = entry(rng.choice([f"shared{index}", f"own{number}-{index}"]), day=rng.randint(0, 9))
        kept.insert(rng.randint(0, len(kept)), new)
    if rng.random() < 0.1:
        rng.shuffle(kept)
    data = file_of(*kept)
    return data.replace(b"\n", b"\r\n") if rng.random() < 0.1 else data


def check_random_history(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(0, 7)
    texts = [entry(f"base{n}", f"Always do {n}.\n- Second of {n}.", day=n, verified="2026-02-01") for n in range(count)]
    base = file_of(*texts)
    one, other = random_branch(rng, 1, texts), random_branch(rng, 2, texts)
    result = check_merge(base, one, other, seed)
    # A criss-cross: git merges the bases first, and both sides have merged and gone on.
    first, second = (file_of(*blocks(result), entry(f"later{number}", day=9)) for number in (1, 2))
    check_merge(merged(base, one, other).as_base(), first, second, seed)
    assert clean(base, result, result) == result, seed


def check_merge(base: bytes, one: bytes, other: bytes, seed: int) -> bytes:
    """Check that nothing is lost or there twice whichever branch is first, and return the merge without conflicts."""
    result, mirrored = merged(base, one, other), merged(base, other, one)
    assert result.with_newer()[0] == mirrored.with_newer()[0], seed
    assert result.as_base() == mirrored.as_base(), seed
    assert len(result.conflicts) == len(mirrored.conflicts), seed
    assert b"<<<<" not in result.as_base(), seed
    shown, old = lines_of(result.with_markers(7)), lines_of(base)
    for side in (one, other):
        new = {line for line in lines_of(side) - old if "verified" not in line}
        assert new <= shown, (seed, new - shown)
    data, lost = result.with_newer()
    kept = lines_of(data) | {line for text in lost for line in lines_of(text.encode())}
    assert {line for line in shown - kept if not line.startswith(("<<<<", "====", ">>>>"))} == set(), seed
    learnings = Counter(line for line in data.decode().splitlines() if line.startswith("- Second of"))
    assert max(learnings.values(), default=1) == 1, (seed, learnings)
    return data


def lines_of(data: bytes) -> set[str]:
    return {line for line in data.decode().splitlines() if line.strip()}


def blocks(data: bytes) -> list[str]:
    document = parse(data)
    assert isinstance(document, Document)
    return [block.text.replace("\r\n", "\n").rstrip() + "\n\n" for block in document.blocks]


def test_any_changes_of_both_branches_lose_and_double_nothing() -> None:
    for seed in range(150):
        check_random_history(seed)


@pytest.mark.fuzz
@pytest.mark.timeout(3_600)
def test_ten_thousand_random_changes_of_both_branches_lose_and_double_nothing() -> None:
    for seed in range(10_000, 20_000):
        check_random_history(seed)

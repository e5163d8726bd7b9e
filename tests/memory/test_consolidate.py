"""Findings are added, skipped, duplicates or quarantined; never lost, never added twice, nothing else is changed."""

from __future__ import annotations

import dataclasses
import random
import re
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.consolidation.deduplicate import FindingsFile
from echod.memory.consolidation.plan import ConsolidationPlan, plan_consolidation
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Layer, Unreadable, UnreadableKind
from tests.support import corpus

TODAY = date(2026, 3, 2)
FILE_DATE = date(2026, 3, 1)

MEMORY = b"""# Reviewer Echoes

*No echoes yet. They will appear here.*

### [2026-02-01] Pattern: Close the pool
- **layer**: inscribed
- **source**: rune:review PR #7
- **confidence**: 0.6
- **evidence**: `src/db.py:3`
- **verified**: 2026-02-01
- **supersedes**: none
- Close it in teardown.

## A person's own section

Hands off.
"""
CLOSE = (
    "### [2026-02-20] Pattern: Close the pool\n- **layer**: traced\n- **confidence**: 0.9\n"
    "- **evidence**: `src/db.py:3`\n- **verified**: 2026-02-20\n- Close it in teardown.\n"
)


def file(text: str | bytes, name: str = "scout", day: date = FILE_DATE) -> FindingsFile:
    return FindingsFile(f"{name}-findings.md", name, text if isinstance(text, bytes) else text.encode(), day)


def plan_files(
    memory: bytes | None, *files: FindingsFile, known_keys: frozenset[str] = frozenset(), role: str = "reviewer"
) -> ConsolidationPlan:
    result = plan_consolidation(role, memory, files, TODAY, known_keys=known_keys)
    assert isinstance(result, ConsolidationPlan)
    return result


def document(data: bytes | None) -> Document:
    result = parse(data or b"")
    assert isinstance(result, Document)
    return result


def titles(data: bytes | None) -> list[str]:
    """Type word and title of every entry in any form."""
    entries = [block.entry for block in document(data).blocks if block.entry]
    return [f"{entry.kind}: {entry.title}" if entry.kind else entry.title for entry in entries]


def test_new_findings_are_appended_and_nothing_else_changes() -> None:
    plan = plan_files(MEMORY, file("## One\nFirst.\n\n## Two\nSecond.\n"))

    assert plan.memory is not None
    assert plan.memory.startswith(MEMORY)
    assert titles(plan.memory) == ["Pattern: Close the pool", "One", "Two"]
    assert [added.title for added in plan.added] == ["One", "Two"]
    assert plan.summary == "2 added"


def test_added_entries_carry_the_ids_they_have_in_the_file() -> None:
    plan = plan_files(MEMORY, file("## One\nFirst.\n\n## Two\nSecond.\n"))

    assert [added.id for added in plan.added] == list(entry_ids("reviewer", document(plan.memory)))[2:]


def test_a_role_without_a_memory_file_gets_one() -> None:
    plan = plan_files(None, file("## One\nFirst.\n"), role="planner")

    assert plan.memory is not None
    assert plan.memory.startswith(b"<!-- echo-schema: v1 -->\n# Planner Memory\n\n### [2026-03-01] One\n")


def test_no_memory_file_is_created_without_findings() -> None:
    plan = plan_files(None, file("Here are my findings:\n"))

    assert plan.memory is None
    assert [used.name for used in plan.consumed] == ["scout-findings.md"]
    assert plan.summary == "nothing new"


def test_an_existing_memory_file_gets_no_header() -> None:
    plan = plan_files(b"", file("## One\nFirst.\n"))

    assert plan.memory is not None
    assert plan.memory.startswith(b"### [2026-03-01] One\n")


def test_a_duplicate_refreshes_date_and_confidence_but_not_the_text() -> None:
    plan = plan_files(MEMORY, file(CLOSE))

    assert plan.memory == MEMORY.replace(b"**confidence**: 0.6", b"**confidence**: 0.9").replace(
        b"**verified**: 2026-02-01", b"**verified**: 2026-02-20"
    )
    assert [one.id for one in plan.duplicates] == [entry_ids("reviewer", document(MEMORY))[0]]
    assert plan.summary == "1 already known"


def test_a_duplicate_never_makes_an_entry_older_or_less_certain() -> None:
    older = CLOSE.replace("2026-02-20", "2026-01-01").replace("0.9", "0.3")

    assert plan_files(MEMORY, file(older)).memory is None


def test_a_finding_without_a_confidence_raises_none() -> None:
    memory = MEMORY.replace(b"- **confidence**: 0.6\n", b"").replace(b"2026-02-01\n-", b"2026-03-01\n-")
    plan = plan_files(memory, file(CLOSE.replace("- **confidence**: 0.9\n", "")))

    assert len(plan.duplicates) == 1
    assert plan.memory is None


@pytest.mark.parametrize("layer", [b"etched", b"notes", b"sacred"])
def test_a_protected_entry_is_not_even_refreshed(layer: bytes) -> None:
    plan = plan_files(MEMORY.replace(b"inscribed", layer), file(CLOSE))

    assert plan.memory is None
    assert len(plan.duplicates) == 1


def test_a_date_in_the_future_does_not_keep_an_entry_from_being_refreshed() -> None:
    plan = plan_files(MEMORY.replace(b"**verified**: 2026-02-01", b"**verified**: 2031-01-01"), file(CLOSE))

    assert plan.memory is not None
    assert b"**verified**: 2026-02-20" in plan.memory


def test_a_file_from_the_future_counts_as_todays() -> None:
    plan = plan_files(None, file("## One\nFirst.\n", day=date(2031, 1, 1)))

    assert plan.memory is not None
    assert b"[2026-03-02] One" in plan.memory


def test_duplicates_within_the_batch_become_one_entry() -> None:
    again = CLOSE.replace("2026-02-20\n", "2026-02-25\n").replace("0.9", "0.7")
    plan = plan_files(None, file(CLOSE, "a"), file(again, "b"))

    assert titles(plan.memory) == ["Pattern: Close the pool"]
    assert plan.memory is not None
    assert b"**verified**: 2026-02-25" in plan.memory
    assert b"**confidence**: 0.9" in plan.memory
    assert (len(plan.added), len(plan.duplicates)) == (1, 1)
    assert plan.duplicates[0].id == plan.added[0].id
    assert plan.summary == "1 added, 1 already known"


def test_the_same_learning_in_another_form_is_a_duplicate() -> None:
    layered = b"## Inscribed \xe2\x80\x94 Pattern: Close the pool (2026-02-01)\n\n**Evidence**: `src/db.py:3`\n\nClose it\nin teardown.\n"
    plan = plan_files(layered, file(CLOSE))

    assert plan.added == ()
    assert len(plan.duplicates) == 1


@pytest.mark.parametrize("layer", ["inscribed", "traced", "observations", "etched", "notes", "sacred"])
def test_a_paraphrase_is_a_duplicate_of_an_entry_in_any_layer(layer: str) -> None:
    memory = MEMORY.replace(b"inscribed", layer.encode())
    finding = CLOSE.replace("traced", "observations") if layer == "observations" else CLOSE
    again = finding.replace("Close it in teardown.", "Close it in the teardown, too.").replace("db.py:3", "db.py:88")

    plan = plan_files(memory, file(again))

    assert plan.added == ()
    assert [one.id for one in plan.duplicates] == [entry_ids("reviewer", document(memory))[0]]
    refreshed = memory.replace(b"**confidence**: 0.6", b"**confidence**: 0.9").replace(
        b"**verified**: 2026-02-01", b"**verified**: 2026-02-20"
    )
    assert plan.memory == (None if layer in {"etched", "notes", "sacred"} else refreshed)


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("in teardown", "in setup"),
        ("Close it in", "Never close it in"),
        ("Close it in teardown", "Open it in teardown"),
        ("Close it in teardown", "Close it in teardown after 3 s"),
        ("src/db.py:3", "src/pool.py:3"),
        ("Close the pool", "Close the cache"),
    ],
    ids=["another word", "a negation", "an opposite", "a number", "another file", "another title"],
)
def test_almost_equal_findings_are_new(said: str, instead: str) -> None:
    plan = plan_files(MEMORY, file(CLOSE.replace(said, instead)))

    assert len(plan.added) == 1


def test_observations_of_different_tasks_are_two_at_any_similarity() -> None:
    task = "## Observations \u2014 Task: Review the retry logic of the upload worker {} (2026-02-20)\n- Done: reviewed it.\n"
    plan = plan_files(None, file(task.format("again"), "a"), file(task.format("once"), "b"))

    assert len(plan.added) == 2


def test_paraphrases_in_a_batch_become_one_entry_with_the_first_text() -> None:
    other = CLOSE.replace("Close it in teardown", "Close it in the teardown")
    plan = plan_files(None, file(other, "b"), file(CLOSE, "a"))

    assert (len(plan.added), len(plan.duplicates)) == (1, 1)
    assert plan.memory is not None
    assert b"- Close it in teardown.\n" in plan.memory


def test_findings_in_the_ledger_are_skipped() -> None:
    first = plan_files(MEMORY, file("## One\nFirst.\n\n## Two\nSecond.\n"))
    stale = plan_files(
        MEMORY, file("## One\nFirst.\n\n## Three\nThird.\n"), known_keys=frozenset(first.consumed[0].keys)
    )

    assert [added.title for added in stale.added] == ["Three"]
    assert stale.skipped_keys == (first.added[0].key,)
    assert stale.summary == "1 added, 1 already known"


def test_a_claim_of_a_protected_layer_is_stored_below_it_and_reported() -> None:
    plan = plan_files(None, file("## One\n- layer: etched\n- First.\n"))

    assert plan.added[0].claimed is Layer.ETCHED
    entry = document(plan.memory).blocks[0].entry
    assert entry is not None
    assert entry.layer is Layer.INSCRIBED


def test_an_unreadable_findings_file_is_quarantined_and_the_others_are_used() -> None:
    broken = file(b"## Bad\n\xff password: hunter2hunter2\n", "broken")
    plan = plan_files(MEMORY, broken, file("## One\nFirst.\n"))

    assert [one.name for one in plan.quarantined] == ["broken-findings.md"]
    assert "UTF-8" in plan.quarantined[0].reason
    assert b"\xff" in plan.quarantined[0].redacted_data
    assert b"hunter2" not in plan.quarantined[0].redacted_data
    assert [added.title for added in plan.added] == ["One"]
    assert plan.summary == "1 added, 1 file quarantined"


def test_an_unreadable_memory_file_stops_everything() -> None:
    result = plan_consolidation("reviewer", MEMORY + b"\xff", [file("## One\nFirst.\n")], TODAY)

    assert isinstance(result, Unreadable)
    assert result.kind is UnreadableKind.INVALID_UTF8


def test_a_memory_file_that_would_exceed_the_size_limit_is_unchanged() -> None:
    memory = b"# M\n" + b"x" * (10 * 1024 * 1024 - 20)
    result = plan_consolidation("reviewer", memory, [file("## One\n" + "First. " * 20)], TODAY)

    assert isinstance(result, Unreadable)
    assert result.kind is UnreadableKind.OVER_SIZE


def test_findings_that_the_file_would_swallow_are_quarantined() -> None:
    memory = b"# M\n\n<!-- never closed\n"
    plan = plan_files(memory, file("## One\nFirst.\n", "a"), file("## Two\nuse `-->` there\n", "b"))

    assert [added.title for added in plan.added] == ["One"]
    assert [one.name for one in plan.quarantined] == ["b-findings.md"]


SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC3"


def test_no_secret_reaches_the_memory_the_kept_text_or_an_id() -> None:
    text = f"## Token {SECRET} leaks\n- evidence: `ci.log` {SECRET}\n- tags: {SECRET}\n- It was {SECRET} there.\n"
    plan = plan_files(None, file(text, f"agent-{SECRET}"))

    assert plan.memory is not None
    assert SECRET.encode() not in plan.memory
    assert SECRET.encode() not in plan.consumed[0].redacted_data
    assert SECRET not in plan.added[0].title
    assert b"[REDACTED:" in plan.memory


def test_addresses_are_removed_from_evidence_and_from_the_archived_text() -> None:
    plan = plan_files(None, file("## One\n- evidence: `a.py` says ann@example.org\n- First.\n"))

    assert plan.memory is not None
    assert b"ann@example.org" not in plan.memory + plan.consumed[0].redacted_data
    assert b"`a.py` says [REDACTED:email]" in plan.memory


@pytest.mark.parametrize("evidence", ["ann@example.org.", "<ann@example.org>", "ann@example.org.2 and ann@example.org"])
def test_addresses_are_removed_in_any_context(evidence: str) -> None:
    plan = plan_files(None, file(f"## One\n- evidence: {evidence}\n- First.\n"))

    assert plan.memory is not None
    assert b"ann@" not in plan.memory + plan.consumed[0].redacted_data


def test_addresses_stay_where_the_learning_is_about_mail() -> None:
    plan = plan_files(None, file("## SMTP sender\n- evidence: ann@example.org bounced\n- Set the mail envelope.\n"))

    assert plan.memory is not None
    assert b"ann@example.org" in plan.memory


def test_a_redacted_finding_is_a_duplicate_when_it_is_reported_again() -> None:
    text = f"## One\n- Use the token {SECRET} never.\n"
    first = plan_files(None, file(text))
    again = plan_files(first.memory, file(text, "other"))

    assert again.added == ()
    assert len(again.duplicates) == 1


def test_new_entries_take_the_files_form_and_line_endings() -> None:
    layered = b"## Inscribed \xe2\x80\x94 Old (2026-02-01)\r\n\r\n**Source**: `x`\r\n\r\ntext\r\n"
    plan = plan_files(layered, file("## One\nFirst.\n"))

    assert plan.memory is not None
    assert plan.memory.startswith(layered)
    assert plan.memory[len(layered) :].startswith(
        "\r\n## Inscribed — One (2026-03-01)\r\n\r\n**Source**: `scout`\r\n".encode()
    )
    assert plan.memory.count(b"\n") == plan.memory.count(b"\r\n")


STATED = [
    CLOSE,
    CLOSE.replace("2026-02-20", "2026-02-27"),
    CLOSE.replace("0.9", "0.2"),
    CLOSE.replace("teardown", "setup"),
    "## One\nFirst.\n",
    "## One\nFirst.\n\n---\n",
    "## One\nFirst, and more.\n",
    "### Decision: Two (2026-02-11)\n- layer: etched\n- tags: a\n- Second.\n",
    "## Three\n```sh\n# make\nmake\n",
    "## Four\n<!-- open\n",
    "- bare learning\n- another\n",
    "# Findings\n\nText of its own.\n\n## Five\nFifth.\n",
    "Here are my findings:\n",
    "",
    CLOSE.replace("Close it in teardown", "Close it in the teardown"),
    CLOSE.replace("Close it in teardown", "Never close it in teardown"),
    "## One\nFirst of all.\n",
]
REPLACING = [
    "### [2026-02-22] Pattern: Close it late\n- **supersedes**: Close the pool\n- After the last test.\n",
    "### [2026-02-27] Pattern: Close the pool\n- **supersedes**: Pattern: Close the pool\n- **layer**: notes\n- Never.\n",
    "### [2026-01-01] Pattern: Old news\n- **supersedes**: Close the pool\n- It was open.\n",
    "## Uno\n- supersedes: One\n- Primero.\n",
    "## Neither\n- supersedes: what nobody knows\n- Nor this.\n",
]


def files_of(learnings: list[str]) -> st.SearchStrategy[list[FindingsFile]]:
    texts = st.lists(st.lists(st.sampled_from(learnings), min_size=1, max_size=3).map("\n".join), max_size=4)
    return texts.map(lambda texts: [file(text, f"agent{number}") for number, text in enumerate(texts)])


FILES = files_of(STATED)
REPLACING_FILES = files_of([*STATED, *REPLACING, *REPLACING])
MEMORIES = st.sampled_from(
    [
        None,
        b"",
        b"# M",
        MEMORY,
        MEMORY.replace(b"\n", b"\r\n"),
        MEMORY.replace(b"inscribed", b"etched"),
        MEMORY + b"\n```\nnever closed\n",
        b"## Inscribed \xe2\x80\x94 One (2026-02-01)\n\nFirst.\n",
        b"## One\n- **layer**: traced\n- First.\n",
    ]
)


@settings(max_examples=60, deadline=None)
@given(MEMORIES, REPLACING_FILES)
def test_every_finding_is_accounted_for(memory: bytes | None, files: list[FindingsFile]) -> None:
    plan = plan_files(memory, *files)

    keys = sorted(key for used in plan.consumed for key in used.keys)
    never_stood = [one.finding_key for one in plan.superseded if one.finding_key]
    reported = [
        *(one.key for one in plan.added),
        *(one.key for one in plan.duplicates),
        *plan.skipped_keys,
        *never_stood,
    ]
    assert keys == sorted(reported)
    assert sorted(one.name for one in files) == sorted(
        [*(one.name for one in plan.consumed), *(one.name for one in plan.quarantined)]
    )


@settings(max_examples=60, deadline=None)
@given(MEMORIES, REPLACING_FILES)
def test_doing_it_again_adds_nothing_and_writes_nothing(memory: bytes | None, files: list[FindingsFile]) -> None:
    first = plan_files(memory, *files)
    after = memory if first.memory is None else first.memory
    again = plan_files(after, *files)

    assert again.added == ()
    assert again.memory is None
    ledger = frozenset(key for used in first.consumed for key in used.keys)
    assert plan_files(memory, *files, known_keys=ledger).memory is None


@settings(max_examples=60, deadline=None)
@given(MEMORIES, REPLACING_FILES)
def test_every_old_block_stays_except_for_a_refreshed_date_and_confidence_or_is_in_the_archive_verbatim(
    memory: bytes | None, files: list[FindingsFile]
) -> None:
    plan = plan_files(memory, *files)
    if plan.memory is None or memory is None:
        return
    before, after = document(memory), document(plan.memory)
    removed = {one.archived.id: one.archived.text for one in plan.superseded if one.finding_key is None}
    named = dict(zip(entry_ids("reviewer", before), before.blocks, strict=True))

    assert after.preamble.startswith(before.preamble)
    assert removed == {identity: named[identity].text for identity in removed}
    assert len(after.blocks) == len(before.blocks) + len(plan.added) - len(removed)
    stayed = [block for identity, block in named.items() if identity not in removed]
    for old, new in zip(stayed, after.blocks, strict=False):
        if old.entry is None or old.entry.layer not in {Layer.INSCRIBED, Layer.TRACED}:
            assert new.text.startswith(old.text)
        assert _without_refreshed(new.text) == _without_refreshed(old.text)


def _without_refreshed(text: str) -> list[str]:
    lines = (line.rstrip() for line in text.splitlines())
    return [line for line in lines if line and not re.search(r"\*\*(verified|confidence)\*\*", line, re.IGNORECASE)]


@settings(max_examples=40, deadline=None)
@given(MEMORIES, REPLACING_FILES, st.randoms(use_true_random=False))
def test_the_order_of_files_makes_no_difference(
    memory: bytes | None, files: list[FindingsFile], chance: random.Random
) -> None:
    shuffled = list(files)
    chance.shuffle(shuffled)

    assert plan_files(memory, *files) == plan_files(memory, *shuffled)


@settings(max_examples=40, deadline=None)
@given(MEMORIES, FILES)
def test_one_after_the_other_gives_the_same_result_as_at_once(memory: bytes | None, files: list[FindingsFile]) -> None:
    together = plan_files(memory, *files).memory
    one_by_one = memory
    for one in files:
        one_by_one = plan_files(one_by_one, one).memory or one_by_one

    assert titles(together if together is not None else memory) == titles(one_by_one)


@settings(max_examples=40, deadline=None)
@given(MEMORIES, FILES, st.integers(1, 3))
def test_in_parts_the_result_is_the_same_as_at_once(memory: bytes | None, files: list[FindingsFile], most: int) -> None:
    together = plan_files(memory, *files)
    by_parts, waiting = memory, list(files)
    taken_up: list[str] = []
    while waiting:
        plan = plan_consolidation(
            "reviewer", by_parts, waiting, TODAY, known_keys=frozenset(taken_up), max_changes=most
        )
        assert isinstance(plan, ConsolidationPlan)
        partly_consumed = {one.name for one in plan.partly_consumed}
        removed = {one.name for one in plan.consumed} | {one.name for one in plan.quarantined}
        keys = [key for one in plan.partly_consumed for key in one.keys] + [
            key for one in plan.consumed for key in one.keys
        ]
        assert len(plan.added) <= most
        assert removed or plan.memory is not None
        assert not partly_consumed & removed
        taken_up += keys
        waiting = [
            dataclasses.replace(one, partly_consumed=one.partly_consumed or one.name in partly_consumed)
            for one in waiting
            if one.name not in removed
        ]
        by_parts = by_parts if plan.memory is None else plan.memory

    assert titles(by_parts) == titles(together.memory if together.memory is not None else memory)
    assert set(taken_up) == {key for one in together.consumed for key in one.keys}


def test_the_part_of_a_file_that_was_consumed_before_is_not_reported() -> None:
    many = file("".join(f"## Lesson {number}\nUnit {number} leaks.\n\n" for number in range(5)))
    first = plan_consolidation("reviewer", MEMORY, [many], TODAY, max_changes=2)
    assert isinstance(first, ConsolidationPlan)
    (partly_consumed,) = first.partly_consumed
    rest = dataclasses.replace(many, partly_consumed=True)

    last = plan_consolidation(
        "reviewer", first.memory, [rest], TODAY, known_keys=frozenset(partly_consumed.keys), max_changes=10
    )

    assert isinstance(last, ConsolidationPlan)
    assert (first.summary, last.summary) == ("2 added, the rest of scout-findings.md follows", "3 added")
    assert (len(first.consumed), len(last.partly_consumed), len(last.skipped_keys)) == (0, 0, 0)
    (consumed,) = last.consumed
    assert not set(consumed.keys) & set(partly_consumed.keys)
    assert consumed.redacted_data == many.data


@pytest.mark.corpus
def test_real_memory_files_get_exactly_the_new_entries() -> None:
    for path in sorted(corpus().glob("*echoes/**/MEMORY.md")):
        data = path.read_bytes()
        plan = plan_files(data, file("## One\nFirst.\n\n## Two\nSecond.\n"), role=path.parent.name)

        assert plan.memory is not None
        assert plan.memory.startswith(data)
        assert len(document(plan.memory).blocks) == len(document(data).blocks) + 2
        assert plan_files(plan.memory, file("## One\nFirst.\n\n## Two\nSecond.\n")).memory is None


@pytest.mark.corpus
def test_real_entries_handed_in_as_findings_come_out_as_themselves() -> None:
    for path in sorted(corpus("fixture-echoes", "final").glob("*/MEMORY.md")):
        data = path.read_bytes()

        assert titles(plan_files(None, file(data)).memory) == titles(data)


def test_the_plan_is_a_value() -> None:
    plan = plan_files(MEMORY, file(CLOSE))

    assert plan == plan_files(MEMORY, file(CLOSE))
    with pytest.raises(AttributeError):
        plan.memory = None  # type: ignore[misc]

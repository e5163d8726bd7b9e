"""A finding that names the title it replaces supersedes that entry, or the user decides; nothing else is removed."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.archive import read_archive, render_archived_entries
from echod.memory.consolidation.deduplicate import FindingsFile, SupersedeProblem
from echod.memory.consolidation.plan import ConsolidationPlan, plan_consolidation
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from echod.memory.policy_model import Rule

TODAY = date(2026, 3, 10)
OLD = "Close the pool in teardown"
NEW = "Let the pool close itself"


def entry(
    title: str, day: str = "2026-02-01", layer: str = "inscribed", verified: str = "", supersedes: str = "none"
) -> str:
    return (
        f"### [{day}] Pattern: {title}\n- **layer**: {layer}\n- **source**: rune:review {len(title)}\n"
        f"- **verified**: {verified or day}\n- **supersedes**: {supersedes}\n- What is known about {title.lower()}.\n"
    )


def replacing(target: str = OLD, title: str = NEW, day: str = "2026-03-01") -> str:
    return entry(title, day, supersedes=target)


def plan(memory: str, *findings: str, pinned: frozenset[str] = frozenset()) -> ConsolidationPlan:
    files = [FindingsFile(f"a{n}-findings.md", f"a{n}", text.encode(), TODAY) for n, text in enumerate(findings)]
    result = plan_consolidation("reviewer", memory.encode(), files, TODAY, pinned_ids=pinned)
    assert isinstance(result, ConsolidationPlan)
    return result


def titles(data: bytes | None) -> list[str]:
    document = parse(data or b"")
    assert isinstance(document, Document)
    return [block.entry.title for block in document.blocks if block.entry]


def ids(memory: str) -> list[str | None]:
    document = parse(memory.encode())
    assert isinstance(document, Document)
    return list(entry_ids("reviewer", document))


@pytest.mark.parametrize(
    "target",
    [
        OLD,
        f"Pattern: {OLD}",
        f"[2026-02-01] Pattern: {OLD}",
        OLD.upper(),
        f"`{OLD}`",
        f'"{OLD}."',
        f"{OLD} (2026-02-01)",
    ],
)
def test_the_one_older_entry_of_that_title_is_archived_verbatim(target: str) -> None:
    memory = entry("Something else") + "\n" + entry(OLD) + "\n" + "## A section\n\nMine.\n\n"

    done = plan(memory, replacing(target))

    (superseded_entry,) = done.superseded
    assert titles(done.memory) == ["Something else", NEW]
    assert b"## A section\n\nMine.\n" in (done.memory or b"")
    assert (superseded_entry.title, superseded_entry.archived.id, superseded_entry.archived.rule) == (
        OLD,
        ids(memory)[1],
        Rule.SUPERSEDED,
    )
    assert superseded_entry.replaced_by == done.added[0].id
    assert superseded_entry.archived.text == entry(OLD) + "\n"
    assert (
        read_archive(render_archived_entries([superseded_entry.archived], 7)).entries[0].text
        == superseded_entry.archived.text
    )
    assert done.summary == "1 added, 1 superseded"
    assert done.pending_supersedes == ()


def test_it_is_not_a_duplicate_of_the_entry_it_replaces_at_any_similarity() -> None:
    again = entry(OLD, "2026-03-01", supersedes=OLD).replace("What is known", "What is known by now")

    done = plan(entry(OLD), again)

    assert (len(done.added), len(done.superseded), len(done.duplicates)) == (1, 1, 0)
    assert titles(done.memory) == [OLD]
    assert b"by now" in (done.memory or b"")


def test_an_exact_repeat_of_the_entry_it_replaces_is_a_duplicate_and_replaces_nothing() -> None:
    done = plan(entry(OLD), entry(OLD, supersedes=OLD))

    assert (len(done.added), len(done.superseded), len(done.duplicates), len(done.pending_supersedes)) == (0, 0, 1, 0)
    assert done.memory is None


@pytest.mark.parametrize(
    ("memory", "doubt"),
    [
        (entry("Something else"), SupersedeProblem.NONE),
        (entry(OLD) + entry(OLD, "2026-02-03"), SupersedeProblem.SEVERAL),
        (entry(OLD, "2026-03-05"), SupersedeProblem.NEWER),
        (entry(OLD, "2026-01-01", verified="2026-03-05"), SupersedeProblem.NEWER),
        (entry(OLD, layer="etched"), SupersedeProblem.PROTECTED),
        (entry(OLD, layer="notes"), SupersedeProblem.PROTECTED),
        (entry(OLD, layer="sacred"), SupersedeProblem.PROTECTED),
        (
            entry("Above") + "\n```sh\nnever closed\n\n" + entry(OLD) + "\n## Mine\n\nText.\n",
            SupersedeProblem.UNCLOSED_BLOCK,
        ),
    ],
    ids=["none", "several", "newer", "verified later", "etched", "a note", "unknown layer", "ends a code block"],
)
def test_in_doubt_the_user_decides(memory: str, doubt: SupersedeProblem) -> None:
    done = plan(memory, replacing())

    (asked,) = done.pending_supersedes
    assert (asked.problem, asked.target, asked.id) == (doubt, OLD.lower(), done.added[0].id)
    assert done.superseded == ()
    assert (done.memory or b"").startswith(memory.encode())
    assert done.summary == "1 added, 1 for you to review"


def test_a_pinned_entry_stays_and_the_user_decides() -> None:
    done = plan(entry(OLD), replacing(), pinned=frozenset(filter(None, ids(entry(OLD)))))

    assert [asked.problem for asked in done.pending_supersedes] == [SupersedeProblem.PINNED]
    assert titles(done.memory) == [OLD, NEW]


def test_a_newer_entry_of_the_title_does_not_protect_the_older_one() -> None:
    done = plan(entry(OLD) + entry(OLD, "2026-03-05"), replacing())

    assert [superseded_entry.archived.text for superseded_entry in done.superseded] == [entry(OLD)]


def test_an_entry_without_a_day_or_of_a_future_day_counts_as_older() -> None:
    undated = f"## {OLD}\n- **layer**: traced\n- What is known.\n"

    assert len(plan(undated, replacing()).superseded) == 1
    assert len(plan(entry(OLD, "2031-01-01"), replacing()).superseded) == 1


def test_a_duplicate_that_replaces_an_entry_does_so_without_review_of_removed_ones() -> None:
    memory_text = entry(NEW) + "\n"

    done = plan(memory_text + entry(OLD), replacing(day="2026-02-01"))
    assert (len(done.duplicates), len(done.superseded)) == (1, 1)
    assert done.superseded[0].replaced_by == ids(memory_text)[0]

    again = plan(memory_text, replacing(day="2026-02-01"))
    assert (len(again.duplicates), again.pending_supersedes, again.superseded) == (1, (), ())


def test_a_second_finding_that_replaces_a_removed_entry_needs_no_review() -> None:
    done = plan(entry(OLD), replacing(), replacing(title="Pools close late"))

    assert (len(done.added), len(done.superseded), done.pending_supersedes) == (2, 1, ())
    assert plan((done.memory or b"").decode(), replacing(title="Pools are closed by hand")).pending_supersedes == ()


def test_a_batch_may_replace_its_own_findings_in_any_order() -> None:
    first, second = entry("One", "2026-02-01"), replacing("One", "Two", "2026-02-02")

    for files in ((first, second), (second, first)):
        done = plan("# Memory\n", *files)
        (superseded_entry,) = done.superseded
        assert titles(done.memory) == ["Two"]
        assert [one.title for one in done.added] == ["Two"]
        assert superseded_entry.archived.text.endswith("- What is known about one.\n")
        assert superseded_entry.finding_key is not None


def test_of_findings_that_replace_one_another_one_stays() -> None:
    circle = [replacing("One", "Two"), replacing("Two", "Three"), replacing("Three", "One")]

    done = plan("# Memory\n", *circle)

    assert len(titles(done.memory)) == 1
    assert len(done.superseded) == 2
    assert len(done.pending_supersedes) == 1


def test_only_the_last_of_a_chain_of_replacements_stays() -> None:
    done = plan(entry("One"), replacing("One", "Two", "2026-02-05"), replacing("Two", "Three", "2026-02-06"))

    assert titles(done.memory) == ["Three"]
    assert [superseded_entry.title for superseded_entry in done.superseded] == ["One", "Two"]


def test_repeats_of_superseded_entries_get_new_ids_that_are_reported() -> None:
    twice = entry(OLD) + "\n" + entry(OLD).replace("What is known", "What else is known")
    later = twice.replace("- **verified**: 2026-02-01", "- **verified**: 2026-03-08")
    memory = entry(OLD) + "\n" + later.partition("\n\n")[2]

    done = plan(memory, replacing())

    assert dict(done.id_changes) == {ids(memory)[1]: ids(memory)[0]}
    assert len(done.superseded) == 1


NAMES = st.sampled_from(["One", "Two", "Three", "Four"])
DAYS = st.integers(0, 6).map(lambda days: str(date(2026, 2, 1) + timedelta(days=days)))
LAYERS = st.sampled_from(["etched", "notes", "inscribed", "traced", "sacred"])
ENTRIES = st.lists(st.builds(entry, NAMES, DAYS, LAYERS), max_size=5).map("\n".join)
FINDINGS = st.lists(st.builds(replacing, NAMES, NAMES, DAYS), max_size=5)


@settings(max_examples=150, deadline=None)
@given(ENTRIES, FINDINGS, st.sampled_from(["\n", "\n## Mine\n\nText.\n\n"]))
def test_every_entry_is_in_the_file_or_verbatim_in_the_archive_and_protected_ones_in_the_file(
    entries: str, findings: list[str], end: str
) -> None:
    memory = f"# Memory\n\n{entries}{end}"

    done = plan(memory, *findings)

    after = (done.memory if done.memory is not None else memory.encode()).decode()
    archived = {superseded_entry.archived.id: superseded_entry.archived.text for superseded_entry in done.superseded}
    before = parse(memory.encode())
    assert isinstance(before, Document)
    for identity, block in zip(ids(memory), before.blocks, strict=True):
        if identity in archived:
            assert archived[identity] == block.text
            assert "inscribed" in block.text or "traced" in block.text
        elif "inscribed" not in block.text and "traced" not in block.text:
            assert block.text.rstrip("\n") in after
        else:
            assert block.entry is not None
            assert block.text[block.entry.body.start : block.entry.body.end] in after
    assert len(done.superseded) <= len(findings)


@settings(max_examples=100, deadline=None)
@given(ENTRIES, FINDINGS)
def test_a_second_run_leaves_the_same(entries: str, findings: list[str]) -> None:
    memory = f"# Memory\n\n{entries}\n"
    first = plan(memory, *findings)
    after = memory if first.memory is None else first.memory.decode()
    consumed = frozenset(key for file in first.consumed for key in file.keys)
    files = [FindingsFile(f"a{n}-findings.md", f"a{n}", text.encode(), TODAY) for n, text in enumerate(findings)]

    again = plan_consolidation("reviewer", after.encode(), files, TODAY, known_keys=consumed)

    assert isinstance(again, ConsolidationPlan)
    assert (again.memory, again.superseded, again.pending_supersedes) == (None, (), ())

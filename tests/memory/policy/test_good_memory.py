"""Pruning leaves a good memory: learnings outlive noise, the first run on a large file works like any other."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from echod.memory.archive import read_archive, render_archived_entries
from echod.memory.conservation import FileChange, find_violations
from echod.memory.document import parse
from echod.memory.model import Document, Layer
from echod.memory.policy import Facts, History, plan_prune
from echod.memory.policy.scoring import count_document_lines
from echod.memory.policy_model import PolicySettings, PruneAction
from echod.memory.redact import redact, redact_entry
from tests.bench.made import large_file
from tests.memory.policy.samples import ROLE, TODAY, entry, entry_ids_by_title, memory_document, observation

DAYS = 30
OBSERVATIONS_A_DAY = 55


def parse_document(data: bytes) -> Document:
    document = parse(data)
    assert isinstance(document, Document)
    return document


def test_in_a_month_of_a_real_inflow_learnings_outlive_the_noise() -> None:
    """Fifty-five observations and one inscribed learning a day, pruned daily."""
    document = memory_document()
    seen: dict[str, date] = {}
    alive: set[date] = set()
    archived = b""
    written: dict[str, str] = {}
    for number in range(DAYS):
        today = TODAY + timedelta(days=number)
        age = -number
        new = [observation(f"Task {number}-{n}", age=age) for n in range(OBSERVATIONS_A_DAY)]
        new.append(entry(f"learning {number:02}", age=age, lines=24 if number % 3 == 0 else 8))
        document = parse_document(document.render() + b"\n" + "\n".join(new).encode())
        for block in document.blocks:
            assert block.entry is not None
            written.setdefault(block.entry.title, block.text.rstrip())
        alive.add(today)
        seen |= {identity: seen.get(identity, today) for identity in entry_ids_by_title(document).values()}
        facts = Facts({i: History(first_seen=day) for i, day in seen.items()}, alive_days=frozenset(alive))

        plan = plan_prune(ROLE, document, facts, PolicySettings(), today)

        assert plan.memory is not None
        assert plan.over_limit is None
        document = parse_document(plan.memory)
        archived += render_archived_entries(plan.archived, number)

    learnings = [b.entry.title for b in document.blocks if b.entry and b.entry.layer is Layer.INSCRIBED]
    assert count_document_lines(document) <= 150
    assert len(learnings) >= 12
    assert learnings == [f"learning {number:02}" for number in range(DAYS - len(learnings), DAYS)]
    remaining = {block.text.rstrip() for block in document.blocks}
    remaining |= {found.text.rstrip() for found in read_archive(archived).entries}
    assert [title for title, text in written.items() if text not in remaining] == []


def test_a_file_of_thousands_of_lines_reaches_its_limit_in_one_run_with_every_entry_accounted_for() -> None:
    document = parse_document(large_file())
    assert len(document.blocks) == 490
    assert count_document_lines(document) > 3400

    plan = plan_prune(ROLE, document, Facts(), PolicySettings(), date(2026, 12, 31))

    assert plan.memory is not None
    after = parse_document(plan.memory)
    assert count_document_lines(after) == plan.lines_after <= 150
    assert plan.over_limit is None
    assert sum(b.entry is not None and b.entry.layer is Layer.INSCRIBED for b in after.blocks) == 5
    assert len(plan.actions) == 490
    archived = read_archive(render_archived_entries(plan.archived, 1)).entries
    changed = [action for action in plan.actions if action.action is not PruneAction.KEEP]
    assert [found.id for found in archived] == [action.id for action in changed]
    by_id = dict(zip((a.id for a in plan.actions), document.blocks, strict=True))
    assert all(found.text == by_id[found.id].text for found in archived)
    summaries = sum("echod/roll-up" in block.text for block in after.blocks)
    assert len(after.blocks) - summaries + sum(a.action is not PruneAction.CONDENSE for a in changed) == 490


@pytest.mark.corpus
@pytest.mark.parametrize("role", ["orchestrator", "planner"])
def test_real_files_keep_all_of_their_learnings(corpus: Path, role: str) -> None:
    document = parse_document((corpus / "real-echoes" / role / "MEMORY.md").read_bytes())
    earlier_titles = [b.entry.title for b in document.blocks if b.entry and b.entry.layer is Layer.INSCRIBED]

    plan = plan_prune(role, document, Facts(), PolicySettings(), date(2026, 3, 20))

    assert plan.memory is not None
    after = parse_document(plan.memory)
    remaining = [b.entry.title for b in after.blocks if b.entry and b.entry.layer is Layer.INSCRIBED]
    assert remaining == earlier_titles
    assert len(plan.memory.split()) <= 2000
    assert not any(action.learnings for action in plan.actions)
    opaque = [b.text for b in document.blocks if b.entry is None]
    assert [b.text for b in after.blocks if b.entry is None] == opaque


@pytest.mark.corpus
def test_real_files_are_conserved_at_any_limit(corpus: Path) -> None:
    for path in sorted(corpus.glob("*-echoes/**/MEMORY.md")):
        document = parse_document(path.read_bytes())
        for limit in (0, 20, 60, 100):
            plan = plan_prune("x", document, Facts(), PolicySettings()._replace(memory_line_limit=limit), TODAY)
            if plan.memory is None:
                continue
            texts = [render_archived_entries(plan.archived, 1).decode()]
            change = FileChange(document, parse_document(plan.memory))
            found = find_violations(
                [change],
                texts,
                redacted_forms=lambda text: (redact(text).text, redact_entry(text).text),
                user_requested=True,
            )
            assert found == (), path

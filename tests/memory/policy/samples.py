"""Entries, files and facts for the tests of the policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta

from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from echod.memory.policy import Facts, History, PrunePlan, plan_prune
from echod.memory.policy_model import PolicySettings

TODAY = date(2026, 11, 20)
ROLE = "reviewer"
ARCHIVE = "archive/pruned-2026.md"
HEADER = "<!-- echo-schema: v1 -->\n# Reviewer Memory\n"


def days_ago(days: int) -> date:
    return TODAY - timedelta(days=days)


def entry(
    title: str,
    layer: str = "inscribed",
    *,
    age: int = 0,
    confidence: str | None = "0.8",
    lines: int = 8,
    learning: str | None = None,
) -> str:
    """An entry in the bullet form with this number of lines (at least seven), verified `age` days ago."""
    day = days_ago(age)
    head = [
        f"### [{day}] Pattern: {title}",
        f"- **layer**: {layer}",
        f"- **source**: rune:review {title}",
        *([f"- **confidence**: {confidence}"] if confidence else []),
        f"- **evidence**: `src/{title.replace(' ', '_')}.py:1-5`",
        f"- **verified**: {day}",
    ]
    body = [f"- {learning or f'What was learnt about {title}.'}"]
    while len(head) + len(body) < lines:
        body.append(f"  And {len(body)} more words that explain it.")
    return "\n".join([*head, *body, ""])


def observation(task: str, *, age: int = 0) -> str:
    """An observation in the form of real hooks: six lines."""
    return (
        f"## Observations \u2014 Task: {task} ({days_ago(age)})\n"
        "- **layer**: observations\n"
        "**Source**: `rune-review-1/agent`\n"
        "- **Confidence**: LOW (auto-generated, unverified)\n"
        f"- Task completed: {task}\n"
        f"- Context: The agent looked at {task}.\n"
    )


def memory_document(*blocks: str) -> Document:
    """A memory file of these blocks, a blank line before each."""
    document = parse("\n".join([HEADER, *blocks]).encode())
    assert isinstance(document, Document)
    return document


def entry_ids_by_title(document: Document) -> dict[str, str]:
    """Title -> id."""
    pairs = zip(document.blocks, entry_ids(ROLE, document), strict=True)
    return {block.entry.title: identity for block, identity in pairs if block.entry and identity}


def every_day(days: int = 400) -> frozenset[date]:
    """A project that is alive every day."""
    return frozenset(days_ago(number) for number in range(days))


def make_facts(
    document: Document,
    *,
    first_seen: int = 300,
    alive_days: frozenset[date] | None = None,
    pinned: Iterable[str] = (),
    references: Mapping[str, int] | None = None,
    archived_today: int = 0,
) -> Facts:
    """Facts about a project observed for long. Titles identify entries."""
    ids_by_title = entry_ids_by_title(document)
    return Facts(
        histories={
            identity: History(first_seen=days_ago(first_seen), references=(references or {}).get(title, 0))
            for title, identity in ids_by_title.items()
        },
        alive_days=every_day() if alive_days is None else alive_days,
        pinned={ids_by_title[title]: TODAY + timedelta(days=10) for title in pinned},
        learnings_archived_today=archived_today,
    )


def prune_plan(document: Document, facts: Facts | None = None, *, limit: int = 150, today: date = TODAY) -> PrunePlan:
    return plan_prune(
        ROLE, document, facts or make_facts(document), PolicySettings(memory_line_limit=limit), today, archive=ARCHIVE
    )


def changed_entries(plan: PrunePlan) -> dict[str, tuple[str, str]]:
    """Title -> rule and action of the changed entries."""
    return {a.title: (a.rule.value, a.action.value) for a in plan.actions if a.rule is not None}


def pruned_document(plan: PrunePlan) -> Document:
    assert plan.memory is not None
    document = parse(plan.memory)
    assert isinstance(document, Document)
    return document


def titles(document: Document) -> list[str]:
    return [block.entry.title for block in document.blocks if block.entry]

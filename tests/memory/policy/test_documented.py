"""docs/lifecycle.md says what the code does: its example is recomputed, its numbers are the defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import date
from pathlib import Path

import pytest

from echod.memory.document import Document, parse
from echod.memory.identity import entry_ids
from echod.memory.policy import Action, Facts, History, Policy, Rule, plan_prune
from echod.memory.policy.standing import DEFAULT_CONFIDENCE
from tests.memory.policy.samples import alive

PAGE = (Path(__file__).parents[3] / "docs" / "lifecycle.md").read_text(encoding="utf-8")
TODAY = date(2026, 11, 20)
LIMIT = 35


def rows(heading: str) -> Iterator[list[str]]:
    """The cells of the table that begins with this heading."""
    table = PAGE[PAGE.index(f"| {heading} |") :].split("\n\n")[0]
    for line in table.strip().split("\n")[2:]:
        yield [cell.strip() for cell in line.strip().strip("|").split("|")]


@pytest.fixture
def example() -> Document:
    found = re.search(r"```markdown\n(.*?)```", PAGE, re.DOTALL)
    assert found
    document = parse(found[1].encode())
    assert isinstance(document, Document)
    return document


def test_the_worked_example_is_what_prune_does(example: Document) -> None:
    named = {}
    for block, identity in zip(example.blocks, entry_ids("reviewer", example), strict=True):
        assert block.entry
        assert identity
        named[f"{block.entry.title} ({block.entry.heading_date})"] = identity
    histories = dict.fromkeys(named.values(), History(first_seen=date(2025, 11, 20)))
    for title, last, workflows in rows("entry | last reference"):
        identity = next(identity for name, identity in named.items() if name.startswith(title))
        day = None if last == "never" else date.fromisoformat(last)
        histories[identity] = replace(histories[identity], last_reference=day, workflows=int(workflows))
    facts = Facts(histories, workflows_seen=10, alive_days=alive())

    plan = plan_prune("reviewer", example, facts, Policy(memory_line_limit=LIMIT), TODAY)

    told = list(rows("entry | importance"))
    assert len(told) == len(plan.actions)
    for action, (title, importance, relevance, recency, score, rule, what) in zip(plan.actions, told, strict=True):
        assert title.startswith(action.title)
        assert action.terms
        terms = (action.terms.importance, action.terms.relevance, action.terms.recency)
        assert terms == pytest.approx((float(importance), float(relevance), float(recency)), abs=0.0005)
        assert action.score == pytest.approx(float(score), abs=0.0005)
        assert (action.rule.value if action.rule else "", action.action.value) == (rule, what)
    assert f"The file has {plan.lines_before} lines." in PAGE
    assert f"the file has {plan.lines_after} lines." in PAGE
    assert f"limit of this file is {LIMIT} lines, so noise may take {LIMIT // 5}" in PAGE


def test_every_number_stands_in_the_table_with_its_default() -> None:
    told = {name: float(default) for name, default, _ in rows("name")}

    assert told == {field.name: float(getattr(Policy(), field.name)) for field in fields(Policy)}


def test_the_table_of_layers_is_right() -> None:
    policy = Policy()
    for layer, _, importance, age, _ in rows("layer"):
        assert float(importance) == getattr(policy, f"importance_{layer}")
        assert age == str(getattr(policy, f"{layer}_days", "none"))


def test_every_rule_of_prune_is_explained() -> None:
    elsewhere = {Rule.PROMOTE, Rule.TOPIC, Rule.OLDEST_KNOWLEDGE}

    assert [rule.value for rule in Rule if rule not in elsewhere and f"(`{rule.value}`" not in PAGE] == []
    assert f"counts as {DEFAULT_CONFIDENCE}" in PAGE
    assert {what for *_, what in rows("entry | importance")} == {action.value for action in Action}

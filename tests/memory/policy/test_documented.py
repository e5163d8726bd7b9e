"""docs/lifecycle.md matches the code: its example is recomputed, its numbers are the defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from echod.inspection.review import FIRST_PRUNE_HOLD_SECONDS
from echod.memory.archive import MAX_ARCHIVE_BYTES
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.knowledge.blocks import MIN_TOPIC_SIMILARITY
from echod.memory.model import DEFAULT_CONFIDENCE, Document
from echod.memory.policy import Facts, History, plan_prune
from echod.memory.policy.scoring import EARLIEST_DATE, noise_budget
from echod.memory.policy_model import PolicySettings, Rule
from echod.settings.schema import Settings
from tests.memory.policy.samples import every_day

PAGE = (Path(__file__).parents[3] / "docs" / "lifecycle.md").read_text(encoding="utf-8")
SHARES = {0.2: "a fifth", 0.25: "a quarter", 0.5: "half"}
TODAY = date(2026, 11, 20)
LIMIT = 35


def rows(heading: str) -> Iterator[list[str]]:
    """The cells of the table that begins with this heading."""
    table = PAGE[PAGE.index(f"| {heading} |") :].split("\n\n")[0]
    for line in table.strip().split("\n")[2:]:
        yield [cell.strip() for cell in line.strip().strip("|").split("|")]


@pytest.fixture
def example() -> Document:
    match = re.search(r"```markdown\n(.*?)```", PAGE, re.DOTALL)
    assert match
    document = parse(match[1].encode())
    assert isinstance(document, Document)
    return document


def test_the_worked_example_is_the_result_of_prune(example: Document) -> None:
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
    facts = Facts(histories, workflows_seen=10, alive_days=every_day())

    plan = plan_prune("reviewer", example, facts, PolicySettings(memory_line_limit=LIMIT), TODAY)

    documented = list(rows("entry | importance"))
    assert len(documented) == len(plan.actions)
    for action, (title, importance, relevance, recency, score, rule, what) in zip(
        plan.actions, documented, strict=True
    ):
        assert title.startswith(action.title)
        assert action.terms
        terms = (action.terms.importance, action.terms.relevance, action.terms.recency)
        assert terms == pytest.approx((float(importance), float(relevance), float(recency)), abs=0.0005)
        assert action.score == pytest.approx(float(score), abs=0.0005)
        assert (action.rule.value if action.rule else "", action.action.value) == (rule, what)
    assert f"The file has {plan.lines_before} lines." in PAGE
    assert f"the file has {plan.lines_after} lines." in PAGE
    assert f"limit of this file is {LIMIT} lines." in PAGE


def test_every_number_is_in_the_table_with_the_default_of_its_setting() -> None:
    documented = {name: float(default) for name, default, _ in rows("name")}
    policy = Settings().policy_settings(Settings().memory_line_limit)

    values = policy._asdict()
    assert documented == {name: float(value) for name, value in values.items() if name != "propose_command"}


def test_the_text_has_the_numbers_of_the_settings() -> None:
    """Users rely on the sentences. A number changed in only one place would mislead them."""
    p = Settings().policy_settings(Settings().memory_line_limit)
    text = " ".join(PAGE.split())
    sentences = (
        f"score = {p.importance_weight:g} importance + {p.relevance_weight:g} relevance + {p.recency_weight:g} recency",
        f"the workflows and sessions of the last {p.relevance_days} days",
        f"the year {EARLIEST_DATE.year}, counts as missing",
        f"an observation is archived after {p.observations_days} days without a reference",
        f"longer than its limit** ({p.memory_line_limit} lines)",
        f"an inscribed entry with a score below {p.inscribed_score:g} and {p.inscribed_days} days without a reference",
        f"a traced entry with a score below {p.traced_score:g} and {p.traced_days} days",
        f"{SHARES[p.noise_share]} of the limit ({noise_budget(p)} lines)",
        f"more than {p.memory_words:,} words",
        f"at most {SHARES[p.daily_learning_share]} of them (at least one) per file and day",
        f"is left alone for {p.pin_days} days",
        f"was referenced {p.promote_references} times becomes inscribed",
        f"A `knowledge.md` of more than {p.knowledge_line_limit} lines is compressed",
        f"(`pruned-YEAR-2.md`) at {MAX_ARCHIVE_BYTES // 1024**2} MiB",
    )

    assert [sentence for sentence in sentences if sentence not in text] == []
    assert timedelta(days=1).total_seconds() == FIRST_PRUNE_HOLD_SECONDS
    assert "waits for a day" in text
    assert MIN_TOPIC_SIMILARITY == 0.5
    assert "titles share at least half of their words" in text


def test_the_table_of_layers_is_right() -> None:
    policy = PolicySettings()
    for layer, _, importance, age, _ in rows("layer"):
        assert float(importance) == getattr(policy, f"importance_{layer}")
        assert age == str(getattr(policy, f"{layer}_days", "none"))


def test_every_rule_of_prune_is_explained() -> None:
    elsewhere = {Rule.PROMOTE, Rule.TOPIC, Rule.OLDEST_KNOWLEDGE}

    assert [rule.value for rule in Rule if rule not in elsewhere and f"(`{rule.value}`" not in PAGE] == []
    assert f"counts as {DEFAULT_CONFIDENCE}" in PAGE
    assert {what for *_, what in rows("entry | importance")} >= {"keep", "archive", "condense", "roll-up"}

"""Explanations match prune, and their days are right."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given

from echod.memory.identity import entry_ids
from echod.memory.policy import Explanation, Facts, History, RuleOutcome, build_explanation, plan_prune
from echod.memory.policy_model import PolicySettings, Rule
from tests.memory.policy.samples import (
    ROLE,
    TODAY,
    changed_entries,
    days_ago,
    entry,
    entry_ids_by_title,
    every_day,
    make_facts,
    memory_document,
    observation,
    prune_plan,
)
from tests.memory.policy.test_prune_laws import QUICK, Case, cases, plan_of


def rules_by_name(explanation: Explanation | None) -> dict[Rule, RuleOutcome]:
    assert explanation is not None
    return {rule.name: rule for rule in explanation.rules}


@QUICK
@given(cases())
def test_explain_and_prune_agree_entry_by_entry(case: Case) -> None:
    plan = plan_of(case)

    for action in plan.actions[:4]:
        explained = build_explanation(ROLE, case.document, action.id, case.facts, case.policy, TODAY)
        assert explained is not None
        assert (explained.id, explained.score, explained.terms, explained.action) == (
            action.id,
            action.score,
            action.terms,
            action.action,
        )
        applying = [rule.name for rule in explained.rules if rule.applies and rule.name is not Rule.PROMOTE]
        assert applying == list(action.rules)


def test_an_id_that_is_not_in_the_file_has_no_explanation() -> None:
    assert build_explanation(ROLE, memory_document(entry("a")), "0" * 12, Facts(), PolicySettings(), TODAY) is None


@pytest.mark.parametrize("age", [0, 20, 59, 60, 90])
def test_the_first_day_of_expiry_is_the_day_on_which_prune_archives(age: int) -> None:
    document = memory_document(observation("x", age=age))
    facts = replace(make_facts(document), alive_days=frozenset(days_ago(n) for n in range(-200, 400)))

    explained = rules_by_name(
        build_explanation(ROLE, document, entry_ids_by_title(document)["x"], facts, PolicySettings(), TODAY)
    )[Rule.EXPIRED]

    assert explained.applies_on is not None
    assert changed_entries(prune_plan(document, facts, today=explained.applies_on)) == {"x": ("expired", "archive")}
    if explained.applies_on > TODAY:
        assert changed_entries(prune_plan(document, facts, today=explained.applies_on - timedelta(days=1))) == {}


@pytest.mark.parametrize(("layer", "days"), [("inscribed", 90), ("traced", 30)])
def test_a_learning_expires_on_the_first_day_that_is_old_and_low_enough(layer: str, days: int) -> None:
    document = memory_document(entry("a", layer, age=10), entry("b", "etched"))
    facts = replace(make_facts(document), alive_days=frozenset(days_ago(n) for n in range(-200, 400)))
    tight = PolicySettings(memory_line_limit=5)

    explained = rules_by_name(
        build_explanation(ROLE, document, entry_ids_by_title(document)["a"], facts, tight, TODAY)
    )[Rule.EXPIRED]

    assert explained.applies_on == days_ago(10) + timedelta(days=days)
    plan = plan_prune(ROLE, document, facts, tight, explained.applies_on)
    assert changed_entries(plan)["a"] == ("expired", "archive")


def test_a_learning_that_stays_in_use_never_expires() -> None:
    document = memory_document(entry("a"))
    identity = entry_ids_by_title(document)["a"]
    facts = Facts({identity: History(first_seen=TODAY, workflows=1)}, workflows_seen=5, alive_days=every_day())

    assert (
        rules_by_name(build_explanation(ROLE, document, identity, facts, PolicySettings(), TODAY))[
            Rule.EXPIRED
        ].applies_on
        is None
    )


def test_a_pin_defers_the_first_day() -> None:
    document = memory_document(observation("x", age=100))

    explained = build_explanation(
        ROLE, document, entry_ids_by_title(document)["x"], make_facts(document, pinned=["x"]), PolicySettings(), TODAY
    )

    assert explained is not None
    assert explained.pinned_until == TODAY + timedelta(days=10)
    assert rules_by_name(explained)[Rule.EXPIRED].applies_on == TODAY + timedelta(days=11)


def test_rules_of_pressure_have_a_rank_and_no_day() -> None:
    document = memory_document(*(observation(f"o{age}", age=age) for age in (3, 9, 1)))

    explained = rules_by_name(
        build_explanation(
            ROLE, document, entry_ids_by_title(document)["o3"], make_facts(document), PolicySettings(), TODAY
        )
    )[Rule.NOISE_BUDGET]

    assert (explained.rank, explained.queue_length, explained.applies_on, explained.applies) == (2, 3, None, False)
    assert "2 of 3" in explained.text


def test_a_protected_entry_has_no_rules() -> None:
    document = memory_document(entry("a", "etched"))

    explained = build_explanation(
        ROLE, document, entry_ids_by_title(document)["a"], make_facts(document), PolicySettings(), TODAY
    )

    assert explained is not None
    assert explained.is_protected
    assert explained.rules == ()
    assert explained.score == 0.7


def test_an_explanation_has_the_references_missing_for_promotion() -> None:
    document = memory_document(observation("x"))

    two = build_explanation(
        ROLE,
        document,
        entry_ids_by_title(document)["x"],
        make_facts(document, references={"x": 2}),
        PolicySettings(),
        TODAY,
    )
    three = build_explanation(
        ROLE,
        document,
        entry_ids_by_title(document)["x"],
        make_facts(document, references={"x": 3}),
        PolicySettings(),
        TODAY,
    )

    assert not rules_by_name(two)[Rule.PROMOTE].applies
    assert rules_by_name(three)[Rule.PROMOTE].applies
    assert "2 of 3 references" in rules_by_name(two)[Rule.PROMOTE].text


def test_another_day_is_another_today() -> None:
    document = memory_document(entry("a"))
    [identity] = [found for found in entry_ids(ROLE, document) if found]

    now = build_explanation(ROLE, document, identity, Facts(), PolicySettings(), TODAY)
    later = build_explanation(ROLE, document, identity, Facts(), PolicySettings(), TODAY + timedelta(days=45))

    assert now is not None
    assert later is not None
    assert now.terms is not None
    assert later.terms is not None
    assert (now.terms.recency, later.terms.recency) == (1.0, 0.5)

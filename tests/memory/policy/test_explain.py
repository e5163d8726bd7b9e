"""What explain says is what prune does, and the days that it names are right."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given

from echod.memory.identity import entry_ids
from echod.memory.policy import Explanation, Facts, History, Policy, Rule, RuleView, explain, plan_prune
from tests.memory.policy.samples import (
    ROLE,
    TODAY,
    alive,
    days_ago,
    entry,
    ids,
    known,
    memory,
    moved,
    observation,
    prune,
)
from tests.memory.policy.test_prune_laws import QUICK, Case, cases, plan_of


def rules(told: Explanation | None) -> dict[Rule, RuleView]:
    assert told is not None
    return {rule.name: rule for rule in told.rules}


@QUICK
@given(cases())
def test_explain_and_prune_agree_entry_by_entry(case: Case) -> None:
    plan = plan_of(case)

    for action in plan.actions[:4]:
        told = explain(ROLE, case.document, action.id, case.facts, case.policy, TODAY)
        assert told is not None
        assert (told.id, told.score, told.terms, told.action) == (action.id, action.score, action.terms, action.action)
        applying = [rule.name for rule in told.rules if rule.applies and rule.name is not Rule.PROMOTE]
        assert applying == ([action.rule] if action.rule else [])


def test_an_id_that_is_not_in_the_file_has_no_explanation() -> None:
    assert explain(ROLE, memory(entry("a")), "0" * 12, Facts(), Policy(), TODAY) is None


@pytest.mark.parametrize("age", [0, 20, 59, 60, 90])
def test_the_first_day_of_expiry_is_the_day_on_which_prune_archives(age: int) -> None:
    document = memory(observation("x", age=age))
    facts = replace(known(document), alive_days=frozenset(days_ago(n) for n in range(-200, 400)))

    told = rules(explain(ROLE, document, ids(document)["x"], facts, Policy(), TODAY))[Rule.EXPIRED]

    assert told.applies_on is not None
    assert moved(prune(document, facts, today=told.applies_on)) == {"x": ("expired", "archive")}
    if told.applies_on > TODAY:
        assert moved(prune(document, facts, today=told.applies_on - timedelta(days=1))) == {}


@pytest.mark.parametrize(("layer", "days"), [("inscribed", 90), ("traced", 30)])
def test_a_learning_expires_on_the_first_day_that_is_old_and_low_enough(layer: str, days: int) -> None:
    document = memory(entry("a", layer, age=10), entry("b", "etched"))
    facts = replace(known(document), alive_days=frozenset(days_ago(n) for n in range(-200, 400)))
    tight = Policy(memory_line_limit=5)

    told = rules(explain(ROLE, document, ids(document)["a"], facts, tight, TODAY))[Rule.EXPIRED]

    assert told.applies_on == days_ago(10) + timedelta(days=days)
    plan = plan_prune(ROLE, document, facts, tight, told.applies_on)
    assert moved(plan)["a"] == ("expired", "archive")


def test_a_learning_that_stays_in_use_never_expires() -> None:
    document = memory(entry("a"))
    identity = ids(document)["a"]
    facts = Facts({identity: History(first_seen=TODAY, workflows=1)}, workflows_seen=5, alive_days=alive())

    assert rules(explain(ROLE, document, identity, facts, Policy(), TODAY))[Rule.EXPIRED].applies_on is None


def test_a_pin_puts_the_first_day_off() -> None:
    document = memory(observation("x", age=100))

    told = explain(ROLE, document, ids(document)["x"], known(document, pinned=["x"]), Policy(), TODAY)

    assert told is not None
    assert told.pinned_until == TODAY + timedelta(days=10)
    assert rules(told)[Rule.EXPIRED].applies_on == TODAY + timedelta(days=11)


def test_rules_of_pressure_have_a_rank_and_no_day() -> None:
    document = memory(*(observation(f"o{age}", age=age) for age in (3, 9, 1)))

    told = rules(explain(ROLE, document, ids(document)["o3"], known(document), Policy(), TODAY))[Rule.NOISE_BUDGET]

    assert (told.rank, told.of, told.applies_on, told.applies) == (2, 3, None, False)
    assert "2 of 3" in told.text


def test_a_protected_entry_has_no_rules() -> None:
    document = memory(entry("a", "etched"))

    told = explain(ROLE, document, ids(document)["a"], known(document), Policy(), TODAY)

    assert told is not None
    assert told.protected
    assert told.rules == ()
    assert told.score == 0.7


def test_an_observation_is_told_how_far_it_is_from_promotion() -> None:
    document = memory(observation("x"))

    two = explain(ROLE, document, ids(document)["x"], known(document, references={"x": 2}), Policy(), TODAY)
    three = explain(ROLE, document, ids(document)["x"], known(document, references={"x": 3}), Policy(), TODAY)

    assert not rules(two)[Rule.PROMOTE].applies
    assert rules(three)[Rule.PROMOTE].applies
    assert "2 of 3 references" in rules(two)[Rule.PROMOTE].text


def test_another_day_is_another_today() -> None:
    document = memory(entry("a"))
    [identity] = [found for found in entry_ids(ROLE, document) if found]

    now = explain(ROLE, document, identity, Facts(), Policy(), TODAY)
    later = explain(ROLE, document, identity, Facts(), Policy(), TODAY + timedelta(days=45))

    assert now is not None
    assert later is not None
    assert now.terms is not None
    assert later.terms is not None
    assert (now.terms.recency, later.terms.recency) == (1.0, 0.5)

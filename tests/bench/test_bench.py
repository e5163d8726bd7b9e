"""The benchmarks' own arithmetic: what a bar, a curve and a run say; every topic can be measured and shown."""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.compare import compare
from tests.bench.figures import (
    Comparison,
    Curve,
    Figures,
    Row,
    Table,
    Threshold,
    at_least,
    below,
    format_number,
    none,
    row,
)
from tests.bench.peers.work import entry_text, made_documents, made_questions, whole_and_torn
from tests.bench.reference import measure_alternating
from tests.bench.registry import TOPICS, Topic
from tests.bench.report import report, short_line
from tests.bench.runner import run_all
from tests.bench.topics.search import fts_searcher, recall_at_5
from tests.bench.wire import BenchRun, TopicResult, load, save

SIZES = (1_000, 2_000, 5_000, 20_000)


def curve(cost: Callable[[float], float]) -> Curve:
    return Curve("work", "entries", tuple((size, cost(size)) for size in SIZES))


@given(st.floats(0.1, 3), st.floats(1e-6, 10))
def test_the_exponent_of_a_power_is_that_power(power: float, factor: float) -> None:
    assert curve(lambda size: factor * size**power).exponent == pytest.approx(power)


@pytest.mark.parametrize(
    ("cost", "holds"),
    [
        pytest.param(lambda size: size, True, id="linear"),
        pytest.param(lambda size: size * math.log(size), True, id="n log n"),
        pytest.param(lambda size: 5.0 + 0 * size, True, id="constant"),
        pytest.param(lambda size: size**1.5, False, id="between"),
        pytest.param(lambda size: size**2, False, id="quadratic"),
    ],
)
def test_a_curve_holds_up_to_n_log_n(cost: Callable[[float], float], holds: bool) -> None:
    assert curve(cost).is_met is holds


def test_a_bar_knows_its_side() -> None:
    assert [below(2).is_met(value) for value in (1.9, 2, 2.1)] == [True, False, False]
    assert [at_least(2).is_met(value) for value in (1.9, 2, 2.1)] == [False, True, True]
    assert [none().is_met(value) for value in (0, 1)] == [True, False]
    assert Row("x", 3, "ms").is_met is None


def test_only_a_proof_decides() -> None:
    slow = Figures((Row("a time", 9, "s", bar=below(1)),), (curve(lambda size: size**2),))
    lossy = Figures((Row("entries lost", 1, "", bar=none()),))

    assert [figures.has_failed_proof for figures in (slow, lossy)] == [False, True]


def test_a_figure_is_the_median_with_its_quartiles() -> None:
    figure = row("time", [5, 1, 2, 3, 4], "ms")

    assert (figure.low, figure.value, figure.high, figure.runs) == (2, 3, 4, 5)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.01234, "0.0123"), (1.5, "1.50"), (12.34, "12.3"), (123.4, "123"), (10_000, "10,000"), (7, "7")],
)
def test_a_number_has_three_digits(value: float, shown: str) -> None:
    assert format_number(value) == shown


FULL = Figures(
    (
        row("parse", [1.0, 2.0, 3.0], "ms", bar=below(30), loops=[0.1, 0.2, 0.3], note="233 kB"),
        Row("lost", 1, "", bar=none()),
    ),
    (curve(lambda size: size * 2.0),),
    (Table("Storms", ("storm", "lost"), (("appenders", 0),), ("a note",)),),
)
RUN = BenchRun(
    {"revision": "abc"},
    (TopicResult("documents", "Documents", 1.5, FULL), TopicResult("idle", "Idle", 9, None, "dead")),
)


def test_a_run_survives_the_way_through_its_file(tmp_path: Path) -> None:
    save(RUN, tmp_path / "run.json")

    assert load(tmp_path / "run.json") == RUN


def test_the_table_says_what_holds_and_what_does_not() -> None:
    said = report(RUN)

    assert "not measured: dead" in said
    assert said.index("Does not hold:") < said.rindex("Idle: not measured")
    assert "Documents: lost" in said[said.index("Does not hold:") :]
    assert short_line(RUN.topics[0]) == "Documents: 2 s, 2 of 3 bars hold"
    assert RUN.failed


def test_two_runs_are_compared_by_what_both_measured() -> None:
    faster = BenchRun({}, (TopicResult("documents", "Documents", 1, Figures((row("parse", [1], "ms", loops=[0.1]),))),))

    said = compare(RUN, faster)

    assert "parse (loops)" in said
    assert "-50 %" in said
    assert "lost" not in said


def test_a_slow_machine_makes_fewer_rounds_but_enough() -> None:
    took = measure_alternating(lambda: time.sleep(0.001), 1_000, max_seconds=0)

    assert len(took.seconds) == len(took.loops) == 3


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_every_topic_can_be_measured(topic: Topic) -> None:
    assert callable(importlib.import_module(f"tests.bench.topics.{topic.name}").measure)


def test_each_topic_has_a_name_of_its_own() -> None:
    assert len({topic.name for topic in TOPICS}) == len(TOPICS)


def test_a_topic_that_fails_or_hangs_is_told_and_the_others_go_on() -> None:
    topics = (
        Topic("nonesuch", "There is none", 30),
        Topic("idle", "Has no time at all", 0.3),
        Topic("compression", "Compression", 60, timed=False),
    )
    heard: list[str] = []

    missing, hasty, fine = run_all(topics, lambda measured: heard.append(measured.name))

    assert missing.figures is None
    assert "No module named" in missing.trouble
    assert hasty.figures is None
    assert "not over within 0.3 s" in hasty.trouble
    assert fine.figures is not None
    assert sorted(heard) == ["compression", "idle", "nonesuch"]


def test_a_bar_is_shown_with_its_sign() -> None:
    assert str(Threshold(Comparison.AT_MOST, 1)) == "<= 1"


def test_each_made_question_of_the_comparison_has_an_answer_that_contains_its_words() -> None:
    documents = made_documents(60)
    texts = {document["id"]: f"{document['title']} {document['body']}".lower() for document in documents}
    search = fts_searcher(documents, r"\w+", priors=False)

    for question in made_questions(documents, 20):
        (answer,) = question.gold
        assert sum(word in texts[answer].split() for word in question.query.replace(".", "").split()) >= 2
        assert recall_at_5(question, list(search(question.query))) in (0, 1)


@pytest.mark.parametrize(
    ("stored", "counts"),
    [
        pytest.param("", (0, 0), id="missing"),
        pytest.param(entry_text("w1n02").replace(" ", "\n", 3), (1, 0), id="wrapped"),
        pytest.param(f"{entry_text('w1n02')}\n{entry_text('w1n02')}", (2, 0), id="twice"),
        pytest.param(f"{entry_text('w1n02')}\n{entry_text('w1n02')[:90]}", (1, 1), id="torn"),
    ],
)
def test_what_became_of_an_entry_is_seen_in_the_stored_text(stored: str, counts: tuple[int, int]) -> None:
    assert whole_and_torn(f"{stored}\n{entry_text('w1n03')}", "w1n02") == counts

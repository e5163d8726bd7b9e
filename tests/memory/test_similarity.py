"""Which learnings are one; a false duplicate costs knowledge, so doubt means two."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.document import parse
from echod.memory.model import Layer
from echod.memory.similarity import (
    DEFAULT_THRESHOLDS,
    Learning,
    Similarity,
    SimilarityThresholds,
    bare_title,
    compare_learnings,
    features_of,
    files_in,
    learning_of,
)
from echod.memory.similarity.words import _alternatives

SESSION = "Always await the session before commit"
RETRY = "Retry the upload 3 times"


def learned(title: str, body: str = "", evidence: str | None = None, layer: Layer | None = Layer.INSCRIBED) -> Learning:
    return Learning(title, body or title, evidence, layer)


def compare(one: Learning, other: Learning, thresholds: SimilarityThresholds = DEFAULT_THRESHOLDS) -> Similarity:
    return compare_learnings(features_of(one), features_of(other), thresholds)


SAME = {
    "the very same": (learned(SESSION), learned(SESSION)),
    "another date": (learned(f"[2026-02-11] {SESSION}", SESSION), learned(f"{SESSION} (2026-03-01)", SESSION)),
    "another type word": (learned(f"Pattern: {SESSION}"), learned(f"Decision: {SESSION}")),
    "another case": (learned(SESSION), learned(SESSION.upper())),
    "emphasis and code": (learned(SESSION), learned(SESSION, "Always `await` the **session** before `commit`.")),
    "word endings": (
        learned("Await sessions before commit", "Sessions are awaited before the commit."),
        learned("Await session before commits", "The session is awaited before commits."),
    ),
    "one more word in the body": (
        learned(SESSION, "Await the session before commit, or rows are lost."),
        learned(SESSION, "Await the session before commit, or some rows are lost silently."),
    ),
    "one more word in a long title": (
        learned("Close the database pool in teardown of each test"),
        learned("Close the whole database pool in teardown of each test"),
    ),
    "clauses in another order": (
        learned(SESSION, "In handlers, await the session before commit."),
        learned(SESSION, "Await the session before commit in handlers."),
    ),
    "evidence moved within the file": (
        learned(SESSION, evidence="`src/db.py:3`"),
        learned(SESSION, evidence="`src/db.py:88-90` \u2014 seen again"),
    ),
    "evidence without files on both sides": (
        learned(SESSION, evidence="CI log"),
        learned(SESSION, evidence="seen in PR #4"),
    ),
    "evidence missing on one side, without files on the other": (
        learned(SESSION),
        learned(SESSION, evidence="seen in review"),
    ),
    "evidence in another order": (
        learned(SESSION, evidence="`a.py`, `b.py`"),
        learned(SESSION, evidence="b.py:1; ./a.py:2"),
    ),
    "zero-width characters": (learned(SESSION), learned(SESSION.replace("session", "ses\u200bsion"))),
    "full-width letters": (learned("Use HTTP"), learned("Use \uff28\uff34\uff34\uff30")),
    "typographic apostrophe": (learned("Don't share the pool"), learned("Don\u2019t share the pool")),
    "contraction or not": (learned("Don't share the pool"), learned("Do not share the pool")),
    "the same number, written apart": (learned("Retry after 30s"), learned("Retry after 30 seconds")),
    "the same number in words": (learned("Retry three times"), learned("Retry 3 times")),
    "thousands": (learned("Cap the cache at 10,000 rows"), learned("Cap the cache at 10000 rows")),
    "chinese": (
        learned("提交前等待会话", "提交之前要等待数据库会话"),
        learned("提交前等待会话", "提交之前要等待数据库的会话"),
    ),
    "two layers": (learned(SESSION, layer=Layer.TRACED), learned(SESSION, layer=Layer.INSCRIBED)),
    "one observation twice": (
        learned("Task: Fix login", "Done.", layer=Layer.OBSERVATIONS),
        learned("Task: Fix login", "Done.", layer=Layer.OBSERVATIONS),
    ),
    "calls, and one more word": (
        learned("Call flush() and then close()", "Call `flush()` and then `close()` in teardown."),
        learned("Call flush() and then close()", "Always call `flush()` and then `close()` in the teardown."),
    ),
    "forms of one word": (
        learned(SESSION, "Using one session, the retry of the upload is committed late in the job by the worker."),
        learned(SESSION, "Use one session, the retries of the uploads commit late in the job by the worker."),
    ),
    "words that mean the same": (
        learned(SESSION, "Keep the large index within the pool of the worker, or rows are lost on shutdown."),
        learned(SESSION, "Keep the big index in the pool of the worker, or rows are lost on shutdown."),
    ),
    "another type word in the body alone": (
        learned(SESSION, f"Pattern: {SESSION}"),
        learned(SESSION, f"- Decision: {SESSION}"),
    ),
    "every and each": (
        learned("Retry the whole upload every minute"),
        learned("Retry the whole upload each minute"),
    ),
    "nothing but signs": (learned("\U0001f389", "\U0001f389"), learned("\U0001f389", "\U0001f389")),
}

CONTRADICTING = {
    "always and never": (learned(SESSION), learned(SESSION.replace("Always", "Never"))),
    "only the title says never": (
        learned(SESSION, "The session, the commit."),
        learned(SESSION.replace("Always", "Never"), "The session, the commit."),
    ),
    "3 and 5": (learned(RETRY), learned(RETRY.replace("3", "5"))),
    "three and five": (learned("Retry the upload three times"), learned("Retry the upload five times")),
    "3 and five": (learned(RETRY), learned("Retry the upload five times")),
    "a number only on one side": (learned(RETRY), learned("Retry the upload times")),
    "numbers changed places": (
        learned("Retry limits", "Wait 3 s and retry 30 times."),
        learned("Retry limits", "Wait 30 s and retry 3 times."),
    ),
    "seconds and milliseconds": (learned("Wait 30 s for the lock"), learned("Wait 30 ms for the lock")),
    "minus": (learned("The code is 1 on failure"), learned("The code is -1 on failure")),
    "versions": (learned("Pin the driver to 2.1.3"), learned("Pin the driver to 2.1.4")),
    "digits in a name": (learned("Hash with sha256 here"), learned("Hash with sha512 here")),
    "not": (learned("Share the pool between threads"), learned("Do not share the pool between threads")),
    "don't": (learned("Share the pool between threads"), learned("Don't share the pool between threads")),
    "without": (learned("Run the tests with the cache"), learned("Run the tests without the cache")),
    "what is denied": (learned("Use redis, not postgres"), learned("Use postgres, not redis")),
    "exclamation mark in code": (
        learned("Return if ready", "`if (ready)`"),
        learned("Return if ready", "`if (!ready)`"),
    ),
    "crossed out": (learned("Use the pool", "\u2705 use the pool"), learned("Use the pool", "\u274c use the pool")),
    "enable and disable": (learned("Enable the cache in tests"), learned("Disable the cache in tests")),
    "enabled and disabled": (learned("The cache is enabled in tests"), learned("The cache is disabled in tests")),
    "before and after": (
        learned("Run the migration before the deploy"),
        learned("Run the migration after the deploy"),
    ),
    "things changed places": (
        learned("Run the linter before the tests"),
        learned("Run the tests before the linter"),
    ),
    "who calls whom": (learned("The worker calls the gate"), learned("The gate calls the worker")),
    "a pair of pairs": (
        learned("Which store for what", "Redis for sessions and postgres for jobs."),
        learned("Which store for what", "Postgres for sessions and redis for jobs."),
    ),
    "safe and unsafe": (learned("The client is thread safe"), learned("The client is thread unsafe")),
    "any un- word": (learned("Keys are sorted on write"), learned("Keys are unsorted on write")),
    "sync and async": (learned("Call the sync client in hooks"), learned("Call the async client in hooks")),
    "must and may": (learned("Callers must hold the lock"), learned("Callers may hold the lock")),
    "greater and less": (learned("Retry while n < limit"), learned("Retry while n > limit")),
    "equal and unequal": (learned("Stop when `a == b`"), learned("Stop when `a != b`")),
    "up and down": (learned("Round up the timeout"), learned("Round down the timeout")),
    "chinese negation": (learned("提交前等待会话"), learned("提交前不等待会话")),
    "calls changed places": (
        learned("Call flush() then close()"),
        learned("Call close() then flush()"),
    ),
    "calls with arguments changed places": (
        learned("Call flush(now) then close(pool)"),
        learned("Call close(pool) then flush(now)"),
    ),
    "calls changed places behind a comma": (
        learned("Call flush(), then close()"),
        learned("Call close(), then flush()"),
    ),
    "calls changed places in two sentences": (
        learned("Call flush(). Then close()."),
        learned("Call close(). Then flush()."),
    ),
    "thousands and millions": (
        learned("Cap the cache at two thousand rows"),
        learned("Cap the cache at two million rows"),
    ),
    "a number and its multiple": (
        learned("Cap the cache at 5 million rows"),
        learned("Cap the cache at 5 billion rows"),
    ),
    "compound number words": (
        learned("Retry the upload twenty-five times"),
        learned("Retry the upload twenty-six times"),
    ),
    "megabytes and mebibytes": (
        learned("Cap the log at 5 MB"),
        learned("Cap the log at 5 MiB"),
    ),
    "a unit nobody knows": (
        learned("Ship at most 5 pallets a go"),
        learned("Ship at most 5 crates a go"),
    ),
    "a unit without a number": (learned("Retry every minute"), learned("Retry every hour")),
    "a unit without a number, among other differences": (
        learned("Retry the upload each minute in the evening"),
        learned("Retry the upload in the evening every hour"),
    ),
    "a unit in one word": (learned("Rotate the logs daily"), learned("Rotate the logs weekly")),
    "another tool": (
        learned("Always install the build tools with pip in the image"),
        learned("Always install the build tools with npm in the image"),
    ),
    "another tool, among other differences": (
        learned("Installing the tools", "In the image, install the build tools with pip, for the cache is warm."),
        learned("Installing the tools", "Install the build tools with npm, for the cache is still warm."),
    ),
    "another code": (
        learned("Opening the lock file fails with ENOENT on the build host"),
        learned("Opening the lock file fails with EPERM on the build host"),
    ),
    "another role": (
        learned("The worker process owns the queue and its lock file"),
        learned("The master process owns the queue and its lock file"),
    ),
    "who may do it": (
        learned("Only admins can delete the projects of a team"),
        learned("Only owners can delete the projects of a team"),
    ),
    "another function": (
        learned("Call `load_all()` in the setup of each slow test"),
        learned("Call `load_one()` in the setup of each slow test"),
    ),
    "another direction": (
        learned("Copy the rows to the archive at night"),
        learned("Copy the rows from the archive at night"),
    ),
    "a name that both texts have": (
        learned("Install with pip in the image and with npm in the web client"),
        learned("Install with npm in the image and with npm in the web client"),
    ),
    "another character": (learned("提交红色会话之后等待"), learned("提交蓝色会话之后等待")),
    "german negation": (learned("Die Verbindung teilen"), learned("Die Verbindung nicht teilen")),
}

OTHERWISE_DIFFERENT = {
    "another file": (learned(SESSION, evidence="`src/db.py:3`"), learned(SESSION, evidence="`src/web.py:3`")),
    "a file only on one side": (learned(SESSION, evidence="`src/db.py:3`"), learned(SESSION)),
    "one file more": (learned(SESSION, evidence="`a.py`"), learned(SESSION, evidence="`a.py`, `b.py`")),
    "another body": (
        learned(SESSION, "Rows are lost when the loop closes early."),
        learned(SESSION, "Deadlocks appear in the nightly import."),
    ),
    "no body": (learned(SESSION, "Rows are lost."), Learning(SESSION, "", None, Layer.INSCRIBED)),
    "another title": (
        learned("Close the pool in teardown", "The pool leaks."),
        learned("Warm the cache on start", "The pool leaks."),
    ),
    "a word that is no type": (
        learned("redis: set timeouts", "Set the timeouts."),
        learned("postgres: set timeouts", "Set the timeouts."),
    ),
    "observations of two tasks": (
        learned("Task: Fix the login form of the web client", "Done.", layer=Layer.OBSERVATIONS),
        learned("Task: Fix the login form of the old web client", "Done.", layer=Layer.OBSERVATIONS),
    ),
    "two emoji": (learned("\U0001f389"), learned("\U0001f680")),
}


NUMBER_WORDS = re.findall(
    r"\S+",
    """
    two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion
    """,
)

NOT_SAME = CONTRADICTING | OTHERWISE_DIFFERENT


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME.keys())
def test_these_are_one_learning(one: Learning, other: Learning) -> None:
    found = compare(one, other)

    assert found.duplicate, found
    assert found.contradiction is None


@pytest.mark.parametrize(("one", "other"), NOT_SAME.values(), ids=NOT_SAME.keys())
def test_these_are_two_learnings(one: Learning, other: Learning) -> None:
    assert not compare(one, other).duplicate, compare(one, other)


@pytest.mark.parametrize(("one", "other"), CONTRADICTING.values(), ids=CONTRADICTING.keys())
def test_these_contradict_each_other_however_alike_they_are(one: Learning, other: Learning) -> None:
    assert compare(one, other, SimilarityThresholds(title=0, body=0)).contradiction


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME.keys())
def test_equal_texts_do_not_contradict(one: Learning, other: Learning) -> None:
    assert compare(one, other, SimilarityThresholds(title=0, body=0)).contradiction is None


@pytest.mark.parametrize(("one", "other"), [*SAME.values(), *NOT_SAME.values()], ids=[*SAME.keys(), *NOT_SAME.keys()])
def test_it_does_not_matter_which_comes_first(one: Learning, other: Learning) -> None:
    assert compare(one, other) == compare(other, one)


@pytest.mark.parametrize(("one", "other"), list(pairwise(NUMBER_WORDS)))
def test_two_numbers_never_agree(one: str, other: str) -> None:
    found = compare(
        learned(f"Retry the upload {one} times"), learned(f"Retry the upload {other} times"), SimilarityThresholds(0, 0)
    )

    assert found.contradiction
    assert found.contradiction.startswith("numbers: ")


def test_the_result_has_the_numbers_of_the_rule() -> None:
    found = compare(learned(RETRY), learned(RETRY.replace("3", "5")))

    assert found.title == pytest.approx(3 / 5)
    assert found.evidence_agrees
    assert compare(
        learned(SESSION), learned(SESSION.replace("Always", "Never")), SimilarityThresholds(0.5, 0.5)
    ).contradiction == ("negations: await await / none")


def test_thresholds_are_the_callers() -> None:
    one, other = learned("b c d", "x y z"), learned("b c d e", "x y z")

    assert not compare(one, other).duplicate
    assert compare(one, other, SimilarityThresholds(title=0.7)).duplicate


WORDS = re.findall(
    r"\S+",
    """
    always never not the pool session commit before after a b 3 5 redis postgres use . , and then enable disable
    don't !x <= > 会话 不 un safe unsafe \u200b \U0001f389
    """,
)
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
LEARNINGS = st.builds(
    Learning,
    title=TEXTS,
    body=TEXTS,
    evidence=st.none() | st.sampled_from(["`a.py:1`", "a.py", "b/c.py", "log"]),
    layer=st.none() | st.sampled_from(Layer),
)


@settings(max_examples=150, deadline=None)
@given(LEARNINGS, LEARNINGS)
def test_similarity_is_symmetric(one: Learning, other: Learning) -> None:
    assert compare(one, other) == compare(other, one)


@settings(max_examples=100, deadline=None)
@given(LEARNINGS)
def test_a_learning_is_itself(one: Learning) -> None:
    assert compare(one, one).duplicate


@settings(max_examples=100, deadline=None)
@given(LEARNINGS, LEARNINGS)
def test_numbers_stay_within_bounds(one: Learning, other: Learning) -> None:
    found = compare(one, other)

    assert 0 <= found.title <= 1
    assert 0 <= found.body <= 1
    assert not (found.duplicate and found.contradiction)


@pytest.mark.parametrize(
    ("title", "bare"),
    [
        ("[2026-02-11] Pattern: Close it", "Close it"),
        ("Inscribed \u2014 Close it (2026-02-11)", "Close it"),
        ("redis: Close it", "redis: Close it"),
        ("Task: Close it", "Task: Close it"),
        ("Close it", "Close it"),
    ],
)
def test_titles_are_compared_without_date_and_type(title: str, bare: str) -> None:
    assert bare_title(title) == bare


@pytest.mark.parametrize(
    ("evidence", "files"),
    [
        (None, set()),
        ("CI log \u2014 took 8 min, e.g. today", set()),
        ("`src/auth.py:1-5` \u2014 3 unused", {"src/auth.py"}),
        ("src/auth.py#L10-L12 and ./src/db.py:3", {"src/auth.py", "src/db.py"}),
        ("src\\auth.py:3", {"src/auth.py"}),
        ("`Makefile` and `.env`", {"Makefile", ".env"}),
        ("packages/web/src/ and lib/", {"packages/web/src", "lib"}),
        ("both and/or neither", set()),
        ("src/\u043a\u043b\u044e\u0447.py:1", {"src/\u043a\u043b\u044e\u0447.py"}),
    ],
)
def test_files_named_in_evidence(evidence: str | None, files: set[str]) -> None:
    assert files_in(evidence) == files


@pytest.mark.parametrize(
    ("title", "body", "evidence", "same"),
    [
        ("close it.", "Close the pool in teardown.", "`a.py:1`", True),
        ("Close it", "Close the pool in teardown", "`a.py:1`", False),
        ("Close it", "Close the pool in teardown.", "`a.py:2`", False),
        ("Close that", "Close the pool in teardown.", "`a.py:1`", False),
    ],
)
def test_white_space_and_the_bullet_do_not_make_a_difference_to_exact_duplicates(
    title: str, body: str, evidence: str, same: bool
) -> None:
    one = Learning("Pattern: Close it", "- Close the pool\n  in teardown.\n", "`a.py:1`", Layer.TRACED)

    assert (features_of(one).exact_key == features_of(Learning(title, body, evidence, None)).exact_key) is same


def test_the_learning_of_an_entry_is_its_body_without_metadata() -> None:
    document = parse(b"### [2026-02-11] Pattern: Close it\n- **layer**: traced\n- **evidence**: `a.py`\n- Close it.\n")
    block = document.blocks[0]  # type: ignore[union-attr]
    assert block.entry is not None

    assert learning_of(block, block.entry) == Learning("Pattern: Close it", "- Close it.", "`a.py`", Layer.TRACED)


@given(
    st.lists(st.text("abc_", min_size=1, max_size=5), min_size=1, max_size=12, unique=True),
    st.text("abc ", max_size=40),
)
def test_words_that_share_their_beginnings_are_found_as_if_each_was_tried(words: list[str], text: str) -> None:
    plain = "|".join(word.replace("_", r"\s+") for word in sorted(words))
    shared = _alternatives(
        [[r"\s+" if character == "_" else character for character in word] for word in sorted(words)]
    )

    assert re.findall(rf"\b(?:{shared})\b", text) == re.findall(rf"\b(?:{plain})\b", text)

"""Every regular expression of the product takes time linear in the text, also for texts made to take long.

The expressions are found automatically, so that a new one is tested too. A quadratic one would exceed the test's time
limit. The benchmarks measure how fast each of them is.
"""

from __future__ import annotations

import pytest

from echod.memory.compose import create_note
from echod.memory.knowledge.text import body_references, evidence_references
from echod.memory.similarity.compare import files_in
from tests.hostile.bombs import ProductPattern, product_patterns, slow_texts

pytestmark = pytest.mark.slow

LENGTH = 100_000

BOUNDED = {
    "echod.memory.knowledge.text._BARE_FILE": "tokens of at most 400 characters",
    "echod.memory.knowledge.text._FOLDER_PATH": "tokens of at most 400 characters",
    "echod.memory.similarity.compare._PATH": "runs of at most 400 characters",
    "echod.memory.similarity.compare._LINE_NUMBERS": "paths of at most 400 characters",
    "echod.memory.compose._LEADING_MARKS": "looked for once, at the start",
    "echod.memory.markdown._SETEXT_UNDERLINE": "looked for once a line, at its start",
    "echod.memory.markdown.THEMATIC_BREAK": "looked for once a line, at its start",
    "echod.store.layout._FINDINGS_WORD": "the name of a file, which the file system bounds",
    "echod.workflows.markers.activity._EMACS_TARGET": "the target of a link, which the kernel bounds",
}
"""Expressions that get no long text, and why. Each limit has its own test below or in its package."""

RULES = tuple(product_patterns())


@pytest.mark.timeout(30)
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.name not in BOUNDED], ids=lambda rule: rule.name)
def test_an_expression_takes_linear_time(rule: ProductPattern) -> None:
    for text in slow_texts(rule.pattern, LENGTH):
        rule.run(text)


def test_the_expressions_are_found_and_the_bounded_ones_are_among_them() -> None:
    names = {rule.name for rule in RULES}

    assert len(names) > 200
    assert BOUNDED.keys() <= names
    assert {"echod.memory.redact.patterns.TOKEN_PATTERNS[0][2]", "echod.cli.context._COLOURS[0][0]"} <= names


@pytest.mark.parametrize("unit", ["_", "_\\", "a/", "/", ".", "~", ":1", "a.b", "Aa", "`/", "a.py:1,"])
def test_evidence_of_any_shape_is_read_in_linear_time(unit: str) -> None:
    evidence = unit * (LENGTH // len(unit))

    files_in(evidence)
    evidence_references(evidence)
    body_references(evidence)


@pytest.mark.parametrize("unit", ["#", ">", "# ", "\n", "-\n", ". "])
def test_a_note_of_any_shape_is_read_in_linear_time(unit: str) -> None:
    create_note(unit * (LENGTH // len(unit)) + "x", None)

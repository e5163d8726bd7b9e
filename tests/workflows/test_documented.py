"""The page that explains the verdicts says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from echod.workflows import GateLimits, files
from echod.workflows.markers import loops
from echod.workflows.markers.checkpoints import ROOTS
from echod.workflows.markers.git import OPERATIONS

PAGE = (Path(__file__).parents[2] / "docs" / "workflows.md").read_text(encoding="utf-8")
LIMITS = GateLimits()


@pytest.mark.parametrize(
    "words",
    [
        f"`quiet_seconds` ({LIMITS.quiet_seconds})",
        f"at most {LIMITS.quiet_cap_minutes} min in a row",
        f"unknown: {LIMITS.unknown_minutes} min; gone: {LIMITS.gone_minutes} min",
        f"else {LIMITS.loop_minutes} min",
        f"unknown: {LIMITS.young_minutes} min; gone: not at all",
        f"| {LIMITS.migration_minutes} min |",
        f"After {LIMITS.silent_hours} h without any sign of life",
        f"not touched for {LIMITS.mention_days} days",
    ],
)
def test_every_bound_is_documented_with_its_default(words: str) -> None:
    assert words in PAGE


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_git_operation_is_documented(operation: str) -> None:
    assert f"`{operation}`" in PAGE


def test_every_place_of_loops_and_checkpoints_is_documented() -> None:
    assert f"arc-{{{','.join(loops.KINDS)}}}-loop.local.md" in PAGE
    assert {root.removesuffix("/arc") for root in ROOTS} == {".rune", ".claude", "tmp"}


def test_the_words_for_an_end_in_the_page_are_words_for_an_end() -> None:
    listed = re.search(r"words for an end \(([^)]*)\)", PAGE)

    assert listed
    assert set(re.findall(r"`(\w+)`", listed[1])) <= files.ENDED_WORDS

"""The page that explains the verdicts matches the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from echod.workflows import GateLimits, files
from echod.workflows.markers.activity import OPERATIONS
from echod.workflows.markers.workflow_files import ARC_DIRECTORIES, LOOP_KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "workflows.md").read_text(encoding="utf-8")
LIMITS = GateLimits()


@pytest.mark.parametrize(
    "words",
    [
        f"`quiet_seconds` ({LIMITS.quiet_seconds})",
        f"at most {LIMITS.max_quiet_minutes} min in a row",
        f"unknown: {LIMITS.unknown_owner_minutes} min; gone: {LIMITS.dead_owner_minutes} min",
        f"else {LIMITS.loop_minutes} min",
        f"unknown: {LIMITS.new_lock_minutes} min; gone: not at all",
        f"| {LIMITS.migration_minutes} min |",
        f"After {LIMITS.max_silence_hours} h without any sign of life",
        f"not touched for {LIMITS.stale_warning_days} days",
    ],
)
def test_every_bound_is_documented_with_its_default(words: str) -> None:
    assert words in PAGE


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_git_operation_is_documented(operation: str) -> None:
    assert f"`{operation}`" in PAGE


def test_every_place_of_loops_and_checkpoints_is_documented() -> None:
    assert f"arc-{{{','.join(LOOP_KINDS)}}}-loop.local.md" in PAGE
    assert {root.removesuffix("/arc") for root in ARC_DIRECTORIES} == {".rune", ".claude", "tmp"}


def test_the_words_for_an_end_in_the_page_are_words_for_an_end() -> None:
    listed = re.search(r"words for an end \(([^)]*)\)", PAGE)

    assert listed
    assert set(re.findall(r"`(\w+)`", listed[1])) <= files.ENDED_STATUSES

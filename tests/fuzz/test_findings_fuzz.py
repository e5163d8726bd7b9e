"""A long search for findings that lose a word, cannot be written, or cost more than linear time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echod.memory.consolidation.deduplicate import FindingsFile
from echod.memory.consolidation.plan import ConsolidationPlan, plan_consolidation
from echod.memory.document import parse
from echod.memory.model import Document
from tests.memory.loose_findings import files

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(900)]

long_search = settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))

SMALL = 30_000  # characters
GROWTH = 4
TOO_STEEP = 10  # linear time grows by 4 and quadratic by 16
WORTH_JUDGING_SECONDS = 0.1
DAY = date(2026, 3, 1)

HEAD = "### [2026-02-11] Pattern: "
HOSTILE: dict[str, tuple[str, str]] = {
    "fences never closed": ("", "```a\n"),
    "fences between learnings": ("", f"{HEAD}x\n```a\n\n"),
    "comments never closed": ("", "<!-- a\n"),
    "closing marks": (HEAD, "# # "),
    "dates": (HEAD, "(2026-02-11) "),
    "ordinals": (HEAD, "1. "),
    "brackets": (HEAD, "[[[((("),
    "bold": ("", "**a** "),
    "marks": ("", "**"),
    "underlined": ("", "a\n---\n\n"),
    "items": ("", "- a\n"),
    "dated items": ("", "- [2026-02-11] Pattern: a\n"),
    "stairs": ("", "  - a\n    - b\n"),
    "colons": (HEAD, "a: "),
    "metadata": ("", "- layer: traced\n"),
    "metadata on one line": ("- layer: traced", " | source: x"),
    "a list of evidence": ("- evidence:\n", "  - `a.py`\n"),
    "groups of labels": ("", "Learning: a\n\n"),
    "headings": ("", "# a\n## b\n### c\n"),
    "learnings": ("", f"{HEAD}x\n\n"),
    "blank lines": ("", "\n"),
    "carriage returns": ("", "\r"),
    "chatter": ("", "here are my findings "),
    "e-mail addresses": ("- evidence: ", "a@example.org "),
    "dashes": (HEAD, "\u2014 "),
    "one word": ("", "word "),
    "numbers": ("", "3 5 ms "),
    "Chinese": ("", "不不"),
}


def seconds(build: Callable[[int], str], size: int) -> float:
    file = FindingsFile("scout-findings.md", "scout", build(size).encode(), DAY)
    start = time.process_time()
    plan_consolidation("reviewer", None, [file], DAY)
    return time.process_time() - start


@pytest.mark.parametrize(("head", "piece"), HOSTILE.values(), ids=HOSTILE.keys())
def test_consolidating_takes_time_linear_in_the_size(head: str, piece: str) -> None:
    def build(size: int) -> str:
        return head + piece * (size // len(piece))

    large = min(seconds(build, SMALL * GROWTH) for _ in range(2))
    small = min(seconds(build, SMALL) for _ in range(3))

    assert large < WORTH_JUDGING_SECONDS or large < small * TOO_STEEP, f"{small:.3f} s became {large:.3f} s"


@long_search
@given(files())
def test_every_word_reaches_the_memory_unless_it_is_there_already(text: str) -> None:
    plan = plan_consolidation("reviewer", None, [FindingsFile("scout-findings.md", "scout", text.encode(), DAY)], DAY)

    assert isinstance(plan, ConsolidationPlan)
    wanted = set(re.findall(r"word\d+", text))
    assert wanted <= set(re.findall(r"word\d+", plan.consumed[0].redacted_data.decode()))
    if not plan.duplicates:  # of a duplicate the entry that stands already is kept as it is
        assert wanted <= set(re.findall(r"word\d+", (plan.memory or b"").decode()))


@long_search
@given(st.text(max_size=300), st.text(max_size=200))
def test_any_findings_go_into_any_memory(memory: str, findings: str) -> None:
    before = parse(memory.encode())
    plan = plan_consolidation(
        "reviewer", memory.encode(), [FindingsFile("scout-findings.md", "scout", findings.encode(), DAY)], DAY
    )

    if isinstance(plan, ConsolidationPlan) and isinstance(before, Document) and plan.memory is not None:
        after = parse(plan.memory)
        assert isinstance(after, Document)
        gone = [one for one in plan.superseded if one.finding_key is None]
        assert len(after.blocks) == len(before.blocks) + len(plan.added) - len(gone)

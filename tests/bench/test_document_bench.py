"""How long reading and writing a memory file takes, at the size of the largest one seen in the field."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from random import Random

import pytest

from echod.memory.document import Document, parse
from echod.memory.identity import entry_ids

BAR_SECONDS = 0.030
ROUNDS = 30

SUBJECTS = (
    "Review the lock",
    "Fix SEC-{n}: guard the path",
    "Scout: find \u201cretry\u201d",
    "Check {n} claims \u2192 plan",
)
WORDS = (
    "the", "queue", "waits", "until", "a", "worker", "\u2014", "or", "its", "lock", "\u2014", "is", "gone;", "see",
    "`src/queue_{n}.py`", "for", "\u00a7{n}", "and", "why",
)  # fmt: skip


def large_file(observations: int = 485, learnings: int = 5) -> bytes:
    """A file of the field's largest shape: 3,500 lines, 231 kB, nearly all of it observations of seven lines."""
    random = Random(7)
    blocks = ["# Reviewer Echoes\n"]
    for number in range(observations):
        subject = SUBJECTS[number % len(SUBJECTS)].format(n=number)
        day = f"2026-{1 + number % 12:02}-{1 + number % 28:02}"
        blocks.append(
            f"## Observations \u2014 Task: {subject} ({day})\n- **layer**: observations\n"
            f"**Source**: `rune-review-{number}/agent-{number % 7}`\n"
            f"- **Confidence**: LOW (auto-generated, unverified)\n"
            f"- Task completed: {subject}\n- Context: {_prose(random, 44, number)}\n"
        )
    for number in range(learnings):
        lessons = "\n\n".join(f"{i}. **Lesson {i}**: {_prose(random, 30, i)}" for i in range(1, 9))
        metrics = "\n".join(f"- Metric {i}: {i} of {number}" for i in range(1, 6))
        blocks.append(
            f"## Inscribed \u2014 Review {number:06x} (2026-02-16)\n\n**Source**: `rune:review {number:06x}`\n"
            f"**Confidence**: HIGH (5 agents)\n\n### Review Metrics\n\n{metrics}\n\n### Key Learnings\n\n{lessons}\n"
        )
    return "\n".join(blocks).encode()


@pytest.mark.bench
def test_parse_and_render() -> None:
    data = large_file()
    document = parse(data)
    assert isinstance(document, Document)
    assert document.render() == data
    assert all(block.entry for block in document.blocks)

    read = _median(lambda: parse(data))
    both = _median(lambda: parse(data).render())
    ids = _median(lambda: entry_ids("reviewer", document))

    lines = data.count(b"\n")
    print(f"\n{len(data) / 1000:.0f} kB, {lines} lines, {len(document.blocks)} entries with all metadata read")
    print(f"parse + render  {both * 1000:6.1f} ms   bar {BAR_SECONDS * 1000:.0f} ms")
    print(f"parse           {read * 1000:6.1f} ms")
    print(f"entry ids       {ids * 1000:6.1f} ms")


def _prose(random: Random, count: int, number: int) -> str:
    return " ".join(random.choice(WORDS) for _ in range(count)).replace("{n}", str(number))


def _median(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)

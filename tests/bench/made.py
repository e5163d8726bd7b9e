"""Memory, knowledge and findings files as they are found in the field, made as large as wanted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from random import Random

from echod.memory.consolidation.deduplicate import FindingsFile

DAY = date(2026, 3, 1)

_SUBJECTS = (
    "Review the lock",
    "Fix SEC-{n}: guard the path",
    "Scout: find \u201cretry\u201d",
    "Check {n} claims \u2192 plan",
)
_PROSE = (
    "the", "queue", "waits", "until", "a", "worker", "\u2014", "or", "its", "lock", "\u2014", "is", "gone;", "see",
    "`src/queue_{n}.py`", "for", "\u00a7{n}", "and", "why",
)  # fmt: skip
_TOPICS = ("db/pool", "api/retry", "web/cache", "jobs/queue", "auth/token", "ci/flaky", "store/lock", "ui/form")
_VERBS = ("Close", "Retry", "Guard", "Batch", "Measure", "Pin", "Split", "Check")
_NOUNS = ("the pool", "a timed-out call", "shared state", "the index", "every write", "the cache key", "its deadline")
_WORDS = (
    "session", "commit", "pool", "cache", "retry", "timeout", "worker", "gate", "memory", "entry", "index", "query",
    "lock", "thread", "async", "await", "deploy", "build", "test", "lint",
)  # fmt: skip


def large_file(observations: int = 485, learnings: int = 5) -> bytes:
    """A file of the field's largest shape: 3,500 lines, 231 kB, nearly all of it observations of seven lines."""
    random = Random(7)
    blocks = ["# Reviewer Echoes\n"]
    for number in range(observations):
        subject = _SUBJECTS[number % len(_SUBJECTS)].format(n=number)
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


def knowledge_file(entries: int) -> bytes:
    """A knowledge file as agents write them: learnings of one to four sentences about a few dozen files."""
    random = Random(11)
    blocks = ["# Workers Knowledge\n"]
    for number in range(entries):
        place = f"src/{random.choice(_TOPICS)}_{random.randrange(max(2, entries // 60))}.py"
        day = f"2026-{1 + number % 12:02}-{1 + number % 28:02}"
        said = " ".join(
            f"{random.choice(_VERBS)} {random.choice(_NOUNS)} before {random.choice(_NOUNS)} in step {random.randrange(99)}."
            for _ in range(random.randint(1, 4))
        )
        blocks.append(
            f"### [{day}] Pattern: {random.choice(_VERBS)} {random.choice(_NOUNS)} {number}\n- **layer**: inscribed\n"
            f"- **source**: rune:review {number:06x}\n- **confidence**: 0.8\n"
            f"- **evidence**: `{place}:{random.randrange(400)}` \u2014 {random.randint(2, 9)} places\n"
            f"- **verified**: {day}\n- **supersedes**: none\n- {said}\n"
        )
    return "\n".join(blocks).encode()


def learning(random: Random, number: int) -> str:
    """A finding unlike every other: a title of six words and its number, and forty words."""
    return (
        f"### [2026-02-{1 + number % 27:02}] Pattern: {' '.join(random.choices(_WORDS, k=6))} {number}\n"
        f"- **layer**: inscribed\n- **source**: rune:review\n- **confidence**: 0.8\n"
        f"- **evidence**: `src/{random.choice(_WORDS)}.py:{number}`\n- **verified**: 2026-02-11\n"
        f"- {random_words(random, 40)}\n"
    )


def random_words(random: Random, count: int) -> str:
    """So many words of the trade."""
    return " ".join(random.choices(_WORDS, k=count))


def findings(role: int, learnings: int, per_file: int) -> Iterator[FindingsFile]:
    """A role's findings, `per_file` learnings in each file."""
    random = Random(role)
    for start in range(0, learnings, per_file):
        some = [learning(random, number) for number in range(start, min(start + per_file, learnings))]
        yield FindingsFile(f"a{start:05}-findings.md", f"a{start:05}", "\n".join(some).encode(), DAY)


def memory_file(entries: int) -> bytes:
    """A memory of so many learnings, none like another."""
    random = Random(13)
    return ("# Memory\n\n" + "\n".join(learning(random, number) for number in range(entries))).encode()


def _prose(random: Random, count: int, number: int) -> str:
    return " ".join(random.choice(_PROSE) for _ in range(count)).replace("{n}", str(number))

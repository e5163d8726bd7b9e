"""How long it takes to fold a workflow's findings into the memory, and to compare two learnings."""

from __future__ import annotations

import time
from datetime import date
from random import Random

import pytest

from echod.memory.consolidate import Consolidation, FindingsFile, consolidate
from echod.memory.similarity import Learning, compare_sketches, sketch

BAR_SECONDS = 2.0  # 1,000 findings into 10 roles
ROLES = 10
PER_FILE = 10
WORDS = (
    "session", "commit", "pool", "cache", "retry", "timeout", "worker", "gate", "memory", "entry", "index", "query",
    "lock", "thread", "async", "await", "deploy", "build", "test", "lint",
)  # fmt: skip
DAY = date(2026, 3, 1)


def role_files(role: int, findings: int) -> list[FindingsFile]:
    random = Random(role)
    files = []
    for start in range(0, findings, PER_FILE):
        learnings = [
            f"### [2026-02-{1 + number % 27:02}] Pattern: {' '.join(random.choices(WORDS, k=6))} {number}\n"
            f"- **layer**: inscribed\n- **source**: rune:review\n- **confidence**: 0.8\n"
            f"- **evidence**: `src/{random.choice(WORDS)}.py:{number}`\n- **verified**: 2026-02-11\n"
            f"- {' '.join(random.choices(WORDS, k=40))}\n"
            for number in range(start, start + PER_FILE)
        ]
        files.append(FindingsFile(f"a{start:05}-findings.md", f"a{start}", "\n".join(learnings).encode(), DAY))
    return files


@pytest.mark.bench
@pytest.mark.parametrize("findings", [1_000, 10_000])
def test_consolidate(findings: int) -> None:
    roles = [role_files(role, findings // ROLES) for role in range(ROLES)]

    start = time.perf_counter()
    for number, files in enumerate(roles):
        plan = consolidate(f"role{number}", b"# Memory\n", files, DAY)
        assert isinstance(plan, Consolidation)
        assert len(plan.added) == findings // ROLES
    seconds = time.perf_counter() - start

    bar = BAR_SECONDS * findings / 1_000
    print(f"\nconsolidate {findings:,} findings into {ROLES} roles: {seconds:.2f} s (bar {bar:.0f} s, linear)")


@pytest.mark.bench
def test_compare() -> None:
    random = Random(3)
    learnings = [
        Learning(" ".join(random.choices(WORDS, k=6)), " ".join(random.choices(WORDS, k=40)), None, None)
        for _ in range(60)
    ]

    start = time.perf_counter()
    sketches = [sketch(learning) for learning in learnings]
    ready = time.perf_counter()
    for one in sketches:
        for other in sketches:
            compare_sketches(one, other)
    done = time.perf_counter()

    reading, comparing = (ready - start) / len(sketches), (done - ready) / len(sketches) ** 2
    print(f"\nread a learning: {reading * 1e6:.0f} us, compare two: {comparing * 1e6:.1f} us")

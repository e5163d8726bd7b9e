"""How much less there is to read after compression, and that every reference is kept; how long the policies take."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from random import Random

import pytest

from echod.memory.document import Block, Document, Layer, parse
from echod.memory.knowledge import knowledge_blocks, material_of, references_of
from echod.memory.policy import Facts, Policy, plan_compress, plan_prune
from echod.memory.policy.lines import document_lines
from tests.bench.test_document_bench import large_file

BAR = 0.22
TODAY = date(2026, 12, 31)
TOPICS = ("db/pool", "api/retry", "web/cache", "jobs/queue", "auth/token", "ci/flaky", "store/lock", "ui/form")
VERBS = ("Close", "Retry", "Guard", "Batch", "Measure", "Pin", "Split", "Check")
NOUNS = ("the pool", "a timed-out call", "shared state", "the index", "every write", "the cache key", "its deadline")


def _read(data: bytes) -> Document:
    document = parse(data)
    assert isinstance(document, Document)
    return document


def generated(entries: int) -> bytes:
    """A knowledge file as agents write them: learnings of one to four sentences about a few dozen files."""
    random = Random(11)
    blocks = ["# Workers Knowledge\n"]
    for number in range(entries):
        place = f"src/{random.choice(TOPICS)}_{random.randrange(max(2, entries // 60))}.py"
        day = f"2026-{1 + number % 12:02}-{1 + number % 28:02}"
        said = " ".join(
            f"{random.choice(VERBS)} {random.choice(NOUNS)} before {random.choice(NOUNS)} in step {random.randrange(99)}."
            for _ in range(random.randint(1, 4))
        )
        blocks.append(
            f"### [{day}] Pattern: {random.choice(VERBS)} {random.choice(NOUNS)} {number}\n- **layer**: inscribed\n"
            f"- **source**: rune:review {number:06x}\n- **confidence**: 0.8\n"
            f"- **evidence**: `{place}:{random.randrange(400)}` \u2014 {random.randint(2, 9)} places\n"
            f"- **verified**: {day}\n- **supersedes**: none\n- {said}\n"
        )
    return "\n".join(blocks).encode()


@pytest.mark.bench
def test_token_reduction_and_evidence_kept() -> None:
    root = os.environ.get("MEMORY_CORPUS")
    files = {
        f"{path.parent.parent.name}/{path.parent.name}": _read(path.read_bytes())
        for path in sorted(Path(root).glob("*-echoes/**/MEMORY.md") if root else ())
    }
    files |= {f"generated, {count} entries": _read(generated(count)) for count in (40, 400)}

    print("\nfile                        entries blocks   tokens ->  then  reduction  references kept")
    for name, document in files.items():
        everything = [block for block in document.blocks if block.entry]
        learnings = [b for b in everything if b.entry and b.entry.layer is not Layer.OBSERVATIONS]
        for what, chosen in (("", everything), (" learnings", learnings)):
            if what and len(learnings) == len(everything):
                continue
            before, after, kept, references, blocks = _compressed(chosen)
            print(
                f"{(name + what):27} {len(chosen):7} {blocks:6} {before // 4:8} -> {after // 4:5}"
                f"  {1 - after / before:8.0%}  {kept} of {references}"
            )
            assert 1 - after / before >= BAR, name
            assert kept == references, name


@pytest.mark.bench
def test_time_of_the_policies() -> None:
    print("\npolicy     entries    lines   seconds")
    for count in (485, 4850, 19_400):
        document = _read(large_file(observations=count))
        _tell("prune", document, partial(plan_prune, "r", document, Facts(), Policy(), TODAY))
    for count in (100, 1000, 10_000):
        document = _read(generated(count))
        _tell("compress", document, partial(plan_compress, "r", document, Facts(), Policy(), TODAY))


def _tell(policy: str, document: Document, work: Callable[[], object]) -> None:
    rounds = 3 if len(document.blocks) < 2000 else 1
    print(f"{policy:9} {len(document.blocks):8} {document_lines(document):8} {_median(work, rounds):9.3f}")


def _compressed(chosen: list[Block]) -> tuple[int, int, int, int, int]:
    blocks = knowledge_blocks(
        [material_of(b, b.entry, b.entry.verified or b.entry.heading_date or TODAY) for b in chosen if b.entry]
    )
    told = "\n".join(blocks)
    references = {
        reference
        for block in chosen
        if block.entry
        for reference in references_of(block.entry, block.text[block.entry.body.start : block.entry.body.end])
    }
    kept = sum(reference in told for reference in references)
    return sum(len(block.text) for block in chosen), len(told), kept, len(references), len(blocks)


def _median(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)

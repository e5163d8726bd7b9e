"""What a reader finds in a pruned memory: the share of judged learnings that are still whole, with words beside lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta

from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.policy import Facts, plan_compress, plan_prune
from echod.memory.policy_model import PolicySettings
from tests.bench.corpus import corpus
from tests.bench.figures import Cells, Comparison, Figures, Row, Table, Threshold, at_least
from tests.bench.quality.file import reviewer_file
from tests.bench.quality.judged import FILLER, LEARNINGS, OBSERVATIONS, Judged
from tests.bench.quality.score import split_units, weighted_recall
from tests.bench.workspace import Workspace

_TODAY = date(2026, 12, 1)
_MAX_WORDS = 2_000
_LEARNING_BAR, _BAR = 0.95, 0.85
_TEN_DAYS_BAR, _KNOWLEDGE_BAR = 0.80, 0.85


def measure(space: Workspace) -> Figures:
    """The made reviewer file and, where the corpus is, the real ones; a role of learnings; a knowledge file."""
    del space
    roles = [("made reviewer", reviewer_file(), _made_learnings(), list(OBSERVATIONS)), *_real_roles()]
    rows: list[Row] = []
    lines: list[Cells] = []
    for name, text, learnings, observations in roles:
        after = _prune(text, days=1)
        units = split_units(after)
        of_learnings = weighted_recall(units, learnings)
        of_all = weighted_recall(units, [*learnings, *observations])
        words = len(after.split())
        rows += [
            Row(f"{name}: judged learnings that are whole", of_learnings, "", bar=at_least(_LEARNING_BAR)),
            Row(f"{name}: everything judged", of_all, "", bar=at_least(_BAR)),
            Row(f"{name}: words", words, "", bar=Threshold(Comparison.AT_MOST, _MAX_WORDS, proof=True)),
        ]
        lines.append((name, text.count("\n"), after.count("\n"), words, round(of_learnings, 3), round(of_all, 3)))
    only_learnings = _learnings_only()
    left = weighted_recall(split_units(_prune(only_learnings, days=10)), _made_learnings())
    knowledge = _compress(only_learnings)
    kept = weighted_recall(split_units(knowledge), _made_learnings())
    rows += [
        Row("a role of learnings after ten days", left, "", bar=at_least(_TEN_DAYS_BAR)),
        Row("a knowledge file compressed to its limit", kept, "", bar=at_least(_KNOWLEDGE_BAR)),
    ]
    header = ("role", "lines", "then", "words", "learnings", "all")
    return Figures(tuple(rows), tables=(Table("Quality of a pruned memory", header, tuple(lines)),))


def _made_learnings() -> list[Judged]:
    return [judged for judged in LEARNINGS if not FILLER.intersection(judged.whole)]


def _learnings_only() -> str:
    """Return a file of nothing but learnings, about 490 lines, most of which say little."""
    blocks = []
    for number in range(22):
        items = [LEARNINGS[number].written] if number < len(LEARNINGS) else []
        items += [f"Round {number}.{n} went as planned and took about as long as the ones before." for n in range(7)]
        text = "\n\n".join(f"{place}. {item}" for place, item in enumerate(items, start=1))
        day = date(2026, 3, 1) + timedelta(days=5 * number)
        blocks.append(
            f"## Inscribed \u2014 Review {number:04} ({day})\n\n**Source**: `rune:review {number}`\n\n{text}\n"
        )
    rest = "\n\n".join(f"{n}. {judged.written}" for n, judged in enumerate(LEARNINGS[22:], start=1))
    blocks.append(f"## Inscribed \u2014 Review last (2026-07-01)\n\n**Source**: `rune:review last`\n\n{rest}\n")
    return "# Reviewer Echoes\n\n" + "\n".join(blocks)


def _prune(text: str, *, days: int) -> str:
    document = _read(text)
    for day in range(days):
        plan = plan_prune("reviewer", document, Facts(), PolicySettings(), _TODAY + timedelta(days=day))
        document = document if plan.memory is None else _read(plan.memory.decode())
    return document.render().decode()


def _compress(text: str) -> str:
    plan = plan_compress("reviewer", _read(text), Facts(), PolicySettings(), _TODAY)
    return text if plan.knowledge is None else plan.knowledge.decode()


def _real_roles() -> Iterator[tuple[str, str, list[Judged], list[Judged]]]:
    root = corpus()
    if root is None or not (root / "quality/gold.json").is_file():
        return
    gold = json.loads((root / "quality/gold.json").read_text())
    for path in sorted(root.glob("real-echoes/*/MEMORY.md")):
        mine = [item for item in gold if item["role"] == path.parent.name]
        judged = [(item["kind"], _from_gold(item)) for item in mine]
        yield (
            path.parent.name,
            path.read_text(),
            [item for kind, item in judged if kind == "learning"],
            [item for kind, item in judged if kind != "learning"],
        )


def _from_gold(item: dict[str, object]) -> Judged:
    whole, trap = item["must_have_keywords"], item.get("gist_keywords") or item["must_have_keywords"]
    assert isinstance(whole, list)
    assert isinstance(trap, list)
    weight = item["weight"]
    assert isinstance(weight, float | int)
    return Judged(str(item["text"]), tuple(whole), tuple(trap), float(weight))


def _read(text: str) -> Document:
    document = parse(text.encode())
    assert isinstance(document, Document)
    return document

"""The made memory file of a reviewer: what a few busy months leave where nobody prunes.

Its learnings and telling observations are in `judged`. The rest is what real hooks leave: tasks of which only the title
says anything, orders to look at something, repetitions, figures of runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from tests.bench.quality.judged import LEARNINGS, OBSERVATIONS

FIRST_DAY = date(2026, 3, 1)
_LINES = 2_000
_AREAS = ("billing", "search", "uploads", "mail queue", "admin pages", "import", "mobile sync", "reports")
_AGENTS = ("lint-warden", "test-oracle", "style-keeper", "doc-scout", "depth-reader", "plan-auditor")
_ORDERS = (
    "You are {agent}. Read the plan sections about {area} in tmp/run/{run}/plan.md and look for gaps.",
    "Review the changes of {area} for correctness. Write your report to tmp/run/{run}/{agent}.md and nothing else.",
    "Inspect {area} against the acceptance criteria of the plan. Assess error handling, naming and test coverage.",
    "Summarize what the other agents reported about {area} and rank it.",
)
_TITLES = ("Review {area}", "{agent}: inspect {area}", "Enrich section {number} for {area}", "{agent}")


def reviewer_file() -> str:
    """Return the file: its learnings in entries with figures, its observations in the order of their days."""
    blocks = [*_entries(), *_telling()]
    lines = sum(block.count("\n") for block in blocks) + 2
    noise = _routine()
    while lines < _LINES:
        blocks.append(next(noise))
        lines += blocks[-1].count("\n")
    heads, observations = blocks[: len(list(_entries()))], blocks[len(list(_entries())) :]
    observations.sort(key=lambda block: block.partition("\n")[0][-11:])
    return "# Reviewer Echoes\n\n" + "".join([*heads, *observations])


def _entries() -> Iterator[str]:
    """Yield the inscribed entries: metrics, then learnings, with the layout that agents write."""
    for number in range(0, len(LEARNINGS), 6):
        day = FIRST_DAY + timedelta(days=7 * number)
        items = "\n\n".join(
            f"{place}. {judged.written}" for place, judged in enumerate(LEARNINGS[number : number + 6], start=1)
        )
        yield (
            f"## Inscribed \u2014 Review {number * 7919:08x} ({day})\n\n"
            f"**Source**: `rune:review {number * 7919:08x}`\n**Confidence**: HIGH ({number + 3} agents)\n\n"
            f"### Review Metrics\n\n- Files changed: {number + 11}\n- Findings: {3 * number + 20} total\n"
            f"- Rounds: {number % 3 + 1}\n- Fixed: {2 * number + 9}\n- Duration: {number + 40} minutes\n\n"
            f"### Key Learnings\n\n{items}\n\n---\n\n"
        )


def _telling() -> Iterator[str]:
    for number, judged in enumerate(OBSERVATIONS):
        title, _, context = judged.written.partition("\n")
        yield _observation(title, context, f"mend-fixer-{number % 4 + 1}", number * 5 % 80, f"rune-mend-{number:06d}")


def _routine() -> Iterator[str]:
    number = 0
    while True:
        area, agent = _AREAS[number % len(_AREAS)], _AGENTS[number * 5 % len(_AGENTS)]
        run = f"run-{1_770_000_000 + 977 * number}"
        values = {"area": area, "agent": agent, "run": run, "number": number % 9}
        title = _TITLES[number * 3 % len(_TITLES)].format(**values)
        context = _ORDERS[number * 7 % len(_ORDERS)].format(**values)
        yield _observation(title, context, agent, number * 11 % 80, f"rune-review-{number // 6:06d}")
        number += 1


def _observation(title: str, context: str, agent: str, day: int, team: str) -> str:
    return (
        f"## Observations \u2014 Task: {title} ({FIRST_DAY + timedelta(days=day)})\n"
        "- **layer**: observations\n"
        f"**Source**: `{team}/{agent}`\n"
        "- **Confidence**: LOW (auto-generated, unverified)\n"
        f"- Task completed: {title}\n"
        f"- Context: {context}\n\n"
    )

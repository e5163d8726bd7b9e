"""Reports of workflows as their templates have them, made up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

_SYLLABLES = (
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ka",
    "le",
    "mi",
    "no",
    "pu",
    "ra",
    "se",
    "ti",
    "vo",
    "zu",
    "wek",
    "lin",
    "tor",
)


RECURRING = (
    ("SEC", "Archive member path escapes the target folder", "ledger/importer.py", "P1"),
    ("SEC", "Session token printed to the log", "app/session.py", "P1"),
    ("BACK", "Lock not released when the loader raises", "cache/store.py", "P1"),
    ("BACK", "Amounts rounded in binary floats", "ledger/amounts.py", "P2"),
    ("BACK", "Expiry compared with local time", "cache/store.py", "P2"),
    ("PERF", "One database query for every row", "app/listing.py", "P2"),
    ("QUAL", "Broad except hides the cause", "app/worker.py", "P2"),
)
"""Flaws that come back: category, title, file, severity."""


class MadeFinding(NamedTuple):
    id: str
    title: str
    file: str
    line: int
    severity: str
    text: str = "Something breaks"
    fix: str = "Correct it"


def marker(finding: MadeFinding, nonce: str) -> str:
    """Return the opening marker of a finding."""
    place = f'file="{finding.file}" line="{finding.line}"'
    return f'<!-- RUNE:FINDING nonce="{nonce}" id="{finding.id}" {place} severity="{finding.severity}" -->'


def tome(
    findings: Sequence[MadeFinding], *, nonce: str = "0badcafe", day: date = date(2026, 11, 3), kind: str = "Review"
) -> str:
    """Return a report in the canonical form."""
    parts = [f"# TOME \u2014 {kind} Summary", "", f"**Date:** {day.isoformat()}T10:00:00Z", ""]
    for each in findings:
        parts += [
            marker(each, nonce),
            f"- [ ] **[{each.id}] {each.title}** in `{each.file}:{each.line}`",
            f"  - **Issue:** {each.text}",
            f"  - **Fix:** {each.fix}",
            f'<!-- /RUNE:FINDING id="{each.id}" -->',
            "",
        ]
    return "\n".join(parts)


def _word(rng: random.Random) -> str:
    return "".join(rng.choice(_SYLLABLES) for _ in range(3))


def month_of_reviews(count: int = 200, *, seed: int = 7, month: date = date(2026, 11, 1)) -> list[str]:
    """Return the reviews of a month: a few flaws come back in other words and lines, and most appear once."""
    rng = random.Random(seed)
    reports = []
    for number in range(count):
        rows: list[tuple[str, str, str, str]] = []
        if number % 3 == 0:
            category, title, file, severity = RECURRING[rng.randrange(len(RECURRING))]
            rows.append((category, rng.choice((title, f"{title} again", f"Still: {title.lower()}")), file, severity))
        for _ in range(rng.randrange(3, 9)):
            title = " ".join(_word(rng) for _ in range(5)).capitalize()
            category, severity = rng.choice(("SEC", "BACK", "QUAL", "DOC", "PERF")), rng.choice(("P1", "P2", "P3"))
            rows.append((category, title, f"{_word(rng)}/{_word(rng)}.py", severity))
        findings = [
            MadeFinding(f"{category}-{index:03}", title, file, rng.randrange(1, 400), severity)
            for index, (category, title, file, severity) in enumerate(rows, start=1)
        ]
        day = month + timedelta(days=number * 27 // count)
        reports.append(tome(findings, nonce=f"{rng.getrandbits(32):08x}", day=day))
    return reports

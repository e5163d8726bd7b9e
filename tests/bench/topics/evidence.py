"""Find what became of a thousand cited lines in made-up histories, and measure how long that takes."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from datetime import date
from pathlib import Path

from echod.evidence.verifier import EvidenceVerifier
from tests.bench.figures import Figures, Row, at_least, below
from tests.bench.histories import Claim, make_history
from tests.bench.workspace import Workspace

_HISTORIES, _FILES, _FUNCTIONS = 5, 20, 10
_DAY = date(2026, 10, 1)
_STATES = ("valid", "moved", "changed", "gone")


def measure(space: Workspace) -> Figures:
    """Precision and recall by state, over histories that are loose, packed and with moved working trees."""
    outcomes: Counter[tuple[str, str]] = Counter()
    seconds: list[float] = []
    wrong: Counter[str] = Counter()
    for number in range(_HISTORIES):
        project = space.directory(f"history{number}")
        claims = make_history(project, number, files=_FILES, functions=_FUNCTIONS)
        if number % 2:
            subprocess.run(["git", "gc", "-q"], cwd=project, check=True)
        for claim, state, took in check_claims(project, claims):
            outcomes[claim.expected, state] += 1
            seconds.append(took)
            if claim.expected != state:
                wrong[f"{claim.what}: {claim.expected} as {state}"] += 1
    rows: list[Row] = []
    for state in _STATES:
        right = outcomes[state, state]
        expected = sum(n for (truth, _), n in outcomes.items() if truth == state)
        found = sum(n for (_, answer), n in outcomes.items() if answer == state)
        rows.append(Row(f"{state}: precision", right / max(1, found), "", bar=at_least(0.95), note=f"{found} found"))
        rows.append(Row(f"{state}: recall", right / max(1, expected), "", bar=at_least(0.95), note=f"{expected} made"))
    ordered = sorted(seconds)
    note = f"the slowest tenth {ordered[len(ordered) * 9 // 10] * 1000:.1f} ms; {len(ordered)} claims"
    rows.append(Row("a result", sum(seconds) / len(seconds) * 1000, "ms", bar=below(20), note=note))
    if wrong:
        rows.append(
            Row("wrong", sum(wrong.values()), "claims", note="; ".join(f"{n} {w}" for w, n in wrong.most_common(4)))
        )
    return Figures(tuple(rows))


def check_claims(project: Path, claims: list[Claim]) -> list[tuple[Claim, str, float]]:
    """Return each claim with the state that was found, and the seconds that it took."""
    verifier = EvidenceVerifier(project, time.time())
    found = []
    for claim in claims:
        begin = time.perf_counter()
        (checked,) = verifier.check([claim.cite], _DAY, {}).citations
        found.append((claim, checked.state.value, time.perf_counter() - begin))
    verifier.close()
    return found

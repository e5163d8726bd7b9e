"""Find what became of cited lines in made-up and in real histories, and measure how long that takes.

`EVIDENCE_HISTORIES` names a directory of git repositories. Without it the history of this project is the real one.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from functools import partial
from pathlib import Path

from echod.evidence.verifier import EvidenceVerifier
from tests.bench.figures import Curve, Figures, Row, at_least, below
from tests.bench.histories import DOUBTFUL, Claim, make_history
from tests.bench.real_histories import GitHistory, find_spans, make_claims
from tests.bench.workspace import Workspace

_HISTORIES, _FILES, _FUNCTIONS = 5, 20, 10
_SIZES = (15, 40, 100)
"""Numbers of files."""
_DAY = date(2026, 10, 1)
_DAYS, _ENDS, _CLAIMS = (1, 30, 120, 365), 6, 60
_MIN_CLAIMS = 20
"""Claims of a state of which a share says something."""
_STATES = ("valid", "moved", "changed", "gone")


def measure(space: Workspace) -> Figures:
    """Precision and recall by state, over histories that are loose, packed and with moved working trees."""
    outcomes: Counter[tuple[str, str]] = Counter()
    seconds: list[float] = []
    wrong: Counter[str] = Counter()
    doubtful = 0
    for number in range(_HISTORIES):
        project = space.directory(f"history{number}")
        claims = make_history(project, number, files=_FILES, functions=_FUNCTIONS)
        if number % 2:
            subprocess.run(["git", "gc", "-q"], cwd=project, check=True)
        judged = [claim for claim in claims if claim.expected != DOUBTFUL]
        doubtful += len(claims) - len(judged)
        for claim, state, took in check_claims(project, judged):
            outcomes[claim.expected, state] += 1
            seconds.append(took)
            if claim.expected != state:
                wrong[f"{claim.what}: {claim.expected} as {state}"] += 1
    doubts = Row("doubtful", doubtful, "claims", note="not judged: a new function in the place of a deleted one")
    rows = [*_rows("", outcomes, seconds, wrong), doubts, *_real_rows(space)]
    return Figures(
        tuple(rows), (Curve("check every citation", "citations", tuple(map(partial(_cost, space), _SIZES))),)
    )


def _cost(space: Workspace, files: int) -> tuple[float, float]:
    """Return the number of citations of a project of so many files, and the seconds of checking all of them."""
    project = space.directory(f"sized{files}")
    claims = make_history(project, 1, files=files, functions=_FUNCTIONS)
    return len(claims), sum(seconds for _, _, seconds in check_claims(project, claims))


def _rows(
    name: str, outcomes: Counter[tuple[str, str]], seconds: Sequence[float], wrong: Counter[str]
) -> Iterable[Row]:
    for state in _STATES:
        right = outcomes[state, state]
        expected = sum(n for (truth, _), n in outcomes.items() if truth == state)
        found = sum(n for (_, answer), n in outcomes.items() if answer == state)
        bar = at_least(0.95) if expected >= _MIN_CLAIMS else None
        yield Row(f"{name}{state}: precision", right / max(1, found), "", bar=bar, note=f"{found} found")
        yield Row(f"{name}{state}: recall", right / max(1, expected), "", bar=bar, note=f"{expected} made")
    ordered = sorted(seconds)
    note = f"the slowest tenth {ordered[len(ordered) * 9 // 10] * 1000:.1f} ms; {len(ordered)} claims"
    yield Row(f"{name}a result", sum(seconds) / len(seconds) * 1000, "ms", bar=below(20), note=note)
    if wrong:
        most = "; ".join(f"{n} {w}" for w, n in wrong.most_common(4))
        yield Row(f"{name}wrong", sum(wrong.values()), "claims", note=most)


def _real_rows(space: Workspace) -> Iterable[Row]:
    """Yield the same for spans of real histories, and how many claims are doubtful."""
    outcomes: Counter[tuple[str, str]] = Counter()
    seconds: list[float] = []
    wrong: Counter[str] = Counter()
    doubts: Counter[str] = Counter()
    repositories = _repositories()
    for number, repository in enumerate(repositories):
        project = space.disk / f"clone{number}"
        subprocess.run(["git", "clone", "-q", "--shared", "-n", str(repository), str(project)], check=True)
        history = GitHistory(project)
        for span in find_spans(history, _DAYS, _ENDS):
            claims = make_claims(history, span, _CLAIMS, number)
            history.ask("checkout", "-q", "-f", span.head)
            history.ask("clean", "-fdxq")
            doubts.update(claim.what for claim in claims if claim.expected == DOUBTFUL)
            judged = [claim for claim in claims if claim.expected != DOUBTFUL]
            for claim, state, took in check_claims(project, judged, span.day):
                outcomes[claim.expected, state] += 1
                seconds.append(took)
                if claim.expected != state:
                    wrong[f"{claim.what}: {claim.expected} as {state}"] += 1
    if not seconds:
        yield Row("real histories", 0, "claims", note="no repository with commits of several days")
        return
    yield from _rows("real histories, ", outcomes, seconds, wrong)
    most = "; ".join(f"{n} {what}" for what, n in doubts.most_common(3))
    note = f"{len(repositories)} repositories; not judged: {most or 'none'}"
    yield Row("real histories, doubtful", doubts.total(), "claims", note=note)


def _repositories() -> list[Path]:
    """Return the repositories of `EVIDENCE_HISTORIES`, else this project's own if it is one."""
    root = os.environ.get("EVIDENCE_HISTORIES")
    if root:
        found = [path for path in sorted(Path(root).iterdir()) if (path / ".git").exists() or (path / "HEAD").exists()]
        return found or [path for path in sorted(Path(root).glob("*/*")) if (path / "HEAD").exists()]
    own = Path(__file__).parents[3]
    return [own] if (own / ".git").exists() else []


def check_claims(project: Path, claims: list[Claim], day: date = _DAY) -> list[tuple[Claim, str, float]]:
    """Return each claim with the state that was found, and the seconds of processor time that it took."""
    verifier = EvidenceVerifier(project, time.time())
    found = []
    for claim in claims:
        begin = time.process_time()
        (checked,) = verifier.check([claim.cite], day, {}).citations
        found.append((claim, checked.state.value, time.process_time() - begin))
    verifier.close()
    return found

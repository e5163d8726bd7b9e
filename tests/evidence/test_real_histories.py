"""The benchmark follows lines through a history by rules that do not depend on what it measures."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.bench.real_histories import DOUBTFUL, FollowedClaim, GitHistory, Span, _follow, _judge
from tests.evidence.conftest import DAY, History, distinct_lines

LINES = distinct_lines(40)
PATH = "src/app.py"
CITED = LINES[9:12]


def label(history: History, *steps: Sequence[str] | None, path: str = PATH) -> str:
    """Commit contents of a file one after the other (None: removed), and return the truth about lines 10 to 12."""
    history.write(PATH, LINES)
    history.commit()
    repository = GitHistory(history.root)
    base = repository.ask("rev-parse", "HEAD").strip()
    for content in steps:
        (history.root / PATH).unlink(missing_ok=True)
        if content is not None:
            history.write(path, list(content))
        history.commit()
    claim = FollowedClaim(PATH, 10, 12, CITED)
    span = Span(base, repository.ask("rev-parse", "HEAD").strip(), DAY)
    for step in repository.steps(span.base, span.head):
        _follow([claim], step)
    return _judge(claim, repository, span, [*LINES, ""]).expected


EDITED = [*LINES[:9], LINES[9].replace("(", "(limit, "), *LINES[10:]]
REWRITTEN = [*LINES[:9], "load(path)", "drain(queue)", "close(file)", *LINES[12:]]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([LINES[:30]], "valid"),
        ([["# new", *LINES]], "moved"),
        ([[*LINES[:9], *LINES[12:], *CITED]], "moved"),
        ([EDITED], "changed"),
        ([EDITED, ["# new", *EDITED]], "changed"),
        ([EDITED, LINES], "valid"),
        ([REWRITTEN], "changed"),
        ([[*LINES[:9], LINES[9], "x = 1", *LINES[10:]]], "changed"),
        ([[line.replace("(", "(\n    ") for line in LINES]], "moved"),
        ([[*LINES[:9], *LINES[12:]]], "gone"),
        ([EDITED, [*LINES[:9], *LINES[12:]]], "gone"),
        ([None], "gone"),
        ([None, LINES[:5]], DOUBTFUL),
        ([["entirely", "different", "text"]], DOUBTFUL),
    ],
)
def test_the_truth_follows_the_commits(history: History, steps: list[list[str] | None], expected: str) -> None:
    assert label(history, *steps) == expected


def test_lines_of_a_renamed_file_are_moved(history: History) -> None:
    assert label(history, LINES, path="src/main.py") == "moved"

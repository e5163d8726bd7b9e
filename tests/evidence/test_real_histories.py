"""The benchmark follows lines through a history by rules that do not depend on what it measures."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.bench.histories import DOUBTFUL, MadeFile, MadeFunction
from tests.bench.real_histories import FollowedClaim, GitHistory, Span, _follow, _judge
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


def label_in(history: History, first: int, last: int, after: dict[str, list[str]]) -> str:
    """Replace the file by others in one commit, and return the truth about lines of it."""
    history.write(PATH, LINES)
    history.commit()
    repository = GitHistory(history.root)
    base = repository.ask("rev-parse", "HEAD").strip()
    (history.root / PATH).unlink()
    for path, lines in after.items():
        history.write(path, lines)
    history.commit()
    claim = FollowedClaim(PATH, first, last, LINES[first - 1 : last])
    span = Span(base, repository.ask("rev-parse", "HEAD").strip(), DAY)
    for step in repository.steps(span.base, span.head):
        _follow([claim], step)
    return _judge(claim, repository, span, [*LINES, ""]).expected


def test_lines_of_a_removed_file_that_are_in_several_others_are_doubtful(history: History) -> None:
    others = distinct_lines(80)[40:]
    assert label_in(history, 10, 12, {"lib/one.py": [*CITED, *others[:20]], "lib/two.py": [*CITED, *others[20:]]}) == (
        DOUBTFUL
    )


def test_a_line_of_a_removed_file_is_followed_only_with_a_line_beside_it(history: History) -> None:
    others = distinct_lines(80)[40:]
    assert label_in(history, 10, 10, {"lib/one.py": [*others[:9], LINES[9], *others[9:]]}) == DOUBTFUL
    assert label_in(history, 10, 10, {"lib/two.py": [*others[:9], *LINES[8:10], *others[9:]]}) == "moved"


def test_a_removed_file_of_which_a_third_is_in_a_new_one_is_doubtful(history: History) -> None:
    others = distinct_lines(80)[40:]
    assert label_in(history, 10, 12, {"lib/one.py": [*others[:20], *LINES[20:34]]}) == DOUBTFUL
    assert label_in(history, 10, 12, {"lib/two.py": others}) == "gone"


def test_a_made_up_deletion_is_doubtful_where_a_new_function_is() -> None:
    old, deleted, new, moved = (MadeFunction([name]) for name in ("old", "deleted", "new", "moved"))
    deleted.is_deleted, new.is_new, moved.is_moved = True, True, True
    assert not MadeFile("a.py", [old, deleted, moved, old, new]).has_new_beside(deleted)
    assert MadeFile("a.py", [old, deleted, moved, new, old]).has_new_beside(deleted)


def test_lines_of_a_renamed_file_are_moved(history: History) -> None:
    assert label(history, LINES, path="src/main.py") == "moved"

"""The arguments of `echod undo`: a job or --last, and a project."""

from __future__ import annotations

from pathlib import Path

import pytest

from echod.cli.commands.undo import parse_job_and_path
from echod.errors import UsageError


@pytest.mark.parametrize(
    ("words", "last", "meant"),
    [
        (["17"], False, (17, None)),
        (["17", "a/project"], False, (17, Path("a/project"))),
        ([], True, (None, None)),
        (["a/project"], True, (None, Path("a/project"))),
    ],
    ids=["job", "job-in-project", "last", "last-in-project"],
)
def test_a_job_or_the_last_one_with_an_optional_project(
    words: list[str], last: bool, meant: tuple[int | None, Path | None]
) -> None:
    assert parse_job_and_path(words, last=last) == meant


@pytest.mark.parametrize(
    ("words", "last", "word"),
    [
        ([], False, "--last"),
        (["ward"], False, "job's number"),
        (["9" * 20], False, "job's number"),
        (["9" * 5000], False, "job's number"),
        (["1", "a", "b"], False, "one project"),
        (["17"], True, "one project"),
        (["a", "b"], True, "one project"),
    ],
    ids=[
        "nothing",
        "no-number",
        "larger-than-any",
        "larger-than-python-reads",
        "two-projects",
        "last-and-number",
        "last-and-two",
    ],
)
def test_contradictory_arguments_are_refused(words: list[str], last: bool, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        parse_job_and_path(words, last=last)

"""The journal of a store can be forgotten as a whole, also where that was interrupted before."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from echod.store.journal.retention import forget, journal_bytes
from tests.store.conftest import Place, consolidation, entry
from tests.support import in_child


@pytest.fixture
def used(place: Place) -> Place:
    """A place whose journal has something to tell."""
    commits(place)
    return place


def commits(place: Place) -> None:
    place.findings("agent", entry("Third"))
    with place.engine().open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))


def killed_while_it_forgets(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files go one by one; the process ends after the first."""

    def half(path: Path) -> None:
        next(found for found in Path(path).rglob("*") if found.is_file()).unlink()
        os._exit(137)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", half)
        assert in_child(lambda: forget(place.journal, place.store)) == 137


def beside(place: Place) -> set[str]:
    """What lies where the journal lies, but for the project."""
    return {path.name for path in place.journal.parent.iterdir()} - {place.project.name}


@pytest.mark.parametrize("used_since", [False, True], ids=["at once", "after the store was used again"])
def test_what_an_interrupted_forgetting_left_holds_up_no_later_one(
    used: Place, monkeypatch: pytest.MonkeyPatch, used_since: bool
) -> None:
    killed_while_it_forgets(used, monkeypatch)
    assert journal_bytes(used.journal, used.store) == 0
    if used_since:
        commits(used)

    forget(used.journal, used.store)

    assert used.engine().history([used.store]) == ()
    assert beside(used) == {"journal"}
    assert list(used.journal.iterdir()) == []


def test_and_is_tidied_up_with_the_rest_of_the_journal(used: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_while_it_forgets(used, monkeypatch)
    assert len(beside(used)) == 2

    used.engine().retain()

    assert beside(used) == {"journal"}

"""Whoever only looks leaves no trace: not in the project, not in the journal."""

from __future__ import annotations

import pytest

from echod.store.errors import Refused
from tests.store.conftest import HEADER, Place, consolidation, entry


def traces(place: Place) -> dict[str, int]:
    found = [*place.project.rglob("*"), *place.journal.rglob("*")]
    return {str(path): path.stat().st_mtime_ns for path in found}


def test_peeking_changes_nothing_even_where_something_is_to_be_healed(place: Place) -> None:
    place.findings("agent", entry("Third"), entry("Fourth"))
    with place.engine().open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))
    stale = HEADER + entry("First") + entry("Second") + entry("Theirs")
    place.memory.write_bytes(stale)
    before = traces(place)

    view = place.engine().peek(place.role)

    assert view.memory.data == stale
    assert traces(place) == before


def test_looking_is_not_held_up_by_another_writers_lock(place: Place) -> None:
    (place.project / "tmp/.rune-echo-lock-reviewer").mkdir()

    assert place.engine().peek(place.role).memory.data == place.memory.read_bytes()


def test_a_session_that_only_looks_commits_nothing(place: Place) -> None:
    place.findings("agent", entry("Third"))
    before = traces(place)

    with place.engine().only_look(place.role) as session, pytest.raises(Refused, match="only to look"):
        session.commit(1, consolidation(session.read()))

    assert traces(place) == before

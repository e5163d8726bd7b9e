"""The upstream search index is told that memory changed, where somebody listens."""

from __future__ import annotations

from tests.store.conftest import Place, consolidation, entry


def consolidate(place: Place) -> None:
    place.findings("agent", entry("Third"))
    with place.engine().open_role(place.role) as session:
        session.commit(1, consolidation(session.read()))


def test_the_signal_is_given_where_an_index_lies_in_the_store(place: Place) -> None:
    (place.store.root / ".search-index.db").touch()

    consolidate(place)

    assert (place.project / "tmp/.rune-signals/.echo-dirty").exists()


def test_the_signal_is_given_where_signals_are_exchanged(place: Place) -> None:
    (place.project / "tmp/.rune-signals").mkdir()

    consolidate(place)

    assert (place.project / "tmp/.rune-signals/.echo-dirty").exists()


def test_nothing_is_made_where_nobody_listens(place: Place) -> None:
    consolidate(place)

    assert list((place.project / "tmp").iterdir()) == []


def test_a_signal_directory_that_leads_out_of_the_project_is_not_followed(place: Place) -> None:
    outside = place.project.parent / "outside"
    outside.mkdir()
    (place.store.root / ".search-index.db").touch()
    (place.project / "tmp/.rune-signals").symlink_to(outside)

    consolidate(place)

    assert list(outside.iterdir()) == []

"""The upstream search index is notified of memory changes if it listens."""

from __future__ import annotations

from tests.store.conftest import Sandbox, entry, plan_consolidation


def consolidate(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))


def test_the_signal_is_touched_if_there_is_an_index_in_the_store(sandbox: Sandbox) -> None:
    (sandbox.store.root / ".search-index.db").touch()

    consolidate(sandbox)

    assert (sandbox.project / "tmp/.rune-signals/.echo-dirty").exists()


def test_the_signal_is_given_where_signals_are_exchanged(sandbox: Sandbox) -> None:
    (sandbox.project / "tmp/.rune-signals").mkdir()

    consolidate(sandbox)

    assert (sandbox.project / "tmp/.rune-signals/.echo-dirty").exists()


def test_nothing_is_created_without_a_listener(sandbox: Sandbox) -> None:
    consolidate(sandbox)

    assert list((sandbox.project / "tmp").iterdir()) == []


def test_a_signal_directory_that_leads_out_of_the_project_is_not_followed(sandbox: Sandbox) -> None:
    outside = sandbox.project.parent / "outside"
    outside.mkdir()
    (sandbox.store.root / ".search-index.db").touch()
    (sandbox.project / "tmp/.rune-signals").symlink_to(outside)

    consolidate(sandbox)

    assert list(outside.iterdir()) == []

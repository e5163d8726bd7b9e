"""Read-only callers leave no trace, neither in the project nor in the journal."""

from __future__ import annotations

import pytest

from echod.store.errors import RefusedError
from tests.store.conftest import HEADER, Sandbox, entry, plan_consolidation


def modification_times(sandbox: Sandbox) -> dict[str, int]:
    found = [*sandbox.project.rglob("*"), *sandbox.journal.rglob("*")]
    return {str(path): path.stat().st_mtime_ns for path in found}


def test_peeking_changes_nothing_even_where_something_is_to_be_healed(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"), entry("Fourth"))
    with sandbox.engine().open_role(sandbox.role) as session:
        session.commit(1, plan_consolidation(session.read()))
    stale = HEADER + entry("First") + entry("Second") + entry("Theirs")
    sandbox.memory.write_bytes(stale)
    before = modification_times(sandbox)

    view = sandbox.engine().read_role(sandbox.role)

    assert view.memory.data == stale
    assert modification_times(sandbox) == before


def test_reading_does_not_wait_for_another_writers_lock(sandbox: Sandbox) -> None:
    (sandbox.project / "tmp/.rune-echo-lock-reviewer").mkdir()

    assert sandbox.engine().read_role(sandbox.role).memory.data == sandbox.memory.read_bytes()


def test_a_read_only_session_commits_nothing(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    before = modification_times(sandbox)

    with sandbox.engine().open_read_only(sandbox.role) as session, pytest.raises(RefusedError, match="read-only"):
        session.commit(1, plan_consolidation(session.read()))

    assert modification_times(sandbox) == before

"""The commit layer holds every job to the law of conservation."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from echod.store.changes import Append, ChangeSet, CommitResult, ConsumeFindings, Origin, Write
from echod.store.errors import RefusedError
from tests.store.conftest import HEADER, Sandbox, entry

FIRST, SECOND = entry("First"), entry("Second")
BOTH = HEADER + FIRST + SECOND
MEMORY = PurePosixPath("reviewer/MEMORY.md")
ARCHIVE = PurePosixPath("reviewer/archive/pruned-2026.md")


def attempt(sandbox: Sandbox, after: bytes, *appends: Append, origin: Origin = Origin.SERVICE) -> object:
    with sandbox.engine().open_role(sandbox.role) as session:
        write = Write(MEMORY, session.read().memory.digest, after)
        return session.commit(1, ChangeSet("prune", "reviewer", "", (write,), appends, origin=origin))


def test_a_job_that_would_lose_an_entry_is_refused_by_name(sandbox: Sandbox) -> None:
    with pytest.raises(RefusedError, match=r"First \(2026-11-01\).* would be lost"):
        attempt(sandbox, HEADER + SECOND)

    assert sandbox.visible_files() == {"MEMORY.md": BOTH}
    assert sandbox.hidden_names() == []


def test_the_same_job_is_done_if_it_archives_the_entry(sandbox: Sandbox) -> None:
    assert attempt(sandbox, HEADER + SECOND, Append(ARCHIVE, FIRST)) == CommitResult(1)


def test_a_protected_block_is_changed_only_for_the_user(sandbox: Sandbox) -> None:
    etched = entry("Law", layer="Etched")
    sandbox.memory.write_bytes(BOTH + etched)

    with pytest.raises(RefusedError, match="protected"):
        attempt(sandbox, BOTH, Append(ARCHIVE, etched))

    assert attempt(sandbox, BOTH, Append(ARCHIVE, etched), origin=Origin.USER) == CommitResult(1)


def test_an_unreadable_memory_is_never_written_over(sandbox: Sandbox) -> None:
    broken = BOTH + b"\xff\n"
    sandbox.memory.write_bytes(broken)

    with pytest.raises(RefusedError, match="not UTF-8"):
        attempt(sandbox, BOTH)

    assert sandbox.memory.read_bytes() == broken


def test_a_memory_with_conflict_markers_is_never_written_over(sandbox: Sandbox) -> None:
    broken = HEADER + b"<<<<<<< ours\n" + FIRST + b"=======\n" + SECOND + b">>>>>>> theirs\n"
    sandbox.memory.write_bytes(broken)

    with pytest.raises(RefusedError, match="conflict markers"):
        attempt(sandbox, BOTH)


def test_findings_are_archived_in_full(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"), entry("Fourth"))

    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        consume = ConsumeFindings(
            PurePosixPath("reviewer/agent-findings.md"),
            view.findings[0].digest or "",
            PurePosixPath("reviewer/archive/findings/agent.md"),
            entry("Third"),
        )
        with pytest.raises(RefusedError, match="Fourth"):
            session.commit(1, ChangeSet("consolidate", "reviewer", "", (), (), (consume,)))

    assert (sandbox.role.path / "agent-findings.md").exists()


def test_unreadable_findings_go_to_quarantine_byte_for_byte(sandbox: Sandbox) -> None:
    broken = b"## X\n\xff\xfe\n"
    sandbox.findings("agent", broken)

    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        consume = ConsumeFindings(
            PurePosixPath("reviewer/agent-findings.md"),
            view.findings[0].digest or "",
            PurePosixPath("reviewer/quarantine/agent-findings.md"),
            broken,
        )
        session.commit(1, ChangeSet("consolidate", "reviewer", "", (), (), (consume,)))

    assert sandbox.visible_files()["quarantine/agent-findings.md"] == broken

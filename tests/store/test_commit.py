"""One commit: its effect, its refusals, and a kill at any step."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

import pytest

from echod.files import content_digest
from echod.store.changes import Append, ChangeSet, CommitConflict, CommitResult, Write
from echod.store.commit.context import CommitStep
from echod.store.errors import BusyError, RefusedError, StoreError
from tests.store.conftest import HEADER, Sandbox, die_at, entry, plan_consolidation
from tests.support import run_in_child

BOTH = HEADER + entry("First") + entry("Second")


def commit_findings(sandbox: Sandbox, trace: object = None, archive: bytes = b"") -> CommitResult | CommitConflict:
    engine = sandbox.engine(trace) if trace else sandbox.engine()  # type: ignore[arg-type]
    with engine.open_role(sandbox.role) as session:
        return session.commit(1, plan_consolidation(session.read(), archive=archive))


def test_findings_become_memory_and_stay_in_the_archive(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))

    outcome = commit_findings(sandbox)

    assert outcome == CommitResult(1)
    assert sandbox.visible_files() == {
        "MEMORY.md": BOTH + entry("Third"),
        "archive/findings/2026-11-27-agent-findings.md": entry("Third"),
    }


def test_an_unchanged_result_writes_nothing(sandbox: Sandbox) -> None:
    before = sandbox.memory.stat()

    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        outcome = session.commit(1, ChangeSet("x", "reviewer", "", (_rewrite(sandbox, view.memory.text),)))

    assert outcome == CommitResult(None)
    after = sandbox.memory.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (before.st_ino, before.st_mtime_ns, before.st_size)


def test_the_first_memory_file_is_created(sandbox: Sandbox) -> None:
    sandbox.memory.unlink()
    sandbox.findings("agent", entry("Third"))

    commit_findings(sandbox)

    assert sandbox.memory.read_bytes() == HEADER + entry("Third")


def test_mode_owner_and_attributes_are_kept(sandbox: Sandbox) -> None:
    sandbox.memory.chmod(0o640)
    if hasattr(os, "setxattr"):
        os.setxattr(sandbox.memory, "user.colour", b"blue")
    sandbox.findings("agent", entry("Third"))

    commit_findings(sandbox)

    assert stat.S_IMODE(sandbox.memory.stat().st_mode) == 0o640
    if hasattr(os, "getxattr"):
        assert os.getxattr(sandbox.memory, "user.colour") == b"blue"


def test_a_backup_is_private(sandbox: Sandbox) -> None:
    with sandbox.engine().open_role(sandbox.role) as session:
        backup = Write(PurePosixPath("reviewer/archive/MEMORY-2026-11-27.md"), None, BOTH)
        session.commit(1, ChangeSet("prune", "reviewer", "", (backup,)))

    assert stat.S_IMODE((sandbox.archive / "MEMORY-2026-11-27.md").stat().st_mode) == 0o600


def test_modification_time_never_goes_back(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    before = sandbox.memory.stat().st_mtime_ns

    commit_findings(sandbox)

    assert sandbox.memory.stat().st_mtime_ns >= before


def test_own_writes_are_known_by_their_time(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))

    commit_findings(sandbox)

    assert sandbox.engine().own_mtimes(sandbox.store) == {sandbox.memory: sandbox.memory.stat().st_mtime_ns}


def test_own_writes_to_archives_are_not_recorded(sandbox: Sandbox) -> None:
    role = PurePosixPath(sandbox.role.name)

    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        backup = Write(role / "archive/MEMORY-2026-11-28.md", None, view.memory.text)
        changed = Write(role / "MEMORY.md", view.memory.digest, view.memory.text + entry("Third"))
        session.commit(1, ChangeSet("prune", sandbox.role.name, "a backup", (changed, backup)))

    assert (sandbox.archive / "MEMORY-2026-11-28.md").exists()
    assert sandbox.engine().own_mtimes(sandbox.store).keys() == {sandbox.memory}


def test_a_plan_from_an_older_content_is_overtaken(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))

    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        sandbox.memory.write_bytes(BOTH + entry("Meanwhile"))
        outcome = session.commit(1, plan_consolidation(view, archive=b"x\n"))

    assert outcome == CommitConflict("reviewer/MEMORY.md")
    assert sandbox.visible_files() == {"MEMORY.md": BOTH + entry("Meanwhile"), "agent-findings.md": entry("Third")}
    assert sandbox.hidden_names() == []


def test_a_closed_gate_changes_nothing(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    before = sandbox.visible_files()

    with sandbox.engine().open_role(sandbox.role) as session, pytest.raises(BusyError, match="A workflow runs"):
        session.commit(1, plan_consolidation(session.read()), gate=lambda: "A workflow runs.")

    assert sandbox.visible_files() == before
    assert sandbox.hidden_names() == []


def test_consumed_findings_are_in_the_ledger(sandbox: Sandbox) -> None:
    found = sandbox.findings("agent", entry("Third")).read_bytes()

    commit_findings(sandbox)

    with sandbox.engine().open_role(sandbox.role) as session:
        assert session.read().consumed_keys == {f"key-{content_digest(found)}"}


def test_a_second_file_of_the_same_agent_gets_the_next_name(sandbox: Sandbox) -> None:
    for title in ("Third", "Fourth"):
        sandbox.findings("agent", entry(title))
        commit_findings(sandbox)

    assert sorted(p.name for p in (sandbox.archive / "findings").iterdir()) == [
        "2026-11-27-agent-findings-2.md",
        "2026-11-27-agent-findings.md",
    ]


@pytest.mark.parametrize("path", ["../x.md", "other/MEMORY.md", "reviewer/../other/x.md", "/etc/x", "reviewer/.x.md"])
def test_a_path_outside_the_role_is_refused(sandbox: Sandbox, path: str) -> None:
    with sandbox.engine().open_role(sandbox.role) as session, pytest.raises(RefusedError):
        session.commit(1, ChangeSet("x", "reviewer", "", (), (Append(PurePosixPath(path), b"x"),)))


def test_a_read_only_memory_is_not_changed(sandbox: Sandbox) -> None:
    sandbox.memory.chmod(0o444)
    sandbox.findings("agent", entry("Third"))
    before = sandbox.visible_files()

    with pytest.raises(RefusedError, match="read-only"):
        commit_findings(sandbox)

    assert sandbox.visible_files() == before
    assert sandbox.hidden_names() == []


def test_a_memory_that_becomes_a_symlink_after_planning_is_not_followed(sandbox: Sandbox, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_bytes(BOTH)
    sandbox.findings("agent", entry("Third"))

    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        sandbox.memory.unlink()
        sandbox.memory.symlink_to(outside)
        with pytest.raises((StoreError, RefusedError)):
            session.commit(1, plan_consolidation(view, archive=b"x\n"))

    assert outside.read_bytes() == BOTH
    assert sandbox.memory.is_symlink()
    assert sandbox.hidden_names() == []


def test_an_archive_that_is_a_symlink_is_not_followed(sandbox: Sandbox, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    sandbox.archive.symlink_to(outside)
    sandbox.findings("agent", entry("Third"))

    with pytest.raises(StoreError):
        commit_findings(sandbox)

    assert list(outside.iterdir()) == []
    assert sandbox.memory.read_bytes() == BOTH
    assert sandbox.hidden_names() == []


def test_a_role_that_disappears_between_plan_and_commit_fails_with_a_sentence(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))

    with sandbox.engine().open_role(sandbox.role) as session:
        view = session.read()
        moved = sandbox.role.path.rename(sandbox.role.path.with_name("moved"))
        with pytest.raises(StoreError, match="moved or replaced"):
            session.commit(1, plan_consolidation(view, archive=b"x\n"))

    assert (moved / "MEMORY.md").read_bytes() == BOTH
    assert not sandbox.role.path.exists()


COMMIT_STEPS = [
    CommitStep.BEGIN,
    CommitStep.STAGED,
    CommitStep.BLOBS_STORED,
    CommitStep.COMPARED,
    CommitStep.INTENT_WRITTEN,
    CommitStep.ARCHIVED,
    CommitStep.LEASED,
    CommitStep.EXCHANGED,
    CommitStep.TOUCHED,
    CommitStep.RELEASED,
    CommitStep.PUBLISHED,
    CommitStep.CLAIMED,
    CommitStep.CLAIMS_SYNCED,
    CommitStep.APPLIED,
]


@pytest.mark.parametrize("step", COMMIT_STEPS)
def test_killed_at_any_step_it_is_all_or_nothing_after_recovery(sandbox: Sandbox, step: CommitStep) -> None:
    sandbox.findings("agent", entry("Third"))

    status = run_in_child(lambda: commit_findings(sandbox, die_at(step), b"old\n"))
    recovery = sandbox.engine().recover([sandbox.store])
    with sandbox.engine().open_role(sandbox.role):
        pass

    assert status == 137
    assert recovery.deferred == ()
    texts = sandbox.visible_files()
    if COMMIT_STEPS.index(step) < COMMIT_STEPS.index(CommitStep.INTENT_WRITTEN):
        assert texts == {"MEMORY.md": BOTH, "agent-findings.md": entry("Third")}
        assert sandbox.hidden_names() == []
    else:
        assert texts == {
            "MEMORY.md": BOTH + entry("Third"),
            "archive/findings/2026-11-27-agent-findings.md": entry("Third"),
            "archive/pruned-2026.md": b"old\n",
        }


@pytest.mark.parametrize("first", [CommitStep.INTENT_WRITTEN, CommitStep.EXCHANGED, CommitStep.CLAIMED])
@pytest.mark.parametrize(
    "second", [CommitStep.REDOING, CommitStep.ARCHIVED, CommitStep.LEASED, CommitStep.PUBLISHED, CommitStep.CLAIMED]
)
def test_killed_again_inside_recovery_changes_nothing(sandbox: Sandbox, first: CommitStep, second: CommitStep) -> None:
    sandbox.findings("agent", entry("Third"))

    run_in_child(lambda: commit_findings(sandbox, die_at(first), b"old\n"))
    run_in_child(lambda: sandbox.engine(die_at(second)).recover([sandbox.store]))
    sandbox.engine().recover([sandbox.store])

    assert sandbox.visible_files() == {
        "MEMORY.md": BOTH + entry("Third"),
        "archive/findings/2026-11-27-agent-findings.md": entry("Third"),
        "archive/pruned-2026.md": b"old\n",
    }


def test_a_killed_commit_leaves_no_lock_behind(sandbox: Sandbox) -> None:
    sandbox.findings("agent", entry("Third"))
    run_in_child(lambda: commit_findings(sandbox, die_at(CommitStep.EXCHANGED)))

    sandbox.engine().recover([sandbox.store])

    assert list((sandbox.project / "tmp").iterdir()) == []


def _rewrite(sandbox: Sandbox, after: bytes) -> Write:
    return Write(PurePosixPath("reviewer/MEMORY.md"), content_digest(sandbox.memory.read_bytes()), after)

"""One commit: what it does, when it does not, and that it can be killed anywhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

import pytest

from echod.store.changes import Append, ChangeSet, Write
from echod.store.commit.commit import Committed, Overtaken
from echod.store.commit.steps import Step
from echod.store.errors import Busy, Refused, StoreFault
from echod.store.snapshot import digest
from tests.store.conftest import HEADER, Place, consolidation, die_at, entry
from tests.support import in_child

BOTH = HEADER + entry("First") + entry("Second")


def commit_findings(place: Place, trace: object = None, archive: bytes = b"") -> Committed | Overtaken:
    engine = place.engine(trace) if trace else place.engine()  # type: ignore[arg-type]
    with engine.open_role(place.role) as session:
        return session.commit(1, consolidation(session.read(), archive=archive))


def test_findings_become_memory_and_stay_in_the_archive(place: Place) -> None:
    place.findings("agent", entry("Third"))

    outcome = commit_findings(place)

    assert outcome == Committed(1)
    assert place.texts() == {
        "MEMORY.md": BOTH + entry("Third"),
        "archive/findings/2026-11-27-agent-findings.md": entry("Third"),
    }


def test_an_unchanged_result_writes_nothing(place: Place) -> None:
    before = place.memory.stat()

    with place.engine().open_role(place.role) as session:
        view = session.read()
        outcome = session.commit(1, ChangeSet("x", "reviewer", "", (_rewrite(place, view.memory.text),)))

    assert outcome == Committed(None)
    after = place.memory.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (before.st_ino, before.st_mtime_ns, before.st_size)


def test_the_first_memory_file_is_created(place: Place) -> None:
    place.memory.unlink()
    place.findings("agent", entry("Third"))

    commit_findings(place)

    assert place.memory.read_bytes() == HEADER + entry("Third")


def test_mode_owner_and_attributes_are_kept(place: Place) -> None:
    place.memory.chmod(0o640)
    if hasattr(os, "setxattr"):
        os.setxattr(place.memory, "user.colour", b"blue")
    place.findings("agent", entry("Third"))

    commit_findings(place)

    assert stat.S_IMODE(place.memory.stat().st_mode) == 0o640
    if hasattr(os, "getxattr"):
        assert os.getxattr(place.memory, "user.colour") == b"blue"


def test_a_backup_is_private(place: Place) -> None:
    with place.engine().open_role(place.role) as session:
        backup = Write(PurePosixPath("reviewer/archive/MEMORY-2026-11-27.md"), None, BOTH)
        session.commit(1, ChangeSet("prune", "reviewer", "", (backup,)))

    assert stat.S_IMODE((place.archive / "MEMORY-2026-11-27.md").stat().st_mode) == 0o600


def test_modification_time_never_goes_back(place: Place) -> None:
    place.findings("agent", entry("Third"))
    before = place.memory.stat().st_mtime_ns

    commit_findings(place)

    assert place.memory.stat().st_mtime_ns >= before


def test_own_writes_are_known_by_their_time(place: Place) -> None:
    place.findings("agent", entry("Third"))

    commit_findings(place)

    assert place.engine().own_writes(place.store) == {place.memory: place.memory.stat().st_mtime_ns}


def test_own_writes_to_archives_are_not_kept_for_ever(place: Place) -> None:
    role = PurePosixPath(place.role.name)

    with place.engine().open_role(place.role) as session:
        view = session.read()
        backup = Write(role / "archive/MEMORY-2026-11-28.md", None, view.memory.text)
        changed = Write(role / "MEMORY.md", view.memory.digest, view.memory.text + entry("Third"))
        session.commit(1, ChangeSet("prune", place.role.name, "a backup", (changed, backup)))

    assert (place.archive / "MEMORY-2026-11-28.md").exists()
    assert place.engine().own_writes(place.store).keys() == {place.memory}


def test_a_plan_from_an_older_content_is_overtaken(place: Place) -> None:
    place.findings("agent", entry("Third"))

    with place.engine().open_role(place.role) as session:
        view = session.read()
        place.memory.write_bytes(BOTH + entry("Meanwhile"))
        outcome = session.commit(1, consolidation(view, archive=b"x\n"))

    assert outcome == Overtaken("reviewer/MEMORY.md")
    assert place.texts() == {"MEMORY.md": BOTH + entry("Meanwhile"), "agent-findings.md": entry("Third")}
    assert place.hidden() == []


def test_a_closed_gate_changes_nothing(place: Place) -> None:
    place.findings("agent", entry("Third"))
    before = place.texts()

    with place.engine().open_role(place.role) as session, pytest.raises(Busy, match="A workflow runs"):
        session.commit(1, consolidation(session.read()), gate=lambda: "A workflow runs.")

    assert place.texts() == before
    assert place.hidden() == []


def test_consumed_findings_are_in_the_ledger(place: Place) -> None:
    found = place.findings("agent", entry("Third")).read_bytes()

    commit_findings(place)

    with place.engine().open_role(place.role) as session:
        assert session.read().known_keys == {f"key-{digest(found)}"}


def test_a_second_file_of_the_same_agent_gets_the_next_name(place: Place) -> None:
    for title in ("Third", "Fourth"):
        place.findings("agent", entry(title))
        commit_findings(place)

    assert sorted(p.name for p in (place.archive / "findings").iterdir()) == [
        "2026-11-27-agent-findings-2.md",
        "2026-11-27-agent-findings.md",
    ]


@pytest.mark.parametrize("path", ["../x.md", "other/MEMORY.md", "reviewer/../other/x.md", "/etc/x", "reviewer/.x.md"])
def test_a_path_outside_the_role_is_refused(place: Place, path: str) -> None:
    with place.engine().open_role(place.role) as session, pytest.raises(Refused):
        session.commit(1, ChangeSet("x", "reviewer", "", (), (Append(PurePosixPath(path), b"x"),)))


def test_a_read_only_memory_is_left_alone(place: Place) -> None:
    place.memory.chmod(0o444)
    place.findings("agent", entry("Third"))
    before = place.texts()

    with pytest.raises(Refused, match="read-only"):
        commit_findings(place)

    assert place.texts() == before
    assert place.hidden() == []


def test_a_memory_that_becomes_a_symlink_after_planning_is_not_followed(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_bytes(BOTH)
    place.findings("agent", entry("Third"))

    with place.engine().open_role(place.role) as session:
        view = session.read()
        place.memory.unlink()
        place.memory.symlink_to(outside)
        with pytest.raises((StoreFault, Refused)):
            session.commit(1, consolidation(view, archive=b"x\n"))

    assert outside.read_bytes() == BOTH
    assert place.memory.is_symlink()
    assert place.hidden() == []


def test_an_archive_that_is_a_symlink_is_not_followed(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place.archive.symlink_to(outside)
    place.findings("agent", entry("Third"))

    with pytest.raises(StoreFault):
        commit_findings(place)

    assert list(outside.iterdir()) == []
    assert place.memory.read_bytes() == BOTH
    assert place.hidden() == []


def test_a_role_that_disappears_between_plan_and_commit_fails_with_a_sentence(place: Place) -> None:
    place.findings("agent", entry("Third"))

    with place.engine().open_role(place.role) as session:
        view = session.read()
        moved = place.role.path.rename(place.role.path.with_name("moved"))
        with pytest.raises(StoreFault, match="moved or replaced"):
            session.commit(1, consolidation(view, archive=b"x\n"))

    assert (moved / "MEMORY.md").read_bytes() == BOTH
    assert not place.role.path.exists()


COMMIT_STEPS = [
    Step.BEGIN,
    Step.STAGED,
    Step.IMAGES_KEPT,
    Step.COMPARED,
    Step.INTENDED,
    Step.ARCHIVED,
    Step.LEASED,
    Step.EXCHANGED,
    Step.TOUCHED,
    Step.RELEASED,
    Step.PUBLISHED,
    Step.CLAIMED,
    Step.CLAIMS_SYNCED,
    Step.APPLIED,
]


@pytest.mark.parametrize("step", COMMIT_STEPS)
def test_killed_at_any_step_it_is_all_or_nothing_after_recovery(place: Place, step: Step) -> None:
    place.findings("agent", entry("Third"))

    status = in_child(lambda: commit_findings(place, die_at(step), b"old\n"))
    recovery = place.engine().recover([place.store])
    with place.engine().open_role(place.role):
        pass

    assert status == 137
    assert recovery.parked == ()
    texts = place.texts()
    if COMMIT_STEPS.index(step) < COMMIT_STEPS.index(Step.INTENDED):
        assert texts == {"MEMORY.md": BOTH, "agent-findings.md": entry("Third")}
        assert place.hidden() == []
    else:
        assert texts == {
            "MEMORY.md": BOTH + entry("Third"),
            "archive/findings/2026-11-27-agent-findings.md": entry("Third"),
            "archive/pruned-2026.md": b"old\n",
        }


@pytest.mark.parametrize("first", [Step.INTENDED, Step.EXCHANGED, Step.CLAIMED])
@pytest.mark.parametrize("second", [Step.REDOING, Step.ARCHIVED, Step.LEASED, Step.PUBLISHED, Step.CLAIMED])
def test_killed_again_inside_recovery_changes_nothing(place: Place, first: Step, second: Step) -> None:
    place.findings("agent", entry("Third"))

    in_child(lambda: commit_findings(place, die_at(first), b"old\n"))
    in_child(lambda: place.engine(die_at(second)).recover([place.store]))
    place.engine().recover([place.store])

    assert place.texts() == {
        "MEMORY.md": BOTH + entry("Third"),
        "archive/findings/2026-11-27-agent-findings.md": entry("Third"),
        "archive/pruned-2026.md": b"old\n",
    }


def test_a_killed_commit_leaves_no_lock_behind(place: Place) -> None:
    place.findings("agent", entry("Third"))
    in_child(lambda: commit_findings(place, die_at(Step.EXCHANGED)))

    place.engine().recover([place.store])

    assert list((place.project / "tmp").iterdir()) == []


def _rewrite(place: Place, after: bytes) -> Write:
    return Write(PurePosixPath("reviewer/MEMORY.md"), digest(place.memory.read_bytes()), after)

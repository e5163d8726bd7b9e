"""The commit layer holds every job to the law of conservation, whatever the job says."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from echod.store.changes import Append, ChangeSet, Consume, Origin, Write
from echod.store.commit.commit import Committed
from echod.store.errors import Refused
from tests.store.conftest import HEADER, Place, entry

FIRST, SECOND = entry("First"), entry("Second")
BOTH = HEADER + FIRST + SECOND
MEMORY = PurePosixPath("reviewer/MEMORY.md")
ARCHIVE = PurePosixPath("reviewer/archive/pruned-2026.md")


def attempt(place: Place, after: bytes, *appends: Append, origin: Origin = Origin.SERVICE) -> object:
    with place.engine().open_role(place.role) as session:
        write = Write(MEMORY, session.read().memory.digest, after)
        return session.commit(1, ChangeSet("prune", "reviewer", "", (write,), appends, origin=origin))


def test_a_job_that_would_lose_an_entry_is_refused_by_name(place: Place) -> None:
    with pytest.raises(Refused, match=r"First \(2026-11-01\).* would be lost"):
        attempt(place, HEADER + SECOND)

    assert place.texts() == {"MEMORY.md": BOTH}
    assert place.hidden() == []


def test_the_same_job_is_done_if_it_archives_the_entry(place: Place) -> None:
    assert attempt(place, HEADER + SECOND, Append(ARCHIVE, FIRST)) == Committed(1)


def test_a_protected_block_is_changed_only_for_a_person(place: Place) -> None:
    etched = entry("Law", layer="Etched")
    place.memory.write_bytes(BOTH + etched)

    with pytest.raises(Refused, match="protected"):
        attempt(place, BOTH, Append(ARCHIVE, etched))

    assert attempt(place, BOTH, Append(ARCHIVE, etched), origin=Origin.PERSON) == Committed(1)


def test_an_unreadable_memory_is_never_written_over(place: Place) -> None:
    broken = BOTH + b"\xff\n"
    place.memory.write_bytes(broken)

    with pytest.raises(Refused, match="not UTF-8"):
        attempt(place, BOTH)

    assert place.memory.read_bytes() == broken


def test_a_memory_with_conflict_markers_is_never_written_over(place: Place) -> None:
    broken = HEADER + b"<<<<<<< ours\n" + FIRST + b"=======\n" + SECOND + b">>>>>>> theirs\n"
    place.memory.write_bytes(broken)

    with pytest.raises(Refused, match="conflict markers"):
        attempt(place, BOTH)


def test_findings_are_kept_in_full(place: Place) -> None:
    place.findings("agent", entry("Third"), entry("Fourth"))

    with place.engine().open_role(place.role) as session:
        view = session.read()
        consume = Consume(
            PurePosixPath("reviewer/agent-findings.md"),
            view.findings[0].digest or "",
            PurePosixPath("reviewer/archive/findings/agent.md"),
            entry("Third"),
        )
        with pytest.raises(Refused, match="Fourth"):
            session.commit(1, ChangeSet("consolidate", "reviewer", "", (), (), (consume,)))

    assert (place.role.path / "agent-findings.md").exists()


def test_unreadable_findings_go_to_quarantine_byte_for_byte(place: Place) -> None:
    broken = b"## X\n\xff\xfe\n"
    place.findings("agent", broken)

    with place.engine().open_role(place.role) as session:
        view = session.read()
        consume = Consume(
            PurePosixPath("reviewer/agent-findings.md"),
            view.findings[0].digest or "",
            PurePosixPath("reviewer/quarantine/agent-findings.md"),
            broken,
        )
        session.commit(1, ChangeSet("consolidate", "reviewer", "", (), (), (consume,)))

    assert place.texts()["quarantine/agent-findings.md"] == broken

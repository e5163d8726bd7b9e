"""The states of citations that a search stores for the next one: they hold as long as nothing they depend on changes."""

from __future__ import annotations

import os
import time
from datetime import date
from pathlib import Path

import pytest

from echod.app.found_evidence import EvidenceReader
from echod.evidence.verifier import EvidenceVerifier
from echod.memory.evidence.fingerprint import parse_citation
from echod.paths import Paths
from echod.search.finder import FoundDocument
from echod.state.database import Database
from echod.state.fingerprints import FingerprintStore
from tests.evidence.conftest import git
from tests.search.conftest import Library, entry
from tests.support import until

LINES = [f"def walnut_{number}(): return {number}" for number in range(12)]


class Workshop:
    """A project with one entry that cites a file, and a count of real checks."""

    def __init__(self, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
        self.library = library
        self.project = library.root / "project"
        self.paths = Paths(library.root / "state", library.root / "run", library.root / "config.toml")
        self.now = time.time()
        self.checks = 0
        real = EvidenceVerifier.check

        def counted(verifier: EvidenceVerifier, *arguments: object) -> object:
            self.checks += 1
            return real(verifier, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(EvidenceVerifier, "check", counted)
        self.write(LINES)
        library.write("reviewer", entry("Walnut", "The walnut is cold, see `src/walnut.py:3-6`."))

    def write(self, lines: list[str], name: str = "src/walnut.py") -> Path:
        file = self.project / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(lines) + "\n")
        return file

    def found(self) -> FoundDocument:
        (found,) = self.library.find("walnut")
        return found

    def states(self) -> list[tuple[str, str | None]]:
        """Search as a command does, and return the states."""
        found = self.found()
        with EvidenceReader(self.paths, self.now, self.library.finder) as reader:
            return [(checked.state, checked.at) for checked in reader.check(found)]

    def settle(self) -> list[tuple[str, str | None]]:
        """Search until a search checks nothing, and return its states."""
        found: list[tuple[str, str | None]] = []

        def is_stored() -> bool:
            before = self.checks
            found[:] = self.states()
            return self.checks == before

        until(is_stored, "stored states")
        return found

    def commit(self) -> None:
        git(self.project, "add", "-A", day=date(2026, 9, 1))
        git(self.project, "commit", "-qm", "one", day=date(2026, 9, 1))


@pytest.fixture
def workshop(library: Library, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    made = Workshop(library, monkeypatch)
    git(made.project, "init", "-q")
    made.commit()
    return made


def test_a_stored_state_is_that_of_the_check(workshop: Workshop) -> None:
    assert workshop.settle() == workshop.states() == [("valid", "src/walnut.py:3-6")]


def test_every_change_of_the_cited_file_is_seen_at_once(workshop: Workshop) -> None:
    workshop.settle()
    file = workshop.write(["# new", *LINES])
    assert workshop.states() == [("moved", "src/walnut.py:4-7")]
    assert workshop.settle() == [("moved", "src/walnut.py:4-7")]

    status = file.stat()
    file.write_text("\n".join(["# New", *LINES[:2], *(line.upper() for line in LINES[2:6]), *LINES[6:]]) + "\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # which cannot set back the change time
    assert workshop.states()[0][0] in ("changed", "gone")

    file.unlink()
    assert workshop.states() == [("gone", None)]
    workshop.write(LINES, "src/nuts.py")
    assert workshop.states() == [("moved", "src/nuts.py:3-6")]
    workshop.write(LINES)
    assert workshop.states() == [("valid", "src/walnut.py:3-6")]


def test_a_missing_file_is_looked_for_each_time(workshop: Workshop) -> None:
    (workshop.project / "src/walnut.py").unlink()

    for _ in range(3):
        assert workshop.states() == [("gone", None)]
    assert workshop.checks == 3


def test_another_history_is_another_base(workshop: Workshop) -> None:
    workshop.settle()
    checks = workshop.checks

    workshop.write(["unrelated"], "other.py")
    workshop.commit()

    assert workshop.states() == [("valid", "src/walnut.py:3-6")]
    assert workshop.checks == checks + 1


def test_another_day_is_another_base(workshop: Workshop) -> None:
    workshop.settle()
    checks = workshop.checks
    workshop.now += 86_400

    workshop.states()

    assert workshop.checks == checks + 1


def test_another_fingerprint_is_another_base(workshop: Workshop) -> None:
    workshop.settle()
    found = workshop.found()
    workshop.write(["# new", *LINES])
    assert workshop.states()[0][0] == "moved"
    citation = parse_citation(found.citations[0])
    assert citation is not None
    verifier = EvidenceVerifier(workshop.project, workshop.now)
    base = verifier.take_base(citation, None)  # of the file as it is now, as `verify --confirm` takes it
    with Database.open(workshop.paths.database) as database:
        FingerprintStore(database).write(found.store, found.role, {(found.id, found.citations[0]): base})
    until(lambda: workshop.settle() == [("valid", "src/walnut.py:3-6")], "the state by the new base")

    with Database.open(workshop.paths.database) as database:
        FingerprintStore(database).write(
            found.store, found.role, {(found.id, found.citations[0]): base._replace(taken_at=base.taken_at + 1)}
        )
    checks = workshop.checks
    workshop.states()
    assert workshop.checks == checks + 1


def test_a_shallow_history_is_read_each_time(workshop: Workshop) -> None:
    (workshop.project / ".git/shallow").write_text("")

    for _ in range(3):
        assert workshop.states() == [("valid", "src/walnut.py:3-6")]
    assert workshop.checks == 3


def test_an_index_that_is_being_written_only_loses_the_states(workshop: Workshop) -> None:
    import sqlite3

    workshop.found()
    time.sleep(0.1)
    workshop.found()
    other = sqlite3.connect(workshop.library.index, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    begin = time.monotonic()
    try:
        assert workshop.states() == [("valid", "src/walnut.py:3-6")]
    finally:
        other.close()

    assert time.monotonic() - begin < 3
    assert workshop.settle() == [("valid", "src/walnut.py:3-6")]

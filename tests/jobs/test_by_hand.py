"""What a person decides about single entries, on real files: done exactly, kept in the archive, taken back by undo."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, time
from pathlib import Path

import pytest

from echod.jobs import forget, prune, remember, reset, restore, set_layer
from echod.jobs.archives import Kept, archived_entries
from echod.jobs.base import Blocked, Done, Outcome
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Layer
from echod.memory.notes import Note
from echod.memory.policy import Policy, Rule
from echod.memory.policy.archive import ARCHIVE_LIMIT
from echod.state.database import Database
from echod.state.entries import EntryLog
from echod.store.changes import open_gate
from echod.store.engine import Engine
from echod.store.layout import Role, Store
from echod.store.limits import EngineLimits
from tests.life.files import HEAD, TODAY, learning, observation
from tests.support import finding

_HOUR = 3600.0
_DAY = 24 * _HOUR


@dataclass
class Place:
    """A role, echod's own files, and a clock that can be set."""

    root: Path
    now: float
    jobs: int = 0
    role: Role = field(init=False)
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        project = self.root / "project"
        self.role = Role(Store(project, project / ".rune/echoes"), "reviewer")
        self.role.path.mkdir(parents=True)
        self.engine = Engine(self.root / "state/journal", limits=EngineLimits(), clock=self.clock)

    def clock(self) -> float:
        return self.now

    @contextmanager
    def entries(self) -> Iterator[EntryLog]:
        with Database.open(self.root / "state/echod.db") as database:
            yield EntryLog(database)

    @property
    def memory(self) -> bytes:
        return self.role.memory.read_bytes()

    def write(self, data: bytes | str) -> None:
        """What another program does: it writes the whole file, now."""
        self.role.memory.write_bytes(data.encode() if isinstance(data, str) else data)
        os.utime(self.role.memory, (self.now, self.now))

    def looks(self) -> bytes:
        """The memory file after echod looked at it."""
        with self.engine.open_role(self.role) as session:
            session.read()
        return self.memory

    def ids(self) -> list[str]:
        document = parse(self.memory)
        assert isinstance(document, Document)
        return [identity for identity in entry_ids(self.role.name, document) if identity]

    def number(self) -> int:
        self.jobs += 1
        return self.jobs

    def raises(self, entry: str, layer: Layer) -> Outcome:
        with self.engine.open_role(self.role) as session:
            return set_layer.run(self.number(), session, entry, layer, open_gate, self.clock)

    def forgets(self, *entries: str) -> Outcome:
        with self.engine.open_role(self.role) as session:
            return forget.run(self.number(), session, entries, open_gate, self.clock, rule=Rule.FORGOTTEN)

    def restores(self, kept: Kept) -> Outcome:
        with self.entries() as log, self.engine.open_role(self.role) as session:
            pins = restore.Pins(log, 30)
            return restore.run(self.number(), session, kept.entry, pins, open_gate, self.clock)

    def resets(self) -> Outcome:
        with self.engine.open_role(self.role) as session:
            return reset.run(self.number(), session, open_gate, self.clock)

    def remembers(self, text: str) -> Outcome:
        with self.engine.open_role(self.role) as session:
            return remember.run(self.number(), session, Note(text, text, redacted=False), open_gate, self.clock)

    def prunes(self, policy: Policy) -> Outcome:
        with self.entries() as log, self.engine.open_role(self.role) as session:
            log.let_go(self.role.store.key, [self.role.name])
            return prune.run(self.number(), session, log, policy, open_gate, self.clock, writes=True)

    def undoes(self, job: int) -> None:
        self.engine.undo(job, by=self.number())

    def later(self, days: float) -> None:
        """So many days later; the service tidied its journal up, and of more than a month jobs did something too."""
        for _ in range(4):
            self.now += days * _DAY / 4
            self.engine.settle_debts(self.role.store)
            self.engine.retain()
            for layer in (Layer.NOTES, Layer.ETCHED) if days > 30 else ():
                self.raises(self.ids()[-1], layer)

    def kept(self, entry: str) -> Kept:
        return [kept for kept in archived_entries(self.role) if kept.entry.id == entry and kept.entry.text][-1]

    def reviews(self) -> list[str]:
        return [review.kind for review in self.engine.notes(self.role.store).reviews]


def memory_text() -> str:
    return HEAD + learning("money is in cents") + observation("the review") + learning("the cache", "etched")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    # Noon, so that no test meets midnight on its way.
    made = Place(tmp_path.resolve(), datetime.combine(TODAY, time(12)).astimezone().timestamp())
    made.write(memory_text())
    os.utime(made.role.memory, (made.now - _HOUR, made.now - _HOUR))
    return made


class TestRaise:
    @pytest.mark.parametrize("layer", [Layer.ETCHED, Layer.NOTES, Layer.INSCRIBED])
    @pytest.mark.parametrize("entry", [0, 1, 2])
    def test_changes_the_layer_and_nothing_else_and_undo_gives_the_bytes(
        self, place: Place, entry: int, layer: Layer
    ) -> None:
        before, ids = place.memory, place.ids()

        done = place.raises(ids[entry], layer)

        assert isinstance(done, Done)
        assert place.ids() == ids
        document = parse(place.memory)
        assert isinstance(document, Document)
        assert [b.entry.layer for b in document.blocks if b.entry][entry] is layer
        changed = [a for a, b in zip(before.splitlines(), place.memory.splitlines(), strict=True) if a != b]
        assert all(b"layer" in line or line.startswith(b"## ") for line in changed)
        assert done.changed == bool(changed)
        if done.changed:
            place.undoes(place.jobs)
        assert place.memory == before

    def test_says_that_an_entry_is_gone(self, place: Place) -> None:
        gone = place.ids()[0]
        place.forgets(gone)

        assert isinstance(place.raises(gone, Layer.ETCHED), Blocked)


class TestForget:
    @pytest.mark.parametrize("entry", [0, 1, 2])
    def test_takes_one_entry_out_and_every_other_byte_stays(self, place: Place, entry: int) -> None:
        before, ids = place.memory, place.ids()

        assert place.forgets(ids[entry]) == Done(f"{ids[entry]} forgotten", changed=True)

        text = place.kept(ids[entry]).entry.text.encode()
        assert place.memory == before.replace(text, b"")
        assert place.kept(ids[entry]).file == f"archive/removed-{TODAY.year}.md"
        place.undoes(1)
        assert place.memory == before

    def test_all_entries_of_a_file_without_a_head(self, place: Place) -> None:
        place.write(learning("alone"))
        before = place.memory

        place.forgets(*place.ids())

        assert place.memory == b""
        assert place.looks() == b""
        place.undoes(1)
        assert place.memory == before

    def test_a_secret_does_not_reach_the_archive_and_undo_gives_it_back(self, place: Place) -> None:
        token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
        place.write(memory_text() + learning("the token").replace("What was", f"The token is {token}. What was"))
        before, gone = place.memory, place.ids()[-1]

        place.forgets(gone)

        assert place.kept(gone).entry.redacted
        assert token not in (place.role.path / place.kept(gone).file).read_text()
        place.undoes(1)
        assert place.memory == before


class TestAForgottenEntryStaysForgotten:
    """Whoever writes it back without knowing."""

    @pytest.fixture
    def forgotten(self, place: Place) -> str:
        place.looks()
        identity = place.ids()[0]
        assert isinstance(place.forgets(identity), Done)
        return identity

    @pytest.mark.parametrize("later", [1.0, 60.0, 5 * _HOUR, 48 * _HOUR, 400 * 24 * _HOUR])
    @pytest.mark.parametrize("addition", ["", learning("written by the stale one")], ids=["as it was", "and more"])
    def test_a_stale_copy_of_the_whole_file(self, place: Place, forgotten: str, later: float, addition: str) -> None:
        without = place.memory
        place.now += later

        place.write(memory_text() + addition)

        assert place.looks() == without + addition.encode()
        assert forgotten not in place.ids()
        assert "forgotten" in place.reviews()

    def test_a_stale_copy_in_which_its_metadata_was_touched(self, place: Place, forgotten: str) -> None:
        place.now += _HOUR
        changed = memory_text().replace("- **confidence**: 0.8", "- **confidence**: 0.9", 1)
        changed = changed.replace("- **layer**: inscribed", "- **layer**: etched", 1)

        place.write(changed)

        place.looks()
        assert forgotten not in place.ids()

    @pytest.mark.parametrize(
        "more",
        ["- **confidence**: 0.93\n", "- **evidence**: `src/found_again.py:7`\n", "- **category**: of-its-own\n"],
        ids=["confidence", "evidence", "a line of its own"],
    )
    def test_and_what_it_says_beyond_the_archive_is_kept_there_once(
        self, place: Place, forgotten: str, more: str
    ) -> None:
        without = place.memory
        for _ in range(2):
            place.now += _HOUR
            place.write(memory_text().replace("- **confidence**: 0.8\n", f"- **confidence**: 0.8\n{more}", 1))
            assert place.looks() == without

        assert (place.role.path / f"archive/removed-{TODAY.year}.md").read_text().count(more) == 1
        assert place.kept(forgotten).entry.text == learning("money is in cents")

    def test_whichever_archive_tells_of_it(self, place: Place, forgotten: str) -> None:
        first = place.role.path / f"archive/removed-{TODAY.year}.md"
        first.write_bytes(first.read_bytes() + b"x" * ARCHIVE_LIMIT)
        full = first.stat().st_size
        also = place.ids()[0]
        place.forgets(also)
        without = place.memory
        place.now += _HOUR

        place.write(memory_text().replace("- **confidence**: 0.8\n", "- **confidence**: 0.93\n", 1))

        assert place.looks() == without
        assert first.stat().st_size == full
        assert first.with_stem(f"{first.stem}-2").read_text().count("- **confidence**: 0.93\n") == 1
        assert also not in place.ids()

    def test_a_stale_copy_that_undoes_other_work_too(self, place: Place, forgotten: str) -> None:
        place.now += _HOUR
        place.write(place.memory + learning("one").encode())
        place.looks()
        place.now += _HOUR
        place.write(place.memory + learning("two").encode())
        both = place.looks()
        place.now += _HOUR

        place.write(memory_text() + learning("three"))

        assert sorted(place.looks().split(b"\n")) == sorted((both + learning("three").encode()).split(b"\n"))
        assert forgotten not in place.ids()

    def test_late_bytes_through_a_descriptor_that_was_held(self, place: Place) -> None:
        place.looks()
        with place.role.memory.open("r+b") as held:
            forgotten = place.ids()[0]
            # A descriptor that is open for writing makes others wait, so that it is opened for reading in between.
            stale = os.open(place.role.memory, os.O_RDONLY)
            held.close()
            place.forgets(forgotten)
            without = place.memory
            late = os.open(f"/proc/self/fd/{stale}", os.O_WRONLY | os.O_APPEND)
            os.write(late, learning("late").encode())
            os.close(late)
            os.close(stale)

        place.engine.settle_debts(place.role.store)

        assert forgotten not in place.ids()
        assert place.memory.replace(learning("late").encode(), b"") == without

    def test_a_file_that_keeps_coming_back_is_left_to_a_person_in_the_end(self, place: Place, forgotten: str) -> None:
        for _ in range(3):
            place.now += 60
            place.write(memory_text())
            place.looks()
            assert forgotten not in place.ids()
        place.now += 60
        place.write(memory_text())

        assert place.looks() == memory_text().encode()
        assert place.looks() == memory_text().encode()

    def test_but_not_once_it_was_brought_back(self, place: Place, forgotten: str) -> None:
        place.restores(place.kept(forgotten))
        back = place.memory
        place.now += _HOUR
        place.write(back.replace(place.kept(forgotten).entry.text.encode(), b""))
        place.looks()
        place.now += _HOUR

        place.write(back)

        assert place.looks() == back
        assert forgotten in place.ids()

    @pytest.mark.parametrize("days", [0, 16, 40])
    def test_nor_once_that_was_undone(self, place: Place, forgotten: str, days: int) -> None:
        without = place.memory
        place.undoes(1)
        place.later(days)
        place.now += _HOUR
        place.write(without)
        place.looks()
        place.now += _HOUR

        place.write(memory_text())

        assert place.looks() == memory_text().encode()

    @pytest.mark.parametrize("days", [0, 16, 40])
    def test_and_it_is_forgotten_again_when_that_undo_is_undone(self, place: Place, forgotten: str, days: int) -> None:
        without = place.memory
        place.undoes(1)
        place.undoes(2)
        assert place.memory == without
        place.later(days)
        place.now += _HOUR

        place.write(memory_text())

        assert place.looks() == without

    def test_and_it_is_forgotten_again_when_bringing_it_back_is_undone(self, place: Place, forgotten: str) -> None:
        without = place.memory
        place.restores(place.kept(forgotten))
        place.undoes(place.jobs)
        assert place.memory == without
        place.now += _HOUR

        place.write(memory_text())

        assert place.looks() == without


class TestAnEntryThatStandsIsNotTakenForOneThatCameBack:
    """It says what a forgotten entry said, and somebody touches it."""

    @pytest.fixture(params=["a twin of the forgotten one", "the forgetting was undone", "it kept coming back"])
    def standing(self, place: Place, request: pytest.FixtureRequest) -> str:
        entry, others = learning("money is in cents"), observation("the review") + learning("the cache", "etched")
        if request.param.startswith("a twin"):
            place.write(HEAD + entry + others + entry)
        place.looks()
        identity, *_, last = place.ids()
        match request.param:
            case "a twin of the forgotten one":
                place.forgets(last)
            case "the forgetting was undone":
                place.forgets(identity)
                place.undoes(1)
            case _:
                place.forgets(identity)
                for _ in range(4):
                    place.now += 60
                    place.write(memory_text())
                    place.looks()
        assert identity in place.ids()
        return identity

    @pytest.mark.parametrize("days", [0.1, 3.0, 16.0])
    @pytest.mark.parametrize(
        "touch",
        [
            ("- **confidence**: 0.8", "- **confidence**: 0.9"),
            ("- **layer**: inscribed", "- **layer**: etched"),
            ("- **evidence**: ", "- **evidence**: `src/more.py:7`, "),
        ],
        ids=["confidence", "layer", "evidence"],
    )
    def test_and_stays(self, place: Place, standing: str, days: float, touch: tuple[str, str]) -> None:
        place.later(days)
        touched = place.memory.decode().replace(*touch, 1)

        place.write(touched)

        assert place.looks() == touched.encode()
        assert standing in place.ids()

    def test_but_a_second_one_beside_it_came_back(self, place: Place) -> None:
        entry = learning("money is in cents")
        place.write(HEAD + entry + learning("the cache") + entry)
        place.looks()
        standing, _, twin = place.ids()
        place.forgets(twin)
        without = place.memory
        place.now += _HOUR

        place.write(without.replace(b": 0.8", b": 0.9", 1) + entry.replace(": 0.8", ": 0.7").encode())

        assert place.looks() == without.replace(b": 0.8", b": 0.9", 1)
        assert standing in place.ids()


class TestRestore:
    def test_brings_the_bytes_back_and_pins_the_entry(self, place: Place) -> None:
        gone = place.ids()[0]
        place.forgets(gone)
        without, kept = place.memory, place.kept(gone)

        assert isinstance(place.restores(kept), Done)

        assert place.memory.endswith(kept.entry.text.encode())
        assert sorted(place.ids()) == sorted([gone, *place.ids()[:-1]])
        with place.entries() as log:
            facts = log.facts(place.role.store.key, "reviewer", str(place.role.store.project), TODAY, 90)
        assert (facts.pinned[gone] - TODAY).days == 30
        place.undoes(place.jobs)
        assert place.memory == without

    def test_refuses_what_stands_there_already(self, place: Place) -> None:
        gone = place.ids()[0]
        place.forgets(gone)
        kept = place.kept(gone)
        place.restores(kept)
        before = place.memory

        assert isinstance(place.restores(kept), Blocked)
        assert place.memory == before

    def test_what_an_undo_took_out_can_be_brought_back(self, place: Place) -> None:
        place.remembers("sockets leak on fork")
        noted = place.ids()[-1]
        place.undoes(place.jobs)
        assert noted not in place.ids()
        kept = place.kept(noted)
        assert (kept.entry.rule, kept.entry.job) == (Rule.UNDONE, place.jobs)

        place.restores(kept)

        assert place.ids()[-1] == noted

    def test_an_earlier_version_that_an_undo_took_out_is_not_taken_for_the_newest(self, place: Place) -> None:
        entry = place.ids()[0]
        place.raises(entry, Layer.NOTES)

        place.undoes(place.jobs)

        assert [kept for kept in archived_entries(place.role) if kept.entry.id == entry] == []
        assert "**layer**: notes" in (place.role.path / f"archive/removed-{TODAY.year}.md").read_text()

    def test_what_an_older_version_of_the_file_took_out_can_be_brought_back(self, place: Place) -> None:
        before = place.memory
        place.remembers("sockets leak on fork")
        noted = place.ids()[-1]
        place.now += _HOUR
        place.write(before)
        assert place.looks() == before

        place.restores(place.kept(noted))

        assert place.ids()[-1] == noted

    def test_what_prune_took_is_not_pruned_again(self, place: Place) -> None:
        place.write(HEAD + "".join(learning(f"thing {n}", "traced", age=n) for n in range(40)))
        policy = Policy(memory_line_limit=100)
        place.prunes(policy)
        gone = archived_entries(place.role)[-1]
        assert gone.file.startswith("archive/pruned-")

        place.restores(gone)
        place.prunes(policy)

        assert gone.entry.id in place.ids()

    def test_a_full_text_takes_the_place_of_its_short_form(self, place: Place) -> None:
        long = "".join(learning(f"long {n}", age=n, lines=60) for n in range(3))
        place.write(HEAD + long)
        place.prunes(Policy(memory_line_limit=100))
        short, ids = place.memory, place.ids()
        kept = next(kept for kept in archived_entries(place.role) if kept.entry.rule == Rule.LONG)

        place.restores(kept)

        assert place.ids() == ids
        assert kept.entry.text.rstrip().encode() in place.memory
        document = parse(short)
        assert isinstance(document, Document)
        removed = (place.role.path / f"archive/removed-{TODAY.year}.md").read_text()
        assert document.blocks[ids.index(kept.entry.id)].text.rstrip() in removed
        place.undoes(place.jobs)
        assert place.memory == short

    def test_what_compress_took_goes_back_to_the_knowledge_file(self, place: Place) -> None:
        kept = _archived_knowledge(place)

        place.restores(kept)

        assert place.role.knowledge.read_text().endswith(kept.entry.text)
        assert place.memory == memory_text().encode()


def _archived_knowledge(place: Place) -> Kept:
    place.role.knowledge.write_text("# Reviewer Knowledge\n\n" + learning("known"))
    place.resets()
    place.undoes(place.jobs)
    place.role.knowledge.write_text("# Reviewer Knowledge\n")
    return next(k for k in archived_entries(place.role) if k.entry.file == "knowledge.md" and k.entry.id)


class TestReset:
    def test_empties_both_files_and_everything_stands_in_the_archive(self, place: Place) -> None:
        place.write("A head of its own.\n\n" + memory_text() + "## My own section\n\nStays with me.\n")
        place.role.knowledge.write_text("# Reviewer Knowledge\n\n" + learning("known"))
        (place.role.path / "ward-findings.md").write_text(finding("New"))
        before, knowledge = place.memory, place.role.knowledge.read_bytes()

        done = place.resets()

        assert done == Done("MEMORY.md and knowledge.md emptied, 4 entries archived", changed=True)
        assert place.memory == b"<!-- echo-schema: v1 -->\n# Reviewer Memory\n"
        assert place.role.knowledge.read_bytes() == b"<!-- echo-schema: v1 -->\n# Reviewer Knowledge\n"
        assert (place.role.path / f"archive/MEMORY-{TODAY}.md").read_bytes() == before
        assert "".join(k.entry.text for k in archived_entries(place.role)) == (before + knowledge).decode()
        assert (place.role.path / "ward-findings.md").exists()
        assert place.looks() == b"<!-- echo-schema: v1 -->\n# Reviewer Memory\n"
        place.undoes(1)
        assert (place.memory, place.role.knowledge.read_bytes()) == (before, knowledge)

    def test_a_second_time_does_nothing(self, place: Place) -> None:
        place.resets()
        before = {path: path.read_bytes() for path in place.role.path.rglob("*.md")}

        assert place.resets() == Done("there was nothing in it", changed=False)
        assert {path: path.read_bytes() for path in place.role.path.rglob("*.md")} == before

    def test_a_file_that_cannot_be_read_is_left_alone(self, place: Place) -> None:
        place.write(b"\xff\xfe")

        assert isinstance(place.resets(), Blocked)
        assert place.memory == b"\xff\xfe"


class TestRemember:
    def test_begins_the_file_and_undo_takes_it_away(self, place: Place) -> None:
        place.role.memory.unlink()

        place.remembers("Use uv")

        assert place.memory.decode() == (
            "<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n"
            f"## Notes \u2014 Use uv ({TODAY})\n**Source**: user:remember\n- Use uv\n"
        )
        place.undoes(1)
        assert not place.role.memory.exists()

    def test_the_same_again_is_refused_with_its_id(self, place: Place) -> None:
        place.remembers("Use uv")

        again = place.remembers("use  UV")

        assert again == Blocked(f"this is remembered already, as {place.ids()[-1]}")

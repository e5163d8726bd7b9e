"""Manual jobs on single entries, with real files: exact, archived, and reversed by undo."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, time
from pathlib import Path

import pytest

from echod.jobs import manual, prune
from echod.jobs.base import (
    ArchivedCopy,
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    JobResources,
    list_archived_entries,
)
from echod.memory.archive import MAX_ARCHIVE_BYTES
from echod.memory.compose import Note
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Layer
from echod.memory.policy_model import PolicySettings, Rule
from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.store.changes import no_gate
from echod.store.engine import Engine
from echod.store.errors import EngineLimits
from echod.store.layout import Role, Store
from tests.life.files import MEMORY_HEADER, TODAY, learning_text, observation_text
from tests.support import finding_text

_HOUR = 3600.0
_DAY = 24 * _HOUR


@dataclass
class RoleWorkspace:
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
    def entries(self) -> Iterator[EntryStore]:
        with Database.open(self.root / "state/echod.db") as database:
            yield EntryStore(database)

    @property
    def memory(self) -> bytes:
        return self.role.memory.read_bytes()

    def write(self, data: bytes | str) -> None:
        """Write the whole file now, as another program does."""
        self.role.memory.write_bytes(data.encode() if isinstance(data, str) else data)
        os.utime(self.role.memory, (self.now, self.now))

    def heal_and_read(self) -> bytes:
        """The memory file after echod looked at it."""
        with self.engine.open_role(self.role) as session:
            session.read()
        return self.memory

    def ids(self) -> list[str]:
        document = parse(self.memory)
        assert isinstance(document, Document)
        return [identity for identity in entry_ids(self.role.name, document) if identity]

    def next_job_id(self) -> int:
        self.jobs += 1
        return self.jobs

    @contextmanager
    def open_job(self, policy: PolicySettings | None = None) -> Iterator[JobContext]:
        with self.entries() as log:
            resources = JobResources(
                self.next_job_id(), self.engine, log, policy or PolicySettings(), no_gate, self.clock
            )
            with resources.open_role(self.role) as context:
                yield context

    def set_layer(self, entry: str, layer: Layer) -> JobOutcome:
        with self.open_job() as context:
            return manual.set_layer(context, entry, layer)

    def forget(self, *entries: str) -> JobOutcome:
        with self.open_job() as context:
            return manual.forget(context, entries, rule=Rule.FORGOTTEN)

    def restore(self, kept: ArchivedCopy) -> JobOutcome:
        with self.open_job() as context:
            return manual.restore(context, [kept.entry])

    def reset(self) -> JobOutcome:
        with self.open_job() as context:
            return manual.reset(context)

    def remember(self, text: str) -> JobOutcome:
        with self.open_job() as context:
            return manual.remember(context, Note(text, text, redacted=False))

    def prune(self, policy: PolicySettings) -> JobOutcome:
        with self.open_job(policy) as context:
            context.entries.release_first_prune(self.role.store.key, [self.role.name])
            return prune.run(context)

    def undo(self, job: int) -> None:
        self.engine.undo(job, by_job=self.next_job_id())

    def advance_days(self, days: float) -> None:
        """So many days later; the service tidied its journal up, and of more than a month jobs did something too."""
        for _ in range(4):
            self.now += days * _DAY / 4
            self.engine.merge_late_writes(self.role.store)
            self.engine.apply_retention()
            for layer in (Layer.NOTES, Layer.ETCHED) if days > 30 else ():
                self.set_layer(self.ids()[-1], layer)

    def find_archived(self, entry: str) -> ArchivedCopy:
        return [kept for kept in list_archived_entries(self.role) if kept.entry.id == entry and kept.entry.text][-1]

    def notice_kinds(self) -> list[str]:
        return [review.kind for review in self.engine.collect_notices(self.role.store).notices]


def memory_text() -> str:
    return (
        MEMORY_HEADER
        + learning_text("money is in cents")
        + observation_text("the review")
        + learning_text("the cache", "etched")
    )


@pytest.fixture
def workspace(tmp_path: Path) -> RoleWorkspace:
    # Noon, so that no test meets midnight on its way.
    made = RoleWorkspace(tmp_path.resolve(), datetime.combine(TODAY, time(12)).astimezone().timestamp())
    made.write(memory_text())
    os.utime(made.role.memory, (made.now - _HOUR, made.now - _HOUR))
    return made


class TestRaise:
    @pytest.mark.parametrize("layer", [Layer.ETCHED, Layer.NOTES, Layer.INSCRIBED])
    @pytest.mark.parametrize("entry", [0, 1, 2])
    def test_changes_the_layer_and_nothing_else_and_undo_gives_the_bytes(
        self, workspace: RoleWorkspace, entry: int, layer: Layer
    ) -> None:
        before, ids = workspace.memory, workspace.ids()

        done = workspace.set_layer(ids[entry], layer)

        assert isinstance(done, JobDone)
        assert workspace.ids() == ids
        document = parse(workspace.memory)
        assert isinstance(document, Document)
        assert [b.entry.layer for b in document.blocks if b.entry][entry] is layer
        changed = [a for a, b in zip(before.splitlines(), workspace.memory.splitlines(), strict=True) if a != b]
        assert all(b"layer" in line or line.startswith(b"## ") for line in changed)
        assert done.changed == bool(changed)
        if done.changed:
            workspace.undo(workspace.jobs)
        assert workspace.memory == before

    def test_reports_a_missing_entry(self, workspace: RoleWorkspace) -> None:
        gone = workspace.ids()[0]
        workspace.forget(gone)

        assert isinstance(workspace.set_layer(gone, Layer.ETCHED), JobBlocked)


class TestForget:
    @pytest.mark.parametrize("entry", [0, 1, 2])
    def test_takes_one_entry_out_and_every_other_byte_stays(self, workspace: RoleWorkspace, entry: int) -> None:
        before, ids = workspace.memory, workspace.ids()

        assert workspace.forget(ids[entry]) == JobDone(f"{ids[entry]} forgotten", changed=True)

        text = workspace.find_archived(ids[entry]).entry.text.encode()
        assert workspace.memory == before.replace(text, b"")
        assert workspace.find_archived(ids[entry]).file == f"archive/removed-{TODAY.year}.md"
        workspace.undo(1)
        assert workspace.memory == before

    def test_all_entries_of_a_file_without_a_head(self, workspace: RoleWorkspace) -> None:
        workspace.write(learning_text("alone"))
        before = workspace.memory

        workspace.forget(*workspace.ids())

        assert workspace.memory == b""
        assert workspace.heal_and_read() == b""
        workspace.undo(1)
        assert workspace.memory == before

    def test_a_secret_does_not_reach_the_archive_and_undo_gives_it_back(self, workspace: RoleWorkspace) -> None:
        token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
        workspace.write(
            memory_text() + learning_text("the token").replace("What was", f"The token is {token}. What was")
        )
        before, gone = workspace.memory, workspace.ids()[-1]

        workspace.forget(gone)

        assert workspace.find_archived(gone).entry.redacted
        assert token not in (workspace.role.path / workspace.find_archived(gone).file).read_text()
        workspace.undo(1)
        assert workspace.memory == before


class TestAForgottenEntryStaysForgotten:
    """A program that writes a removed entry back."""

    @pytest.fixture
    def forgotten_entry(self, workspace: RoleWorkspace) -> str:
        workspace.heal_and_read()
        identity = workspace.ids()[0]
        assert isinstance(workspace.forget(identity), JobDone)
        return identity

    @pytest.mark.parametrize("later", [1.0, 60.0, 5 * _HOUR, 48 * _HOUR, 400 * 24 * _HOUR])
    @pytest.mark.parametrize("addition", ["", learning_text("written by the stale one")], ids=["as it was", "and more"])
    def test_a_stale_copy_of_the_whole_file(
        self, workspace: RoleWorkspace, forgotten_entry: str, later: float, addition: str
    ) -> None:
        without = workspace.memory
        workspace.now += later

        workspace.write(memory_text() + addition)

        assert workspace.heal_and_read() == without + addition.encode()
        assert forgotten_entry not in workspace.ids()
        assert "forgotten" in workspace.notice_kinds()

    def test_a_stale_copy_in_which_its_metadata_was_touched(
        self, workspace: RoleWorkspace, forgotten_entry: str
    ) -> None:
        workspace.now += _HOUR
        changed = memory_text().replace("- **confidence**: 0.8", "- **confidence**: 0.9", 1)
        changed = changed.replace("- **layer**: inscribed", "- **layer**: etched", 1)

        workspace.write(changed)

        workspace.heal_and_read()
        assert forgotten_entry not in workspace.ids()

    @pytest.mark.parametrize(
        "more",
        ["- **confidence**: 0.93\n", "- **evidence**: `src/found_again.py:7`\n", "- **category**: of-its-own\n"],
        ids=["confidence", "evidence", "a line of its own"],
    )
    def test_and_its_text_beyond_the_archive_is_kept_there_once(
        self, workspace: RoleWorkspace, forgotten_entry: str, more: str
    ) -> None:
        without = workspace.memory
        for _ in range(2):
            workspace.now += _HOUR
            workspace.write(memory_text().replace("- **confidence**: 0.8\n", f"- **confidence**: 0.8\n{more}", 1))
            assert workspace.heal_and_read() == without

        assert (workspace.role.path / f"archive/removed-{TODAY.year}.md").read_text().count(more) == 1
        assert workspace.find_archived(forgotten_entry).entry.text == learning_text("money is in cents")

    def test_whichever_archive_tells_of_it(self, workspace: RoleWorkspace, forgotten_entry: str) -> None:
        first = workspace.role.path / f"archive/removed-{TODAY.year}.md"
        first.write_bytes(first.read_bytes() + b"x" * MAX_ARCHIVE_BYTES)
        full = first.stat().st_size
        also = workspace.ids()[0]
        workspace.forget(also)
        without = workspace.memory
        workspace.now += _HOUR

        workspace.write(memory_text().replace("- **confidence**: 0.8\n", "- **confidence**: 0.93\n", 1))

        assert workspace.heal_and_read() == without
        assert first.stat().st_size == full
        assert first.with_stem(f"{first.stem}-2").read_text().count("- **confidence**: 0.93\n") == 1
        assert also not in workspace.ids()

    def test_a_stale_copy_that_undoes_other_work_too(self, workspace: RoleWorkspace, forgotten_entry: str) -> None:
        workspace.now += _HOUR
        workspace.write(workspace.memory + learning_text("one").encode())
        workspace.heal_and_read()
        workspace.now += _HOUR
        workspace.write(workspace.memory + learning_text("two").encode())
        both = workspace.heal_and_read()
        workspace.now += _HOUR

        workspace.write(memory_text() + learning_text("three"))

        assert sorted(workspace.heal_and_read().split(b"\n")) == sorted(
            (both + learning_text("three").encode()).split(b"\n")
        )
        assert forgotten_entry not in workspace.ids()

    def test_late_bytes_through_a_descriptor_that_was_held(self, workspace: RoleWorkspace) -> None:
        workspace.heal_and_read()
        with workspace.role.memory.open("r+b") as held:
            forgotten_entry = workspace.ids()[0]
            # A descriptor that is open for writing makes others wait, so that it is opened for reading in between.
            stale = os.open(workspace.role.memory, os.O_RDONLY)
            held.close()
            workspace.forget(forgotten_entry)
            without = workspace.memory
            late = os.open(f"/proc/self/fd/{stale}", os.O_WRONLY | os.O_APPEND)
            os.write(late, learning_text("late").encode())
            os.close(late)
            os.close(stale)

        workspace.engine.merge_late_writes(workspace.role.store)

        assert forgotten_entry not in workspace.ids()
        assert workspace.memory.replace(learning_text("late").encode(), b"") == without

    def test_a_file_that_keeps_returning_is_left_to_the_user_in_the_end(
        self, workspace: RoleWorkspace, forgotten_entry: str
    ) -> None:
        for _ in range(3):
            workspace.now += 60
            workspace.write(memory_text())
            workspace.heal_and_read()
            assert forgotten_entry not in workspace.ids()
        workspace.now += 60
        workspace.write(memory_text())

        assert workspace.heal_and_read() == memory_text().encode()
        assert workspace.heal_and_read() == memory_text().encode()

    def test_but_not_once_it_was_brought_back(self, workspace: RoleWorkspace, forgotten_entry: str) -> None:
        workspace.restore(workspace.find_archived(forgotten_entry))
        back = workspace.memory
        workspace.now += _HOUR
        workspace.write(back.replace(workspace.find_archived(forgotten_entry).entry.text.encode(), b""))
        workspace.heal_and_read()
        workspace.now += _HOUR

        workspace.write(back)

        assert workspace.heal_and_read() == back
        assert forgotten_entry in workspace.ids()

    @pytest.mark.parametrize("days", [0, 16, 40])
    def test_nor_once_that_was_undone(self, workspace: RoleWorkspace, forgotten_entry: str, days: int) -> None:
        without = workspace.memory
        workspace.undo(1)
        workspace.advance_days(days)
        workspace.now += _HOUR
        workspace.write(without)
        workspace.heal_and_read()
        workspace.now += _HOUR

        workspace.write(memory_text())

        assert workspace.heal_and_read() == memory_text().encode()

    @pytest.mark.parametrize("days", [0, 16, 40])
    def test_and_it_is_forgotten_again_when_that_undo_is_undone(
        self, workspace: RoleWorkspace, forgotten_entry: str, days: int
    ) -> None:
        without = workspace.memory
        workspace.undo(1)
        workspace.undo(2)
        assert workspace.memory == without
        workspace.advance_days(days)
        workspace.now += _HOUR

        workspace.write(memory_text())

        assert workspace.heal_and_read() == without

    def test_and_it_is_forgotten_again_when_bringing_it_back_is_undone(
        self, workspace: RoleWorkspace, forgotten_entry: str
    ) -> None:
        without = workspace.memory
        workspace.restore(workspace.find_archived(forgotten_entry))
        workspace.undo(workspace.jobs)
        assert workspace.memory == without
        workspace.now += _HOUR

        workspace.write(memory_text())

        assert workspace.heal_and_read() == without


class TestAPresentEntryIsNotTakenForAReturnedOne:
    """It has the text of a forgotten entry, and a program touches the file."""

    @pytest.fixture(params=["a twin of the forgotten one", "the forgetting was undone", "it kept coming back"])
    def existing_entry(self, workspace: RoleWorkspace, request: pytest.FixtureRequest) -> str:
        entry, others = (
            learning_text("money is in cents"),
            observation_text("the review") + learning_text("the cache", "etched"),
        )
        if request.param.startswith("a twin"):
            workspace.write(MEMORY_HEADER + entry + others + entry)
        workspace.heal_and_read()
        identity, *_, last = workspace.ids()
        match request.param:
            case "a twin of the forgotten one":
                workspace.forget(last)
            case "the forgetting was undone":
                workspace.forget(identity)
                workspace.undo(1)
            case _:
                workspace.forget(identity)
                for _ in range(4):
                    workspace.now += 60
                    workspace.write(memory_text())
                    workspace.heal_and_read()
        assert identity in workspace.ids()
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
    def test_and_stays(
        self, workspace: RoleWorkspace, existing_entry: str, days: float, touch: tuple[str, str]
    ) -> None:
        workspace.advance_days(days)
        touched = workspace.memory.decode().replace(*touch, 1)

        workspace.write(touched)

        assert workspace.heal_and_read() == touched.encode()
        assert existing_entry in workspace.ids()

    def test_but_a_second_one_beside_it_came_back(self, workspace: RoleWorkspace) -> None:
        entry = learning_text("money is in cents")
        workspace.write(MEMORY_HEADER + entry + learning_text("the cache") + entry)
        workspace.heal_and_read()
        existing_entry, _, twin = workspace.ids()
        workspace.forget(twin)
        without = workspace.memory
        workspace.now += _HOUR

        workspace.write(without.replace(b": 0.8", b": 0.9", 1) + entry.replace(": 0.8", ": 0.7").encode())

        assert workspace.heal_and_read() == without.replace(b": 0.8", b": 0.9", 1)
        assert existing_entry in workspace.ids()


class TestRestore:
    def test_brings_the_bytes_back_and_pins_the_entry(self, workspace: RoleWorkspace) -> None:
        gone = workspace.ids()[0]
        workspace.forget(gone)
        without, kept = workspace.memory, workspace.find_archived(gone)

        assert isinstance(workspace.restore(kept), JobDone)

        assert workspace.memory.endswith(kept.entry.text.encode())
        assert sorted(workspace.ids()) == sorted([gone, *workspace.ids()[:-1]])
        with workspace.entries() as log:
            facts = log.get_facts(workspace.role.store.key, "reviewer", str(workspace.role.store.project), TODAY, 90)
        assert (facts.pinned[gone] - TODAY).days == 30
        workspace.undo(workspace.jobs)
        assert workspace.memory == without

    def test_an_entry_that_is_present_is_not_restored_again(self, workspace: RoleWorkspace) -> None:
        gone = workspace.ids()[0]
        workspace.forget(gone)
        kept = workspace.find_archived(gone)
        workspace.restore(kept)
        before = workspace.memory

        again = workspace.restore(kept)

        assert isinstance(again, JobDone)
        assert not again.changed
        assert workspace.memory == before

    def test_what_an_undo_took_out_can_be_brought_back(self, workspace: RoleWorkspace) -> None:
        workspace.remember("sockets leak on fork")
        noted = workspace.ids()[-1]
        workspace.undo(workspace.jobs)
        assert noted not in workspace.ids()
        kept = workspace.find_archived(noted)
        assert (kept.entry.rule, kept.entry.job) == (Rule.UNDONE, workspace.jobs)

        workspace.restore(kept)

        assert workspace.ids()[-1] == noted

    def test_an_earlier_version_that_an_undo_took_out_is_not_taken_for_the_newest(
        self, workspace: RoleWorkspace
    ) -> None:
        entry = workspace.ids()[0]
        workspace.set_layer(entry, Layer.NOTES)

        workspace.undo(workspace.jobs)

        assert [kept for kept in list_archived_entries(workspace.role) if kept.entry.id == entry] == []
        assert "**layer**: notes" in (workspace.role.path / f"archive/removed-{TODAY.year}.md").read_text()

    def test_what_an_older_version_of_the_file_took_out_can_be_brought_back(self, workspace: RoleWorkspace) -> None:
        before = workspace.memory
        workspace.remember("sockets leak on fork")
        noted = workspace.ids()[-1]
        workspace.now += _HOUR
        workspace.write(before)
        assert workspace.heal_and_read() == before

        workspace.restore(workspace.find_archived(noted))

        assert workspace.ids()[-1] == noted

    def test_what_prune_took_is_not_pruned_again(self, workspace: RoleWorkspace) -> None:
        workspace.write(MEMORY_HEADER + "".join(learning_text(f"thing {n}", "traced", age=n) for n in range(40)))
        policy = PolicySettings(memory_line_limit=100)
        workspace.prune(policy)
        gone = list_archived_entries(workspace.role)[-1]
        assert gone.file.startswith("archive/pruned-")

        workspace.restore(gone)
        workspace.prune(policy)

        assert gone.entry.id in workspace.ids()

    def test_a_full_text_takes_the_place_of_its_short_form(self, workspace: RoleWorkspace) -> None:
        long = "".join(learning_text(f"long {n}", age=n, lines=60) for n in range(3))
        workspace.write(MEMORY_HEADER + long)
        workspace.prune(PolicySettings(memory_line_limit=100))
        short, ids = workspace.memory, workspace.ids()
        kept = next(kept for kept in list_archived_entries(workspace.role) if kept.entry.rule == Rule.CONDENSED)

        workspace.restore(kept)

        assert workspace.ids() == ids
        assert kept.entry.text.rstrip().encode() in workspace.memory
        document = parse(short)
        assert isinstance(document, Document)
        removed = (workspace.role.path / f"archive/removed-{TODAY.year}.md").read_text()
        assert document.blocks[ids.index(kept.entry.id)].text.rstrip() in removed
        workspace.undo(workspace.jobs)
        assert workspace.memory == short

    def test_what_compress_took_goes_back_to_the_knowledge_file(self, workspace: RoleWorkspace) -> None:
        kept = _archived_knowledge(workspace)

        workspace.restore(kept)

        assert workspace.role.knowledge.read_text().endswith(kept.entry.text)
        assert workspace.memory == memory_text().encode()


def _archived_knowledge(workspace: RoleWorkspace) -> ArchivedCopy:
    workspace.role.knowledge.write_text("# Reviewer Knowledge\n\n" + learning_text("known"))
    workspace.reset()
    workspace.undo(workspace.jobs)
    workspace.role.knowledge.write_text("# Reviewer Knowledge\n")
    return next(k for k in list_archived_entries(workspace.role) if k.entry.file == "knowledge.md" and k.entry.id)


class TestReset:
    def test_empties_both_files_and_everything_is_in_the_archive(self, workspace: RoleWorkspace) -> None:
        workspace.write("A head of its own.\n\n" + memory_text() + "## My own section\n\nStays with me.\n")
        workspace.role.knowledge.write_text("# Reviewer Knowledge\n\n" + learning_text("known"))
        (workspace.role.path / "ward-findings.md").write_text(finding_text("New"))
        before, knowledge = workspace.memory, workspace.role.knowledge.read_bytes()

        done = workspace.reset()

        assert done == JobDone("MEMORY.md and knowledge.md emptied, 4 entries archived", changed=True)
        assert workspace.memory == b"<!-- echo-schema: v1 -->\n# Reviewer Memory\n"
        assert workspace.role.knowledge.read_bytes() == b"<!-- echo-schema: v1 -->\n# Reviewer Knowledge\n"
        assert (workspace.role.path / f"archive/MEMORY-{TODAY}.md").read_bytes() == before
        assert "".join(k.entry.text for k in list_archived_entries(workspace.role)) == (before + knowledge).decode()
        assert (workspace.role.path / "ward-findings.md").exists()
        assert workspace.heal_and_read() == b"<!-- echo-schema: v1 -->\n# Reviewer Memory\n"
        workspace.undo(1)
        assert (workspace.memory, workspace.role.knowledge.read_bytes()) == (before, knowledge)

    def test_a_second_time_does_nothing(self, workspace: RoleWorkspace) -> None:
        workspace.reset()
        before = {path: path.read_bytes() for path in workspace.role.path.rglob("*.md")}

        assert workspace.reset() == JobDone("there was nothing in it", changed=False)
        assert {path: path.read_bytes() for path in workspace.role.path.rglob("*.md")} == before

    def test_a_file_that_cannot_be_read_is_left_alone(self, workspace: RoleWorkspace) -> None:
        workspace.write(b"\xff\xfe")

        assert isinstance(workspace.reset(), JobBlocked)
        assert workspace.memory == b"\xff\xfe"


class TestRemember:
    def test_begins_the_file_and_undo_takes_it_away(self, workspace: RoleWorkspace) -> None:
        workspace.role.memory.unlink()

        workspace.remember("Use uv")

        assert workspace.memory.decode() == (
            "<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n"
            f"## Notes \u2014 Use uv ({TODAY})\n**Source**: user:remember\n- Use uv\n"
        )
        workspace.undo(1)
        assert not workspace.role.memory.exists()

    def test_the_same_again_changes_nothing_and_names_its_id(self, workspace: RoleWorkspace) -> None:
        workspace.remember("Use uv")

        again = workspace.remember("use  UV")

        assert again == JobDone(f"this is remembered already, as {workspace.ids()[-1]}", changed=False)

"""Sessions that go on, are resumed, forked, cleared and compacted; what is undone, forgotten and killed."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest

from echod.memory.conversation.archive import parse_header
from echod.memory.conversation.index import row_numbers, split_entries
from echod.memory.conversation.model import ArchiveOrigin
from echod.runtime.system import UserCommand, UserCommandError
from echod.sessions import dialects
from echod.sessions.archiver import SessionSource
from echod.sessions.forget import find_session, forget
from echod.sessions.journal import RootJournal
from echod.sessions.receipts import SummaryKind, read_receipt
from echod.sessions.roots import EPHEMERAL, INDEX, SessionError, SessionRoot
from echod.state.database import Database
from tests.sessions.conftest import Archives
from tests.sessions.generator import MadeTranscript, TranscriptMaker, make_transcript
from tests.support import run_in_child


def simple(seed: int, prompts: int = 2) -> TranscriptMaker:
    maker = TranscriptMaker(seed)
    for _ in range(prompts):
        maker.prompt()
        maker.answer()
    return maker


def count(archives: Archives, made: MadeTranscript) -> list[int]:
    texts = map(archives.text, archives.root.archives())
    messages = "".join(text[text.index("\n# Conversation ") :] for text in texts)
    return [messages.count(f"{prompt}\n\n") for prompt in made.prompts]


class TestGoingOn:
    def test_a_session_that_goes_on_keeps_its_number_and_reads_only_what_is_new(
        self, archives: Archives, tmp_path: Path
    ) -> None:
        maker = simple(1)
        archives.archive(maker.made.write(tmp_path))
        before = archives.text(1)
        maker.prompt()
        maker.tool_use()

        outcome = archives.archive(maker.made.write(tmp_path))

        receipt = read_receipt(archives.root, 1)
        assert outcome.archive == 1
        assert receipt is not None
        first, second = receipt.sources
        assert (first.start, first.end, second.start) == (0, second.start, first.end)
        assert second.end == sum(map(len, maker.made.lines))
        body = before[before.index("# Conversation 001") :].split("## Tags")[0].rstrip()
        assert body in archives.text(1)
        assert row_numbers(archives.root.read_text(INDEX)) == (1,)
        assert len(split_entries(archives.root.read_text(EPHEMERAL))) == 1
        header = parse_header(archives.text(1))
        assert header is not None
        assert header.message_count == receipt.messages == 6

    def test_a_half_written_line_waits_for_its_end(self, archives: Archives, tmp_path: Path) -> None:
        maker = simple(2)
        whole = maker.made.write(tmp_path).read_bytes()
        maker.prompt()
        late = maker.made.prompts[-1]
        path = maker.made.write(tmp_path)
        data = path.read_bytes()
        path.write_bytes(data[: len(whole) + 40])

        archives.archive(path, complete=False)
        assert late not in archives.text(1)
        path.write_bytes(data)
        archives.archive(path)

        assert archives.text(1).count(late) == 1

    def test_a_last_line_without_its_end_counts_when_the_session_has_ended(
        self, archives: Archives, tmp_path: Path
    ) -> None:
        maker = simple(3)
        path = maker.made.write(tmp_path)
        path.write_bytes(path.read_bytes().rstrip(b"\n"))

        archives.archive(path)

        assert count(archives, maker.made) == [1, 1]

    def test_an_unchanged_session_writes_nothing(self, archives: Archives, tmp_path: Path) -> None:
        path = simple(4).made.write(tmp_path)
        archives.archive(path)
        before = archives.files()

        assert archives.archive(path).archive is None
        assert archives.files() == before

    def test_a_transcript_that_was_rewritten_adds_only_what_is_new(self, archives: Archives, tmp_path: Path) -> None:
        maker = simple(5, prompts=3)
        path = maker.made.write(tmp_path)
        archives.archive(path)
        maker.made.lines = [b'{"type":"mode","mode":"x"}\n', *maker.made.lines[2:]]
        maker.prompt()
        maker.made.write(tmp_path)

        archives.archive(path)

        assert count(archives, maker.made) == [1, 1, 1, 1]

    def test_what_a_user_edited_in_an_archive_stays(self, archives: Archives, tmp_path: Path) -> None:
        maker = simple(6)
        path = maker.made.write(tmp_path)
        archives.archive(path)
        file = archives.root.archive_path(1)
        file.write_text(file.read_text().replace("### Assistant\n", "### Assistant\n\nMY NOTE\n", 1))
        maker.prompt()
        maker.made.write(tmp_path)

        archives.archive(path)

        assert "MY NOTE" in archives.text(1)
        assert count(archives, maker.made) == [1, 1, 1]

    def test_an_archive_without_its_structure_is_left_alone_and_continued_in_another(
        self, archives: Archives, tmp_path: Path
    ) -> None:
        maker = simple(7)
        path = maker.made.write(tmp_path)
        archives.archive(path)
        archives.root.archive_path(1).write_text("my own text\n")
        maker.prompt()
        maker.made.write(tmp_path)

        outcome = archives.archive(path)

        assert outcome.archive == 2
        assert archives.text(1) == "my own text\n"
        assert "Continues [conversation-001.md]" in archives.text(2)


class TestOtherSessions:
    def fork(self, maker: TranscriptMaker, session: str, *, rename: bool) -> MadeTranscript:
        """Return a resumed or forked session: copies of the records under another id, and a new prompt."""
        copied = MadeTranscript(session, maker.made.cwd)
        for line in maker.made.lines:
            record = json.loads(line)
            copied.lines.append(
                json.dumps({**record, "sessionId": session if rename else record["sessionId"]}).encode() + b"\n"
            )
        text = "A prompt of the second session only"
        copied.prompts.append(text)
        copied.lines.append(json.dumps({**maker.user(text), "sessionId": session}).encode() + b"\n")
        return copied

    @pytest.mark.parametrize("rename", [True, False])
    def test_a_resumed_session_has_only_its_new_messages_and_names_what_it_continues(
        self, archives: Archives, tmp_path: Path, rename: bool
    ) -> None:
        maker = simple(11)
        second = self.fork(maker, "00000000-0000-4000-8000-00000000000b", rename=rename)
        archives.archive(maker.made.write(tmp_path))

        outcome = archives.archive(second.write(tmp_path))

        assert outcome.archive == 2
        assert count(archives, maker.made) == [1, 1]
        assert count(archives, second) == [1]
        assert "continues: 1\n" in archives.text(2)

    def test_a_resumed_session_without_anything_new_is_skipped(self, archives: Archives, tmp_path: Path) -> None:
        maker = simple(12)
        second = self.fork(maker, "00000000-0000-4000-8000-00000000000c", rename=True)
        second.lines.pop()
        archives.archive(maker.made.write(tmp_path))

        assert archives.archive(second.write(tmp_path)).text == "nothing is new"
        assert list(archives.root.archives()) == [1]

    def test_the_same_session_below_two_projects_is_archived_once(self, archives: Archives, tmp_path: Path) -> None:
        maker = simple(13)

        archives.archive(maker.made.write(tmp_path / "a"))
        archives.archive(maker.made.write(tmp_path / "b"))

        assert count(archives, maker.made) == [1, 1]

    def test_a_session_without_a_typed_prompt_is_skipped(self, archives: Archives, tmp_path: Path) -> None:
        maker = TranscriptMaker(14)
        maker.injected()
        maker.sidechain()
        maker.bookkeeping()

        assert archives.archive(maker.made.write(tmp_path)).text == "it has no typed prompt"
        assert archives.archive(Path(maker.made.write(tmp_path))).archive is None
        assert list(archives.root.archives()) == []

    @pytest.mark.parametrize("content", [b'{\n  "role": "user"\n}\n', b"hello\n", b'{"a": 1}\n', b"\x89PNG\r\n"])
    def test_a_file_that_is_no_transcript_is_an_error(self, archives: Archives, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "x.jsonl"
        path.write_bytes(content)

        with pytest.raises(SessionError, match="no transcript"):
            archives.archive(path)

    def test_a_missing_file_and_a_directory_are_errors(self, archives: Archives, tmp_path: Path) -> None:
        for path in (tmp_path / "none.jsonl", tmp_path):
            with pytest.raises(SessionError, match="cannot be read"):
                archives.archive(path)


class TestSubAgents:
    def make(self, tmp_path: Path, *, old: bool = False) -> tuple[TranscriptMaker, Path, Path]:
        maker = simple(30, prompts=1)
        agent = TranscriptMaker(31)
        agent.made.session = maker.made.session
        agent.prompt()
        agent.answer()
        path = maker.made.write(tmp_path / "t")
        beside = path.parent if old else path.with_suffix("") / "subagents"
        return maker, path, agent.made.write(beside, name="agent-77")

    @pytest.mark.parametrize("old", [False, True], ids=["in the directory of the session", "beside the transcript"])
    def test_they_are_in_the_archive_of_their_session(self, archives: Archives, tmp_path: Path, old: bool) -> None:
        maker, path, agent = self.make(tmp_path, old=old)
        if old:
            TranscriptMaker(32).made.write(path.parent, name="agent-of-another")
        task = json.loads(agent.read_bytes().splitlines()[0])["message"]["content"]

        outcome = archives.archive(path)

        text = archives.text(1)
        assert text.count(f"### Sub-agent: 77\n\n**Task**: {task}\n") == 1
        assert f"### User\n\n{task}" not in text
        assert outcome.receipt is not None
        assert (outcome.receipt.prompts, outcome.receipt.messages) == (len(maker.made.prompts), 2)
        assert {part.path for part in outcome.receipt.sources} == {str(path), str(agent)}
        assert archives.archive(path).archive is None

    @pytest.mark.parametrize("lost_database", [False, True])
    def test_only_what_is_new_of_them_is_added(self, archives: Archives, tmp_path: Path, lost_database: bool) -> None:
        maker, path, agent = self.make(tmp_path)
        archives.archive(path)
        later = TranscriptMaker(33)
        later.prompt()
        agent.write_bytes(agent.read_bytes() + b"".join(later.made.lines))
        maker.prompt()
        maker.made.write(path.parent)
        with Database.open(tmp_path / "new" / "echod.db") as database:
            second = Archives(archives.root, database) if lost_database else archives
            assert second.archive(path).archive == 1

        text = archives.text(1).partition("\n# Conversation ")[2]
        assert [text.count(prompt) for prompt in (*maker.made.prompts, later.made.prompts[0])] == [1, 1, 1]
        assert text.index("### Sub-agent") < text.index(f"### User\n\n{maker.made.prompts[1]}")

    def test_one_that_cannot_be_read_keeps_no_session_from_its_archive(
        self, archives: Archives, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _, path, agent = self.make(tmp_path)
        real = dialects.open_transcript

        def open_transcript(file: Path) -> BinaryIO:
            if file == agent:
                raise PermissionError(13, "Permission denied")
            return real(file)

        monkeypatch.setattr("echod.sessions.archiver.open_transcript", open_transcript)
        outcome = archives.archive(path)

        assert outcome.archive == 1
        assert outcome.receipt is not None
        assert outcome.receipt.skipped["unreadable sub-agent"] == 1


class TestCheckpoints:
    def test_the_archive_after_a_checkpoint_continues_it(self, archives: Archives, tmp_path: Path) -> None:
        maker = simple(21)
        assert archives.checkpoint(maker.made.write(tmp_path)).archive == 1
        assert archives.root.read_text(EPHEMERAL) == ""
        assert archives.checkpoint(maker.made.write(tmp_path)).archive is None
        maker.prompt()

        outcome = archives.archive(maker.made.write(tmp_path))

        assert outcome.archive == 2
        assert count(archives, maker.made) == [1, 1, 1]
        assert 'source: "checkpoint"' in archives.text(1)
        assert "continues: 1\n" in archives.text(2)
        (entry,) = split_entries(archives.root.read_text(EPHEMERAL))
        assert "**Messages**: 5 |" in entry
        assert row_numbers(archives.root.read_text(INDEX)) == (1, 2)

    def test_a_session_that_ends_at_its_checkpoint_gets_its_entry(self, archives: Archives, tmp_path: Path) -> None:
        path = simple(22).made.write(tmp_path)
        archives.checkpoint(path)

        archives.archive(path)
        archives.archive(path)

        (entry,) = split_entries(archives.root.read_text(EPHEMERAL))
        assert "conversation-001.md" in entry
        assert list(archives.root.archives()) == [1]

    def test_a_prompt_in_the_queue_is_not_written_by_a_checkpoint_and_twice_later(
        self, archives: Archives, tmp_path: Path
    ) -> None:
        maker = simple(23)
        maker.queued_prompt_that_only_the_queue_has()
        queued = maker.made.prompts[-1]
        archives.checkpoint(maker.made.write(tmp_path))
        assert queued not in archives.text(1)
        maker.add(maker.user(queued))

        archives.archive(maker.made.write(tmp_path))

        assert count(archives, maker.made) == [1, 1, 1]


class TestWindow:
    def test_the_configured_number_of_summaries_is_kept(self, archives: Archives, tmp_path: Path) -> None:
        (archives.root.memory / ".recall-echo.toml").write_text("[ephemeral]\nmax_entries = 2 # few\n")
        for seed in range(31, 35):
            archives.archive(simple(seed).made.write(tmp_path))

        assert len(split_entries(archives.root.read_text(EPHEMERAL))) == 2

    @pytest.mark.parametrize(
        "text",
        [
            "[ephemeral]\nmax_entries = 0",
            "[ephemeral]\nmax_entries = 100",
            "# only",
            "[",
            "ephemeral = 3",
            "[ephemeral]\nmax_entries = true",
        ],
    )
    def test_an_invalid_number_gives_the_default(self, archives: Archives, text: str) -> None:
        (archives.root.memory / ".recall-echo.toml").write_text(text)

        assert archives.root.config().entries == 5

    def test_an_evicted_entry_of_another_program_is_kept(self, archives: Archives, tmp_path: Path) -> None:
        foreign = "## Chat Session \u2014 yesterday\n(4 messages)\n- a bullet"
        (archives.root.memory / EPHEMERAL).write_text(f"{foreign}\n")
        for seed in range(41, 46):
            archives.archive(simple(seed).made.write(tmp_path))

        assert foreign not in archives.root.read_text(EPHEMERAL)
        assert foreign in archives.root.read_text(".echod/evicted.md")

    @pytest.mark.parametrize("name", [EPHEMERAL, INDEX])
    def test_a_file_that_cannot_be_read_is_left_alone_and_keeps_no_session_from_its_archive(
        self, archives: Archives, tmp_path: Path, name: str
    ) -> None:
        (archives.root.memory / name).write_bytes(b"\xff\xfe not UTF-8")

        assert archives.archive(simple(46).made.write(tmp_path)).archive == 1
        assert (archives.root.memory / name).read_bytes() == b"\xff\xfe not UTF-8"


class TestPrivacy:
    def test_everything_is_private(self, archives: Archives, tmp_path: Path) -> None:
        archives.archive(simple(51).made.write(tmp_path))

        for path in (archives.root.entity, *archives.root.entity.rglob("*")):
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o700 if path.is_dir() else 0o600), path

    def test_a_directory_in_a_project_is_ignored_by_git(self, tmp_path: Path) -> None:
        root = SessionRoot(tmp_path / ".rune", in_project=True)
        root.create()

        assert root.read_text(".gitignore") == "*\n"

    def test_a_link_leads_nowhere(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / ".rune").mkdir()
        (tmp_path / ".rune" / "memory").symlink_to(tmp_path / "elsewhere")

        with pytest.raises(SessionError, match="not a directory of its own"):
            SessionRoot(tmp_path / ".rune", in_project=True).create()
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_no_file_has_a_secret_after_summary_tags_and_receipt(self, archives: Archives, tmp_path: Path) -> None:
        secret = "ghp_" + "Xa8vN2mQp4Lr6Ts9Wz1Bc3Df5Gh7Jk0LmNpQ"
        maker = TranscriptMaker(52)
        maker.add(maker.user(f"We decided to use {secret} here. TODO: rotate {secret} now."))
        maker.add(
            maker.assistant(
                {
                    "type": "tool_use",
                    "id": "t",
                    "name": "Bash",
                    "input": {"command": f"curl -H 'Authorization: Bearer {secret}'"},
                }
            )
        )
        archives.archive(maker.made.write(tmp_path))

        found = [
            path for path in archives.root.entity.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()
        ]
        assert found == []
        assert "[REDACTED:" in archives.text(1)

    def test_a_forgotten_session_leaves_no_trace_and_is_not_archived_again(
        self, archives: Archives, tmp_path: Path
    ) -> None:
        maker, other = simple(53), simple(54)
        path = maker.made.write(tmp_path)
        archives.archive(path)
        archives.archive(other.made.write(tmp_path))
        maker.prompt()
        archives.archive(maker.made.write(tmp_path))

        session = find_session(archives.root, maker.made.session[:8])
        with archives.archiver.opened():
            forget(archives.archiver.journal, archives.session_log, session, 9, archives.now)

        needles = [prompt.encode() for prompt in maker.made.prompts]
        left = [
            file
            for file in archives.root.entity.rglob("*")
            if file.is_file() and any(needle in file.read_bytes() for needle in needles)
        ]
        assert left == []
        assert list(archives.root.archives()) == [2]
        assert row_numbers(archives.root.read_text(INDEX)) == (2,)
        maker.prompt()
        assert "forgotten" in archives.archive(maker.made.write(tmp_path)).text
        assert archives.archive(path, requested=True).archive == 3


class TestUndo:
    def records(self, archives: Archives) -> RootJournal:
        return RootJournal(archives.root)

    def undo(self, archives: Archives, job: int, by: int) -> None:
        archiver = archives.archiver
        records = [one for one in archiver.journal.records() if one.job == job and one.undone_by is None]
        with archiver.opened():
            for record in reversed(records):
                archiver.undo(record, by)

    def test_an_undo_restores_every_byte_and_the_session_stays_out_until_it_changes(
        self, archives: Archives, tmp_path: Path
    ) -> None:
        archives.archive(simple(61).made.write(tmp_path))
        before = archives.files()
        maker = simple(62)
        path = maker.made.write(tmp_path)
        archives.archive(path)

        self.undo(archives, job=2, by=3)

        assert archives.files() == before
        assert "undone" in archives.archive(path).text
        maker.prompt()
        assert archives.archive(maker.made.write(tmp_path)).archive == 3
        assert count(archives, maker.made) == [1, 1, 1]

    def test_an_undo_is_undone(self, archives: Archives, tmp_path: Path) -> None:
        path = simple(63).made.write(tmp_path)
        archives.archive(path)
        after = archives.files()

        self.undo(archives, job=1, by=2)
        self.undo(archives, job=2, by=3)

        assert archives.files() == after
        assert archives.archive(path).text == "nothing is new"

    def test_an_older_archive_is_undone_around_newer_ones(self, archives: Archives, tmp_path: Path) -> None:
        for seed in (64, 65):
            archives.archive(simple(seed).made.write(tmp_path))

        self.undo(archives, job=1, by=3)

        assert list(archives.root.archives()) == [2]
        assert row_numbers(archives.root.read_text(INDEX)) == (2,)
        assert len(split_entries(archives.root.read_text(EPHEMERAL))) == 1

    def test_a_changed_archive_is_not_undone(self, archives: Archives, tmp_path: Path) -> None:
        archives.archive(simple(66).made.write(tmp_path))
        file = archives.root.archive_path(1)
        file.write_text(file.read_text() + "mine\n")
        (record,) = archives.archiver.journal.records()

        problem = archives.archiver.journal.undo_problem(record, archives.now)

        assert problem is not None
        assert "was changed since" in problem

    def test_it_is_too_late_after_two_weeks_and_the_contents_are_deleted(
        self, archives: Archives, tmp_path: Path
    ) -> None:
        maker = simple(67)
        archives.archive(maker.made.write(tmp_path))
        maker.prompt()
        archives.archive(maker.made.write(tmp_path))
        journal = archives.archiver.journal
        later = archives.now + 15 * 86_400

        freed = journal.apply_retention(later)

        assert freed > 0
        assert "too late" in (journal.undo_problem(journal.records()[-1], later) or "")
        assert list((archives.root.private / "blobs").iterdir()) == []


class _Killed(BaseException):
    """The process was killed here."""


class TestKilled:
    def steps(self, archives: Archives) -> list[str]:
        seen: list[str] = []
        archives.trace = seen.append
        return seen

    @pytest.mark.slow
    @pytest.mark.parametrize("lost_database", [False, True])
    def test_a_run_that_is_killed_at_any_step_is_completed(self, tmp_path: Path, lost_database: bool) -> None:
        maker = simple(71)
        maker.sub_agent_in_its_own_file()
        reference = self.make(tmp_path / "reference")
        self.run(reference, maker, tmp_path / "t")
        expected = reference.files()
        steps = self.trace_of(tmp_path / "traced", maker, tmp_path / "t")
        assert len(steps) > 12
        for number in range(len(steps)):
            self.kill(tmp_path / f"{number}", maker, tmp_path / "t", number)
            archives = self.make(tmp_path / f"{number}", name="second.db" if lost_database else "echod.db")

            self.run(archives, maker, tmp_path / "t")

            assert archives.files() == expected, steps[number]
            assert row_numbers(archives.root.read_text(INDEX)) == tuple(archives.root.archives()) == (1, 2)
            assert list((archives.root.private / "stage").iterdir()) == []
            archives.database.close()
        reference.database.close()

    def make(self, directory: Path, name: str = "echod.db") -> Archives:
        return Archives(SessionRoot(directory / "root"), Database.open(directory / "state" / name))

    def run(self, archives: Archives, maker: TranscriptMaker, directory: Path) -> None:
        """Archive a session so far, then with one prompt more, then a second session."""
        data = b"".join(maker.made.lines)
        path = maker.made.write(directory)
        path.write_bytes(data[: data.index(b"\n", len(data) // 2) + 1])
        archives.archive(path)
        path.write_bytes(data)
        archives.archive(path)
        archives.archive(simple(72).made.write(directory))

    def trace_of(self, directory: Path, maker: TranscriptMaker, transcripts: Path) -> list[str]:
        archives = self.make(directory)
        seen = self.steps(archives)
        self.run(archives, maker, transcripts)
        archives.database.close()
        return seen

    def kill(self, directory: Path, maker: TranscriptMaker, transcripts: Path, number: int) -> None:
        """Run in a process that ends at a step, without any cleaning up."""
        seen = 0

        def trace(_: str) -> None:
            nonlocal seen
            seen += 1
            if seen > number:
                os._exit(137)

        def work() -> None:
            archives = self.make(directory)
            archives.trace = trace
            self.run(archives, maker, transcripts)

        assert run_in_child(work) == 137

    def test_a_forgetting_that_is_killed_is_completed(
        self, archives: Archives, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        maker = simple(73)
        archives.archive(maker.made.write(tmp_path))
        session = find_session(archives.root, "1")
        real = Path.unlink

        def unlink(path: Path, *, missing_ok: bool = False) -> None:
            if path.name == "conversation-001.md":
                raise _Killed
            real(path, missing_ok=missing_ok)

        monkeypatch.setattr(Path, "unlink", unlink)
        with pytest.raises(_Killed), archives.archiver.opened():
            forget(archives.archiver.journal, archives.session_log, session, 9, archives.now)
        monkeypatch.undo()

        with archives.archiver.opened():
            pass

        assert list(archives.root.archives()) == []
        assert not (archives.root.private / "forgetting.json").exists()


class TestLostDatabase:
    def test_the_receipts_bring_everything_back(self, archives: Archives, tmp_path: Path) -> None:
        made = [make_transcript(seed) for seed in range(80, 86)]
        for one in made:
            archives.archive(one.write(tmp_path / "t"))
        before = archives.files()
        with Database.open(tmp_path / "new" / "echod.db") as database:
            second = Archives(archives.root, database)

            for one in made:
                assert second.archive(tmp_path / "t" / f"{one.session}.jsonl").archive is None

            assert second.files() == before

    def test_two_programs_at_once_give_no_number_twice(self, archives: Archives, tmp_path: Path) -> None:
        paths = [simple(seed).made.write(tmp_path / "t") for seed in range(100, 112)]

        def work(part: list[Path], number: int) -> None:
            with Database.open(tmp_path / f"state-{number}" / "echod.db") as database:
                own = Archives(SessionRoot(archives.root.entity), database)
                for path in part:
                    own.archive(path)

        with ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(work, paths[number::3], number) for number in range(3)]:
                done.result()

        assert list(archives.root.archives()) == list(range(1, 13))
        assert row_numbers(archives.root.read_text(INDEX)) == tuple(range(1, 13))

    def test_a_number_is_never_given_twice(self, archives: Archives, tmp_path: Path) -> None:
        archives.archive(simple(87).made.write(tmp_path))
        (archives.root.conversations / "conversation-010.md").write_text("of another program\n")

        assert archives.archive(simple(88).made.write(tmp_path)).archive == 11


class TestSummaries:
    ANSWER = (
        '{"summary": "It works with ghp_'
        'Xa8vN2mQp4Lr6Ts9Wz1Bc3Df5Gh7Jk0LmNpQ.", "topics": ["Parsing"], "decisions": ["Keep it"], "action_items": ["Test it"]}'
    )

    def test_the_users_command_summarises_afterwards(self, archives: Archives, tmp_path: Path) -> None:
        prompts: list[str] = []

        def answer(prompt: str) -> str:
            prompts.append(prompt)
            return self.ANSWER

        archives.summarizer = answer
        archives.archive(simple(91).made.write(tmp_path))
        receipt = read_receipt(archives.root, 1)
        assert receipt is not None
        assert receipt.summary is SummaryKind.PENDING

        assert archives.archiver.summarise_pending(2) == 1

        text = archives.text(1)
        assert "## Summary\n\nIt works with [REDACTED:" in text
        assert "**Decisions**:\n- Keep it\n\n**Action Items**:\n- Test it\n\n# Conversation 001\n" in text
        assert 'topics: ["parsing"]' in text
        assert "| parsing |" in archives.root.read_text(INDEX)
        assert "**Summary**: It works" in archives.root.read_text(EPHEMERAL)
        assert archives.archiver.summarise_pending(3) == 0
        assert "User: " in prompts[0]

    def test_a_failure_leaves_the_extracted_summary_and_is_counted(self, archives: Archives, tmp_path: Path) -> None:
        def fail(prompt: str) -> str:
            raise UserCommandError(f"no answer to {len(prompt)} characters")

        archives.summarizer = fail
        archives.archive(simple(92).made.write(tmp_path))
        before = archives.files()

        assert archives.archiver.summarise_pending(2) == 0

        receipt = read_receipt(archives.root, 1)
        assert receipt is not None
        assert (receipt.summary, receipt.attempts) == (SummaryKind.PENDING, 1)
        assert archives.files() == before

    @pytest.mark.parametrize(
        ("script", "reason"),
        [
            ("exit 3", "ended with 3"),
            ("sleep 30", "longer than"),
            ("yes", "too much"),
            ("exec /none", "ended with 127"),
        ],
    )
    def test_a_command_that_misbehaves_is_ended(self, script: str, reason: str) -> None:
        summarizer = UserCommand(["sh", "-c", script], 0.3, os.environ, 64 * 1024, on_wait=lambda: None)

        with pytest.raises(UserCommandError, match=reason):
            summarizer("prompt")

    def test_a_command_gets_the_prompt_on_its_input_and_no_session_to_archive(self) -> None:
        environ = {**os.environ, "CLAUDECODE": "1"}
        script = 'cat; printf " %s %s %s" "$CLAUDE_CODE_SKIP_PROMPT_HISTORY" "${CLAUDECODE-unset}" "$(ls)"'

        answer = UserCommand(["sh", "-c", script], 10, environ, 64 * 1024, on_wait=lambda: None)("the prompt")

        assert answer == "the prompt 1 unset "

    def test_a_missing_command_is_a_failure(self) -> None:
        with pytest.raises(UserCommandError, match="cannot be started"):
            UserCommand(["/no/such/command"], 1, os.environ, 64 * 1024, on_wait=lambda: None)("x")


def test_a_session_source_of_a_project_is_recorded_with_it(archives: Archives, tmp_path: Path) -> None:
    path = simple(99).made.write(tmp_path)

    archives.archiver.archive(SessionSource(path, "/home/dev/app"), ArchiveOrigin.SESSION, 1)

    source = archives.session_log.find_source(archives.root.key, str(path))
    assert source is not None
    assert source.project == "/home/dev/app"

"""The behaviours that the tests of recall-echo pin, in the groups of its modules. Formats have tests of their own.

`tests/memory/test_conversation_formats.py` has those of front matter, index, window, tags, topics and times.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from echod.cli.commands.session_views import bar, format_bytes
from echod.memory.conversation.digest import ConversationDigest
from echod.memory.conversation.distill import analyse_memory
from echod.memory.conversation.host import parse_host_session
from echod.memory.conversation.index import split_entries
from echod.memory.conversation.model import Speaker, ToolCall, ToolOutput, Utterance, utc_timestamp
from echod.sessions.roots import SessionError, SessionRoot
from tests.sessions.conftest import Archives, Desk
from tests.support import corpus

_COLOUR = re.compile(r"\x1b\[\d+m")


@pytest.fixture
def entity(desk: Desk) -> Path:
    """A directory with `memory/` that is no project's."""
    path = desk.home / "entity"
    path.mkdir()
    desk.run("sessions", "init", path)
    return path


def write_archives(entity: Path, number: int, text: str = "auth") -> None:
    for count in range(1, number + 1):
        head = f'---\nlog: {count}\ndate: "2026-11-27T10:00:00Z"\n---\n\n# Conversation {count:03}\n\n'
        path = entity / f"memory/conversations/conversation-{count:03}.md"
        path.write_text(f"{head}---\n\n### User\n\nbefore\n{text} {count}\nafter\n\n\n")


class TestArchive:
    @pytest.mark.parametrize(
        ("names", "highest"),
        [
            ((), 0),
            (("conversation-001.md", "conversation-002.md", "conversation-003.md"), 3),
            (("conversation-001.md", "conversation-010.md"), 10),
            (("notes.md", "conversation-bad.md"), 0),
            (("conversation-999.md", "conversation-1000.md"), 1000),
        ],
    )
    def test_the_next_number_follows_the_highest(
        self, archives: Archives, names: tuple[str, ...], highest: int
    ) -> None:
        for name in names:
            (archives.root.conversations / name).write_text("x")

        assert archives.root.highest_number() == highest


class TestCheckpoint:
    def test_it_has_its_source_and_a_row_and_no_entry(self, archives: Archives, tmp_path: Path) -> None:
        path = tmp_path / "s.jsonl"
        path.write_text('{"type": "user", "uuid": "u", "message": {"role": "user", "content": "Fix the parser"}}\n')

        assert archives.checkpoint(path).archive == 1

        assert 'source: "checkpoint"' in archives.text(1)
        assert "| 001 | " in archives.root.read_text("ARCHIVE.md")
        assert archives.root.read_text("EPHEMERAL.md") == ""

    @pytest.mark.parametrize("messages", [[], [{"role": "assistant", "content": "hello"}]])
    def test_without_a_message_of_the_user_nothing_is_written(
        self, desk: Desk, entity: Path, messages: list[object]
    ) -> None:
        file = desk.home / "messages.json"
        file.write_text(json.dumps(messages))
        index = (entity / "memory/ARCHIVE.md").read_text()

        assert "skipped" in desk.run("sessions", "archive", "--messages", file, "--root", entity)

        assert list((entity / "memory/conversations").iterdir()) == []
        assert (entity / "memory/ARCHIVE.md").read_text() == index
        assert (entity / "memory/EPHEMERAL.md").read_text() == ""


class TestConfig:
    @pytest.mark.parametrize(
        ("text", "entries"),
        [
            (None, 5),
            ("[ephemeral]\nmax_entries = 10\n", 10),
            ("[ephemeral]\nmax_entries = 3\n", 3),
            ("[ephemeral]\nmax_entries = 1\n", 1),
            ("[ephemeral]\nmax_entries = 50\n", 50),
            ("[ephemeral]\nmax_entries = 0\n", 5),
            ("[ephemeral]\nmax_entries = 51\n", 5),
            ("# comment only\n", 5),
        ],
    )
    def test_the_window_has_1_to_50_entries_and_5_by_default(
        self, tmp_path: Path, text: str | None, entries: int
    ) -> None:
        root = SessionRoot(tmp_path)
        root.create()
        if text is not None:
            (root.memory / ".recall-echo.toml").write_text(text)

        assert root.config().entries == entries


class TestConsume:
    @pytest.mark.parametrize("content", ["## Session a \u2014 x\n**Summary**: s\n", "", " \n\n", None])
    def test_the_content_is_printed_and_kept(self, desk: Desk, entity: Path, content: str | None) -> None:
        path = entity / "memory/EPHEMERAL.md"
        if content is None:
            path.unlink()
        else:
            path.write_text(content)

        printed = [desk.run("sessions", "consume", "--root", entity) for _ in range(2)]

        assert printed[0] == printed[1] == (f"{content.strip()}\n" if content and content.strip() else "")
        assert (path.read_text() if path.exists() else None) == content


class TestConversation:
    def test_messages_become_items(self) -> None:
        session = parse_host_session(
            [
                {"role": "user", "content": "Fix it"},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "Reading."}, {"type": "text", "text": "  "},
                    {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/src/auth.rs"}},
                ]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "fn"}]},
            ]
        )  # fmt: skip

        assert [item for message in session.messages for item in message.items] == [
            Utterance(Speaker.USER, "Fix it"),
            Utterance(Speaker.ASSISTANT, "Reading."),
            ToolCall("Read", "/src/auth.rs", "/src/auth.rs"),
            ToolOutput("fn"),
        ]

    def test_the_time_is_utc_to_the_second(self) -> None:
        assert utc_timestamp(1_772_793_000.9) == "2026-03-06T10:30:00Z"


class TestDashboard:
    def test_bars_and_sizes(self) -> None:
        assert [bar(percent) for percent in (0, 50, 100, 130)] == [
            "\u2591" * 4,
            "\u2588\u2588\u2591\u2591",
            *["\u2588" * 4] * 2,
        ]
        assert [format_bytes(size) for size in (500, 2_048, 5 << 20)] == ["500 B", "2.0 KB", "5.0 MB"]

    @pytest.mark.parametrize(("lines", "issue"), [(100, ""), (160, "approaching limit"), (195, "near its limit")])
    def test_a_memory_near_its_limit_is_an_issue(self, desk: Desk, entity: Path, lines: int, issue: str) -> None:
        write_archives(entity, 5)
        (entity / "memory/MEMORY.md").write_text("a\n" * lines)

        shown = desk.run("sessions", "status", "--root", entity)

        assert "echod sessions \u2014 healthy" in shown
        assert issue in shown
        assert ("No issues detected." in shown) is (issue == "")

    @pytest.mark.corpus
    def test_the_sizes_and_suggestions_are_worded_as_in_the_samples(self, desk: Desk, entity: Path) -> None:
        """The samples are of a directory with 164 lines and 15 archives; colours, ages and more lines are ours."""
        write_archives(entity, 15, "x" * 150)
        (entity / "memory/MEMORY.md").write_text(
            "# Memory\n\n## Server\n" + "- s\n" * 40 + "## Projects\n" + "- p\n" * 120
        )
        entry = "## Session s{0} \u2014 2026-11-27 21:15:00 UTC\n**Summary**: Fix bug number 7\n"
        (entity / "memory/EPHEMERAL.md").write_text("\n---\n\n".join(entry.format(n) for n in range(2)))
        (entity / "memory/.recall-echo.toml").write_text("[ephemeral]\nmax_entries = 2\n")

        shown = desk.run("sessions", "status", "--root", entity) + desk.run("sessions", "distill", "--root", entity)

        archives = re.compile(r"\(\d\.\d KB\)")
        ours = archives.sub("", shown).replace("echod sessions", "recall-echo")
        for name in ("status", "distill"):
            sample = _COLOUR.sub("", corpus("recall-echo", f"cli-{name}.txt").read_text())
            for line in filter(None, archives.sub("", sample).split("\n")):
                wanted = " ".join(line.split())
                assert wanted in " ".join(ours.split()), line

    def test_sections_and_duplicate_lines(self) -> None:
        text = "# A\n## B\n### C\n" + "the very same long line here\n" * 2 + "x\n" * 140

        from datetime import date

        found = analyse_memory(text, date(2026, 11, 20))

        assert [section.title for section in found.sections] == ["A", "B"]
        assert any("duplicate line" in one for one in found.suggestions)


class TestInit:
    def test_everything_is_made_once(self, tmp_path: Path) -> None:
        root = SessionRoot(tmp_path / "entity")

        assert len(root.create()) > 0
        (root.memory / "MEMORY.md").write_text("custom")
        assert root.create() == ()

        assert (root.memory / "MEMORY.md").read_text() == "custom"
        assert root.read_text("EPHEMERAL.md") == ""
        assert root.read_text("ARCHIVE.md").startswith("# Conversation Archive\n\n| # | Date | Session |")
        assert root.conversations.is_dir()


class TestSearch:
    def test_lines_with_the_text_in_any_case(self, desk: Desk, entity: Path) -> None:
        write_archives(entity, 2)

        assert desk.json("sessions", "search", "auth", "--root", entity)["total"] == 2
        assert desk.json("sessions", "search", "AUTH 1", "--root", entity)["total"] == 1
        assert desk.json("sessions", "search", "nothing", "--root", entity)["total"] == 0

    def test_context_is_shown_around_a_match(self, desk: Desk, entity: Path) -> None:
        write_archives(entity, 1)

        lines = desk.run("sessions", "search", "auth", "-C", "1", "--root", entity).splitlines()[1:]

        assert [line.split()[-1] for line in lines] == ["before", "1", "after"]

    def test_a_missing_directory_is_an_error(self, desk: Desk) -> None:
        assert "echod sessions init" in desk.run("sessions", "search", "auth", "--root", desk.home, code=1)
        with pytest.raises(SessionError):
            SessionRoot(desk.home).require()


class TestStatus:
    def test_only_archives_count(self, desk: Desk, entity: Path) -> None:
        write_archives(entity, 3)
        (entity / "memory/conversations/notes.md").write_text("x")

        assert desk.json("sessions", "status", "--root", entity)["status"]["archives"] == 3
        assert desk.json("sessions", "status", "--root", desk.home, code=1)["status"]["health"] == "down"


class TestSummarise:
    def test_a_long_message_is_condensed_and_none_is_empty(self) -> None:
        digest = ConversationDigest()
        assert (digest.condensed, digest.plain_summary(), digest.topics) == ("", "", ())

        digest.see_item(Utterance(Speaker.USER, "word " * 100))

        assert len(digest.condensed) < 400
        assert "\u2026" in digest.condensed


def test_an_entry_is_in_the_window_and_a_row_in_the_index(archives: Archives, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"type": "user", "uuid": "u", "message": {"role": "user", "content": "Fix the auth parser"}}\n')

    archives.archive(path)

    (entry,) = split_entries(archives.root.read_text("EPHEMERAL.md"))
    assert "**Archive**: conversation-001.md\n**Summary**: Fix the auth parser" in entry
    assert archives.root.read_text("ARCHIVE.md").splitlines()[-1].startswith("| 001 | ")

"""`echod sessions`, and conversations in `run --once`, `status`, `doctor`, `log`, `undo`, `explain`, `remove` and hooks."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.conftest import HOUR, Desk
from tests.sessions.generator import TranscriptMaker
from tests.support import finding_text

DAY = 86_400.0


class TestOptIn:
    def test_nothing_is_archived_before_it_is_switched_on(self, desk: Desk) -> None:
        desk.session(1)
        desk.run("init", desk.project)

        desk.run("run", "--once")

        assert not (desk.state / "data").exists()
        assert desk.json("status", code=3)["sessions"] == []

    def test_it_is_switched_on_for_one_project(self, desk: Desk) -> None:
        desk.session(1)
        desk.session(2, cwd=desk.home / "other")

        desk.run("init", desk.project, "--sessions")
        desk.run("run", "--once")

        assert desk.archives() == ["conversation-001.md"]

    def test_it_is_switched_on_for_all_projects(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ECHOD_SESSIONS__ENABLED", "true")
        desk.session(1)
        desk.run("init", desk.project)

        desk.run("run", "--once")

        assert desk.archives() == ["conversation-001.md"]

    def test_a_project_opts_out(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ECHOD_SESSIONS__ENABLED", "true")
        (desk.project / ".rune").mkdir()
        (desk.project / ".rune/talisman.yml").write_text("echoes:\n  sessions: false\n")
        desk.session(1)

        output = desk.run("init", desk.project, "--sessions")
        desk.run("run", "--once")

        assert "sessions: false" in " ".join(output.split())
        assert not (desk.state / "data").exists()
        assert desk.archives() == []

    def test_a_project_has_its_archive_in_itself(self, desk: Desk) -> None:
        (desk.project / ".rune").mkdir()
        (desk.project / ".rune/talisman.yml").write_text("echoes:\n  sessions_in_project: true\n")
        desk.session(1)
        desk.run("init", desk.project, "--sessions")

        desk.run("run", "--once")

        assert (desk.project / ".rune/memory/conversations/conversation-001.md").exists()
        assert (desk.project / ".rune/memory/.gitignore").read_text() == "*\n"

    def test_the_users_directory_is_used(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ECHOD_SESSIONS__ROOT", "~/conversations")
        desk.session(1)
        desk.run("init", desk.project, "--sessions")

        desk.run("run", "--once")

        assert len(list((desk.home / "conversations").glob("project-*/memory/conversations/*.md"))) == 1


class TestJob:
    @pytest.fixture(autouse=True)
    def _switched_on(self, desk: Desk) -> None:
        desk.run("init", desk.project, "--sessions", "--roles", "reviewer")

    def test_a_session_that_goes_on_waits_until_it_is_idle(self, desk: Desk) -> None:
        made = desk.session(1, age=60)
        output = desk.run("run", "--once")
        assert "waits   archive" in output
        desk.write(made, 31 * 60)

        desk.run("run", "--once")

        assert desk.archives() == ["conversation-001.md"]

    def test_a_session_that_a_hook_reported_as_ended_is_archived_at_once(self, desk: Desk) -> None:
        made = desk.session(1, age=3)
        desk.hook("session-end", session_id=made.session)

        desk.run("run", "--once")

        assert desk.archives() == ["conversation-001.md"]

    def test_compaction_makes_a_checkpoint_first(self, desk: Desk) -> None:
        made = desk.session(1, age=3)
        desk.hook("pre-compact", session_id=made.session)

        assert "done    checkpoint" in desk.run("run", "--once")
        assert 'source: "checkpoint"' in (desk.memory / "conversations/conversation-001.md").read_text()
        assert "done    checkpoint" not in desk.run("run", "--once")

    def test_sessions_of_worktrees_and_subdirectories_belong_to_the_project(self, desk: Desk) -> None:
        desk.session(1, cwd=desk.project / "src/deep")
        desk.session(2, cwd=desk.project / ".claude/worktrees/fix")
        desk.session(3, cwd=desk.project.with_name("project-of-another-name"))

        desk.run("run", "--once")

        assert len(desk.archives()) == 2

    def test_sub_agents_are_no_sessions(self, desk: Desk) -> None:
        made = desk.session(1)
        beside = desk.transcripts / made.session / "subagents"
        other = TranscriptMaker(2, str(desk.project))
        other.prompt()
        other.made.write(beside, name="agent-1")
        other.made.write(desk.transcripts, name="agent-2")

        desk.run("run", "--once")

        assert desk.archives() == ["conversation-001.md"]
        text = (desk.memory / "conversations/conversation-001.md").read_text()
        heading, task = "### Sub-agent: 1\n", f"**Task**: {other.made.prompts[0]}"
        assert text.index(made.prompts[0]) < text.index(heading) < text.index(task)

    def test_a_damaged_transcript_keeps_no_other_from_its_archive(self, desk: Desk) -> None:
        desk.session(1)
        bad = desk.transcripts / "bad.jsonl"
        bad.write_text(f'{{"cwd": "{desk.project}"}}\n')
        os.utime(bad, (time.time() - DAY,) * 2)
        unreadable = desk.session(3, age=2 * DAY)
        (desk.transcripts / f"{unreadable.session}.jsonl").chmod(0)

        desk.run("run", "--once")

        assert "conversation-001.md" in desk.archives()

    def test_transcripts_that_cannot_be_listed_are_a_problem_and_not_none(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        desk.session(1)
        real = os.scandir

        def scandir(path: Any) -> Any:
            if str(path) == str(desk.transcripts):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path)

        monkeypatch.setattr(os, "scandir", scandir)

        assert "cannot be listed" in desk.run("run", "--once")
        assert "sessions-unreadable" in [one["code"] for one in desk.json("status", code=3)["warnings"]]
        assert "cannot be listed" in desk.run("sessions", "archive", code=1)

    def test_report_mode_writes_nothing(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ECHOD_MODE", "report")
        desk.session(1)

        assert "would do: archive" in desk.run("run", "--once")
        assert desk.archives() == []

    def test_every_session_has_a_receipt_and_nothing_is_done_twice(self, desk: Desk) -> None:
        made = [desk.session(seed) for seed in range(4)]
        desk.run("run", "--once")
        before = {path: path.read_bytes() for path in desk.memory.rglob("*.md")}

        assert "Nothing is left to do." in desk.run("run", "--once")

        assert {path: path.read_bytes() for path in desk.memory.rglob("*.md")} == before
        explained = desk.json("explain", "conversation-001")["receipt"]
        assert explained["prompts"] == 2
        assert explained["bytes"] in [sum(map(len, one.lines)) for one in made]
        assert len(explained["sources"][0]["sha256"]) == 64

    def test_the_users_command_summarises(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        answer = '{"summary": "All is well."}'
        monkeypatch.setenv("ECHOD_SESSIONS__SUMMARY_COMMAND", json.dumps(["echo", answer]))
        desk.session(1)

        desk.run("run", "--once")

        assert "**Summary**: All is well." in (desk.memory / "EPHEMERAL.md").read_text()

    def test_a_failing_command_is_counted_and_asked_again(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ECHOD_SESSIONS__SUMMARY_COMMAND", '["false"]')
        desk.session(1)

        output = desk.run("run", "--once")

        assert "its summary is missing" in output
        status = desk.json("sessions", "status")["status"]
        assert (status["pending_summaries"], status["failed_summaries"]) == (1, 1)


class TestStatus:
    @pytest.fixture(autouse=True)
    def _switched_on(self, desk: Desk) -> None:
        desk.run("init", desk.project, "--sessions", "--roles", "reviewer")

    def test_sessions_that_the_host_deletes_soon_are_counted(self, desk: Desk) -> None:
        desk.session(1, age=27.5 * DAY)
        desk.session(2, age=26 * DAY)

        status = desk.json("status", code=3)

        (sessions,) = status["sessions"]
        assert (sessions["waiting"], sessions["expiring"], sessions["host_days"]) == (2, 1, 30)
        assert [one["code"] for one in status["warnings"] if one["code"].startswith("sessions")] == [
            "sessions-expiring"
        ]
        assert desk.json("sessions", "status", code=1)["status"]["expiring"] == 1
        desk.run("run", "--once")
        assert desk.json("status", code=3)["sessions"][0]["expiring"] == 0

    def test_the_hosts_own_setting_counts(self, desk: Desk) -> None:
        (desk.home / "claude").mkdir(exist_ok=True)
        (desk.home / "claude/settings.json").write_text('{"cleanupPeriodDays": 7}')
        desk.session(1, age=5 * DAY)

        assert desk.json("status", code=3)["sessions"][0]["expiring"] == 1

    @pytest.mark.parametrize(("lines", "pressure"), [(139, "none"), (140, "notice"), (180, "warning"), (200, "full")])
    def test_a_memory_that_fills_up_is_reported(self, desk: Desk, lines: int, pressure: str) -> None:
        (desk.memory / "MEMORY.md").write_text("- fact\n" * lines)

        status = desk.json("status", code=3)

        assert status["sessions"][0]["pressure"] == pressure
        codes = [one["code"] for one in status["warnings"]]
        assert ("sessions-memory-full" in codes) is (pressure != "none")

    def test_a_full_memory_is_a_review_item_with_proposals_until_it_is_shorter(self, desk: Desk) -> None:
        (desk.memory / "MEMORY.md").write_text("# M\n## Server\n" + "- a fact of the server\n" * 210)

        (item,) = desk.json("review")["items"]

        assert "echod sessions distill --apply" in item["text"]
        assert any("Server" in title for title in item["titles"]), item
        (desk.memory / "MEMORY.md").write_text("# M\n")
        assert desk.json("review")["items"] == []

    def test_health_is_healthy_degraded_or_down(self, desk: Desk) -> None:
        assert desk.json("sessions", "status")["status"]["health"] == "healthy"
        (desk.memory / "MEMORY.md").unlink()
        assert desk.json("sessions", "status", code=1)["status"]["health"] == "degraded"
        assert desk.json("sessions", "status", "--root", desk.home, code=1)["status"]["health"] == "down"

    def test_doctor_sees_that_others_may_read(self, desk: Desk) -> None:
        assert "sessions-root" in [one["code"] for one in desk.json("doctor", code=1)["checks"]]
        desk.memory.chmod(0o755)

        codes = [one["code"] for one in desk.json("doctor", code=1)["checks"]]

        assert "sessions-private" in codes


class TestDecisions:
    @pytest.fixture(autouse=True)
    def _archived(self, desk: Desk) -> None:
        desk.run("init", desk.project, "--sessions", "--roles", "reviewer")
        self.made = [desk.session(seed) for seed in (1, 2)]
        desk.run("run", "--once")

    def test_log_lists_and_undo_reverses(self, desk: Desk) -> None:
        jobs = [row["job"] for row in desk.json("log")["jobs"] if row["kind"] == "archive"]
        assert len(jobs) == 2

        assert "remove the file   conversations/conversation-002.md" in desk.run("undo", "--last", "--yes")

        assert desk.archives() == ["conversation-001.md"]
        assert desk.json("log")["jobs"][0]["kind"] == "undo"
        assert "Nothing is left to do." in desk.run("run", "--once")
        assert "undone already" in desk.run("undo", max(jobs), "--yes", code=2)
        desk.run("undo", desk.json("log")["jobs"][0]["job"], "--yes")
        assert desk.archives() == ["conversation-001.md", "conversation-002.md"]

    def test_forget_says_what_the_host_still_has(self, desk: Desk) -> None:
        history = desk.home / "claude/history.jsonl"
        history.write_text(
            json.dumps({"display": "x", "project": str(desk.project), "sessionId": self.made[0].session})
        )
        header = desk.json("sessions", "list")["archives"]
        number = next(one["number"] for one in header if one["session_id"] == self.made[0].session)

        output = desk.run("sessions", "forget", number, "--yes")

        assert f"{self.made[0].session}.jsonl" in output.replace("\n  ", "")
        assert "1 prompts in" in output.replace("\n  ", " ")
        assert len(desk.archives()) == 1
        assert "Nothing is left to do." in desk.run("run", "--once")
        assert "no session of this project without" in desk.run("sessions", "rescue")
        assert self.made[0].prompts[0] not in "".join(path.read_text() for path in desk.memory.rglob("*.json"))

    def test_forget_removes_the_documents_of_the_search_index(self, desk: Desk) -> None:
        words = self.made[0].prompts[0].replace("no. ", "")
        assert desk.json("sessions", "search", "--ranked", words)["results"]
        archives = desk.json("sessions", "list")["archives"]
        number = next(one["number"] for one in archives if one["session_id"] == self.made[0].session)

        desk.run("sessions", "forget", number, "--yes")

        with sqlite3.connect(desk.state / "search.db") as database:
            paths = [row[0] for row in database.execute("SELECT path FROM file")]
        assert [path for path in paths if f"conversation-{number:03}" in path] == []

    def test_remove_purge_keeps_the_archives_and_archives_nothing_twice(self, desk: Desk) -> None:
        desk.run("remove", desk.project, "--purge", "--yes")
        assert desk.archives() == ["conversation-001.md", "conversation-002.md"]
        assert not list((desk.memory / ".echod/journal").glob("*"))

        desk.run("init", desk.project, "--sessions")
        desk.run("run", "--once")

        assert desk.archives() == ["conversation-001.md", "conversation-002.md"]

    def test_rescue_reconstructs_what_the_host_has_deleted(self, desk: Desk) -> None:
        lost = "44444444-4444-4444-8444-444444444444"
        lines = [
            {
                "display": "first [Pasted text #1 +2 lines]",
                "timestamp": 1_790_000_000_000,
                "project": str(desk.project),
                "sessionId": lost,
                "pastedContents": {"1": {"content": "the pasted words"}},
            },
            {"display": "second", "timestamp": 1_790_000_060_000, "project": str(desk.project), "sessionId": lost},
            {"display": "elsewhere", "timestamp": 1, "project": "/other", "sessionId": "x"},
            {
                "display": "here already",
                "timestamp": 1,
                "project": str(desk.project),
                "sessionId": self.made[0].session,
            },
        ]
        (desk.home / "claude/history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + "junk\n")
        window = (desk.memory / "EPHEMERAL.md").read_text()

        desk.run("sessions", "rescue")

        text = (desk.memory / "conversations/conversation-003.md").read_text()
        assert "first the pasted words\n\nsecond\n" in text
        assert "reconstructed" in text
        assert (desk.memory / "EPHEMERAL.md").read_text() == window
        assert "no session of this project" in desk.run("sessions", "rescue")
        assert len(desk.archives()) == 3

    def test_a_decision_is_found_by_its_words_among_the_first_five(self, desk: Desk) -> None:
        decisions = {
            "append-only ledger audits": "We decided to keep the ledger append-only because of audits.",
            "which cache eviction clock": "Going with a clock for the cache eviction instead of a list.",
            "retry policy jitter": "Settled on full jitter for the retry policy.",
        }
        for seed in range(12):
            maker = TranscriptMaker(seed + 40, str(desk.project))
            maker.prompt()
            text = (
                list(decisions.values())[seed // 4] if seed % 4 == 2 else f"The ledger, cache and retry {seed} policy."
            )
            maker.add(maker.assistant({"type": "text", "text": text}))
            desk.write(maker.made, HOUR + 60 * (30 - seed))
        desk.run("run", "--once")

        for words, text in decisions.items():
            (archive,) = [path.stem for path in self.archive_files(desk) if text in path.read_text()]
            found = desk.json("search", "--kind", "session", *words.split())["results"]
            assert archive in [one["id"] for one in found[:5]], words
            assert archive in [one["id"] for one in desk.json("search", *words.split())["results"][:5]]
            assert archive in [one["id"] for one in desk.json("sessions", "search", "--ranked", words)["results"][:5]]

        assert desk.json("sessions", "search", "LEDGER")["total"] >= 1
        assert "No matches" in desk.run("sessions", "search", "nosuchword")

    def test_conversations_fill_a_page_below_the_memory_and_only_then(self, desk: Desk) -> None:
        desk.run("init", "--sessions", desk.project)
        memory = desk.project / ".rune/echoes/reviewer/MEMORY.md"
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text("# Reviewer\n\n" + "\n".join(finding_text(f"Ledger {number}") for number in range(3)))
        maker = TranscriptMaker(77, str(desk.project))
        maker.prompt()
        maker.add(maker.assistant({"type": "text", "text": "We decided to keep the ledger append-only."}))
        desk.write(maker.made, HOUR)
        desk.run("run", "--once")

        everything = desk.json("search", "ledger")
        kinds = [one["kind"] for one in everything["results"]]
        screen = desk.run("search", "ledger")

        assert (kinds, everything["total"]) == (["memory"] * 3 + ["session"], 4)
        assert "In archived conversations:" in screen
        assert [one["kind"] for one in desk.json("search", "ledger", "--limit", "3")["results"]] == ["memory"] * 3
        assert [one["kind"] for one in desk.json("search", "ledger", "--offset", "3")["results"]] == ["session"]
        for filters in (("--kind", "memory"), ("--role", "reviewer"), ("--layer", "inscribed")):
            assert [one["kind"] for one in desk.json("search", "ledger", *filters)["results"]] == ["memory"] * 3

    def archive_files(self, desk: Desk) -> list[Path]:
        return sorted((desk.memory / "conversations").iterdir())

    def test_a_very_large_archive_is_found_by_its_words_and_not_by_the_outputs_in_it(self, desk: Desk) -> None:
        output = (
            "<details><summary>Result</summary>\n\n````\n"
            + "noisyword and more\n```\n" * 500_000
            + "````\n\n</details>\n"
        )
        text = (
            '---\nlog: 9\ndate: "2026-03-06T10:30:00Z"\nsession_id: "big"\n---\n\n# Conversation 009\n\n---\n\n'
            f"### User\n\nFirst the wombat question.\n\n{output}\n---\n\n### Assistant\n\nThen the quokka answer.\n"
        )
        path = desk.memory / "conversations/conversation-009.md"
        path.write_text(text)
        assert path.stat().st_size > 10 << 20

        for word in ("wombat", "quokka"):
            found = desk.json("search", "--kind", "session", word)
            assert [one["id"].partition("#")[0] for one in found["results"]] == ["conversation-009"]
        assert desk.json("search", "--kind", "session", "noisyword")["results"] == []

    def test_distill_moves_sections_with_an_undo(self, desk: Desk) -> None:
        memory = desk.memory / "MEMORY.md"
        text = "# Memory\n\n## Server\n" + "".join(f"- fact number {n} of this server\n" for n in range(160))
        memory.write_text(text)
        assert desk.json("sessions", "distill")["movable"] == ["Server"]

        output = desk.run("sessions", "distill", "--apply")

        assert "See memory/server.md" in memory.read_text()
        assert (desk.memory / "server.md").read_text().count("- fact") == 160
        desk.run("undo", output.rpartition("echod undo ")[2].strip(), "--yes")
        assert memory.read_text() == text
        assert not (desk.memory / "server.md").exists()

    def test_rebuild_writes_the_index_from_the_archives(self, desk: Desk) -> None:
        index = desk.memory / "ARCHIVE.md"
        before = index.read_text()
        index.write_text("")

        desk.run("sessions", "rebuild")

        assert index.read_text() == before

    def test_consume_prints_and_keeps_the_summaries(self, desk: Desk) -> None:
        before = (desk.memory / "EPHEMERAL.md").read_text()

        assert desk.run("sessions", "consume").strip() == before.strip()
        assert (desk.memory / "EPHEMERAL.md").read_text() == before


class TestDirectories:
    """`--root` names any directory."""

    def test_a_directory_is_created_once(self, desk: Desk) -> None:
        root = desk.home / "entity"
        assert "does not exist" in desk.run("sessions", "init", root, code=1)
        root.mkdir()
        desk.run("sessions", "init", root)
        (root / "memory/MEMORY.md").write_text("mine\n")

        assert "nothing was missing" in desk.run("sessions", "init", root)

        assert (root / "memory/MEMORY.md").read_text() == "mine\n"
        assert sorted(path.name for path in (root / "memory").iterdir()) == [
            ".echod",
            "ARCHIVE.md",
            "EPHEMERAL.md",
            "MEMORY.md",
            "conversations",
        ]

    def test_a_message_list_is_archived_once_and_goes_on(self, desk: Desk) -> None:
        root, file = desk.home / "entity", desk.home / "messages.json"
        root.mkdir()
        desk.run("sessions", "init", root)
        messages = [
            {"role": "user", "content": "Hello there"},
            {"role": "assistant", "content": [{"type": "text", "text": "Hi."}, {"type": "image"}]},
        ]
        file.write_text(
            json.dumps(
                {
                    "session_id": "s-1",
                    "started": "2026-03-06T23:50:00Z",
                    "ended": "2026-03-07T00:20:00Z",
                    "messages": messages,
                }
            )
        )

        desk.run("sessions", "archive", "--messages", file, "--root", root)
        assert "nothing is new" in desk.run("sessions", "archive", "--messages", file, "--root", root)
        file.write_text(
            json.dumps({"session_id": "s-1", "messages": [*messages, {"role": "user", "content": "And more"}]})
        )
        desk.run("sessions", "archive", "--messages", file, "--root", root)

        (archive,) = desk.json("sessions", "list", "--root", root)["archives"]
        assert (archive["messages"], archive["duration"], archive["summary"]) == (3, "30m", "Hello there")

    def test_files_that_are_no_transcript_fail_and_the_others_are_archived(self, desk: Desk) -> None:
        root = desk.home / "entity"
        root.mkdir()
        desk.run("sessions", "init", root)
        wrong = desk.home / "notes.jsonl"
        wrong.write_text("{}\n")
        right = desk.session(1)

        output = desk.run("sessions", "archive", wrong, right.session[:8], "--root", root, code=1)

        assert "is no transcript" in output
        assert (root / "memory/conversations/conversation-001.md").exists()

    def test_an_unknown_session_is_a_usage_error(self, desk: Desk) -> None:
        root = desk.home / "entity"
        root.mkdir()
        desk.run("sessions", "init", root)

        assert "neither a file nor" in desk.run("sessions", "archive", "abcdef", "--root", root, code=2)
        assert "There is no archive" in desk.run("sessions", "show", "7", "--root", root, code=1)

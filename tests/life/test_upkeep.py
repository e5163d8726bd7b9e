"""Oversized memory is pruned by the real commands and the real service: less to read, nothing lost."""

from __future__ import annotations

import re
import stat
import subprocess
from pathlib import Path

import pytest

from echod.memory.archive import read_archive
from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from tests.life.files import (
    MEMORY_HEADER,
    TODAY,
    crowded_memory,
    grown_memory,
    learning_text,
    observation_text,
    protected_entries,
)
from tests.support import Home, make_project, running_daemon, until

ROLE = "reviewer"


class RoleMemory:
    """A role's files."""

    def __init__(self, root: Path, text: str) -> None:
        self.project = make_project(root, ROLE)
        self.role = root / ".rune/echoes" / ROLE
        self.file = self.role / "MEMORY.md"
        self.file.write_text(text)

    def settings(self, text: str) -> None:
        (self.project / ".rune/talisman.yml").write_text(f"echoes:\n  {text}\n")

    @property
    def lines(self) -> int:
        return self.file.read_text().count("\n")

    @property
    def archive(self) -> Path:
        return self.role / f"archive/pruned-{TODAY.year}.md"

    def everywhere(self) -> str:
        """The text of the memory file and of the archive of pruned entries."""
        return self.file.read_text() + (self.archive.read_text() if self.archive.exists() else "")

    def tree(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.role)): p.read_bytes() for p in self.role.rglob("*") if p.is_file()}


def blocks(data: bytes) -> list[str]:
    document = parse(data)
    assert isinstance(document, Document)
    return [block.text for block in document.blocks]


@pytest.fixture
def memory(tmp_path: Path) -> RoleMemory:
    return RoleMemory(tmp_path / "p", crowded_memory())


class TestAFileOfThousandsOfLines:
    @pytest.fixture
    def memory(self, tmp_path: Path) -> RoleMemory:
        return RoleMemory(tmp_path / "p", grown_memory())

    def test_comes_within_its_limit_in_one_run_and_every_entry_is_accounted_for(
        self, home: Home, memory: RoleMemory
    ) -> None:
        before = memory.file.read_bytes()
        assert len(blocks(before)) == 490
        assert memory.lines > 3_400

        said = home.run("run", "--once", "--now", memory.project)

        assert memory.lines <= 150
        assert "Nothing is left to do" in said
        there = memory.everywhere()
        assert [text for text in blocks(before) if text.rstrip() not in there] == []
        backup = memory.role / f"archive/MEMORY-{TODAY}.md"
        assert backup.read_bytes() == before
        assert stat.S_IMODE(backup.stat().st_mode) == 0o600
        archive = read_archive(memory.archive.read_bytes())
        gone = {entry.text.rstrip() for entry in archive.entries}
        kept = {text.rstrip() for text in blocks(memory.file.read_bytes())}
        assert not archive.damaged
        assert all(entry.job is not None and entry.rule and entry.score is not None for entry in archive.entries)
        assert len(gone | kept) >= 490
        assert "trace 4" in (memory.role / "knowledge.md").read_text()

    def test_keeps_protected_entries_and_a_second_run_changes_nothing(self, home: Home, memory: RoleMemory) -> None:
        home.run("run", "--once", "--now", memory.project)
        before = memory.tree()
        pruned = memory.file.read_text()
        assert pruned.startswith(MEMORY_HEADER)
        assert protected_entries(2) in pruned

        said = home.run("run", "--once", "--now", memory.project)

        assert memory.tree() == before
        assert "Nothing is left to do" in said

    def test_is_pruned_by_a_command_exactly_as_its_dry_run_says(self, home: Home, memory: RoleMemory) -> None:
        before = memory.tree()

        plan = home.json("prune", memory.project, "--dry-run")
        assert memory.tree() == before
        home.run("prune", memory.project, "--yes")

        leaving = {e["id"]: e["rule"] for e in plan["entries"] if e["action"] != "keep"}
        assert {e.id: e.rule for e in read_archive(memory.archive.read_bytes()).entries} == leaving
        assert plan["files"][0]["lines_after"] == memory.lines <= 150
        assert len(plan["entries"]) == 490

    def test_undo_restores_the_original_bytes_and_they_stay(self, home: Home, memory: RoleMemory) -> None:
        before = memory.file.read_bytes()
        home.run("run", "--once", "--now", memory.project)

        home.run("undo", "--last", memory.project, "--yes")

        assert memory.file.read_bytes() == before
        home.run("run", "--once", "--now", memory.project)
        assert memory.file.read_bytes() == before


class TestWhatIsNotPruned:
    def test_a_file_within_its_limit(self, home: Home, tmp_path: Path) -> None:
        memory = RoleMemory(
            tmp_path / "p", MEMORY_HEADER + learning_text("money is in cents") + observation_text("a review", age=400)
        )

        home.run("run", "--once", "--now", memory.project)

        assert memory.tree() == {"MEMORY.md": memory.file.read_bytes()}

    def test_a_file_of_protected_entries_alone(self, home: Home, tmp_path: Path) -> None:
        memory = RoleMemory(tmp_path / "p", MEMORY_HEADER + protected_entries(30))
        before = memory.tree()

        said = home.run("run", "--once", "--now", memory.project)

        assert memory.tree() == before
        assert "Nothing is left to do" in said
        home.run("add", memory.project)
        warning = next(w for w in home.json("status")["warnings"] if w["code"] == "memory-too-long")
        assert "244 lines" in warning["text"]
        shown = " ".join(home.run("prune", memory.project, "--dry-run").split())
        assert "244 lines only you may remove" in shown

    def test_a_project_that_opted_out(self, home: Home, memory: RoleMemory) -> None:
        memory.settings("prune: false")
        before = memory.tree()

        said = home.run("run", "--once", "--now", memory.project)
        asked = home.run("prune", memory.project, "--yes")

        assert memory.tree() == before
        assert "Nothing is left to do" in said
        assert "prune: false" in asked

    def test_a_project_that_asks_for_more_lines(self, home: Home, memory: RoleMemory) -> None:
        memory.settings("memory_line_limit: 4000")
        before = memory.tree()

        home.run("run", "--once", "--now", memory.project)

        assert memory.tree() == before

    def test_a_store_that_git_tracks_unless_it_asks_for_it(self, home: Home, memory: RoleMemory) -> None:
        for command in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", *command], cwd=memory.project, check=True)
        before = memory.tree()

        home.run("run", "--once", "--now", memory.project)

        assert memory.tree() == before

        memory.settings("maintain_tracked: true")
        home.run("run", "--once", "--now", memory.project)

        assert memory.lines <= 150

    def test_a_store_that_git_tracks_except_by_a_typed_command(self, home: Home, memory: RoleMemory) -> None:
        for command in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", *command], cwd=memory.project, check=True)

        home.run("prune", memory.project, "--yes")

        assert memory.lines <= 150

    def test_anything_in_report_mode_though_it_is_reported(self, home: Home, memory: RoleMemory) -> None:
        before = memory.tree()

        result = home.echod("run", "--once", memory.project, ECHOD_MODE="report")

        assert result.returncode == 0
        assert "report only: would do:" in result.stdout
        asked = home.echod("prune", memory.project, "--yes", ECHOD_MODE="report")
        assert asked.returncode == 1
        assert "report" in asked.stderr
        assert memory.tree() == before

    def test_anything_while_a_workflow_runs_unless_it_is_forced(self, home: Home, memory: RoleMemory) -> None:
        home.run("workflow", "begin", "a-test", "--project", memory.project, "--ttl", "5")
        before = memory.tree()

        for command in (["run", "--once", memory.project], ["prune", memory.project, "--yes"]):
            home.echod(*command)
            assert memory.tree() == before
        home.run("prune", memory.project, "--yes", "--force")

        assert memory.lines <= 150

    def test_anything_without_a_terminal(self, home: Home, memory: RoleMemory) -> None:
        before = memory.tree()

        result = home.echod("prune", memory.project)

        assert result.returncode == 2
        assert "--yes" in result.stderr
        assert memory.tree() == before


class TestTheService:
    def test_holds_a_first_prune_of_more_than_half_until_the_user_accepts_it(
        self, home: Home, memory: RoleMemory
    ) -> None:
        before = memory.tree()
        home.run("add", memory.project)

        with running_daemon(home):
            until(lambda: "first prune" in home.echod("status").stdout, "the held prune in the status")
            assert memory.tree() == before
            waiting = home.json("status")["waiting"][0]
            home.run("run", "--once", "--now", memory.project)

        assert waiting["state"] == "deferred"
        assert f"echod prune {memory.project} --role {ROLE}" in " ".join(waiting["reason"].split())
        assert memory.lines <= 150

    def test_prunes_a_little_at_once_but_only_between_workflows(self, home: Home, tmp_path: Path) -> None:
        text = MEMORY_HEADER + "".join(learning_text(f"learning {n}") for n in range(12))
        memory = RoleMemory(tmp_path / "p", text + "".join(observation_text(f"task {n}") for n in range(12)))
        home.run("add", memory.project)
        home.run("workflow", "begin", "a-test", "--project", memory.project, "--ttl", "5")
        before = memory.tree()

        with running_daemon(home):
            until(lambda: home.json("status")["queue"]["deferred"] == 1, "the prune that waits")
            assert memory.tree() == before
            home.run("workflow", "end", "a-test", "--project", memory.project)
            until(lambda: memory.lines <= 150, "the pruned file")


def test_an_observation_that_agents_find_again_and_again_becomes_inscribed(home: Home, tmp_path: Path) -> None:
    memory = RoleMemory(tmp_path / "p", MEMORY_HEADER + learning_text("money is in cents", "observations"))
    document = parse(memory.file.read_bytes())
    assert isinstance(document, Document)
    found = re.sub(r"7be10d44", "{agent}", learning_text("money is in cents", "observations"))
    for agent in ("ward", "seer", "sage"):
        (memory.role / f"{agent}-findings.md").write_text(found.replace("{agent}", agent))
        home.run("run", "--once", "--now", memory.project)

    assert "- **layer**: inscribed" in memory.file.read_text()
    assert memory.file.read_text().count("money is in cents") == 2
    after = parse(memory.file.read_bytes())
    assert isinstance(after, Document)
    assert entry_ids(ROLE, after) == entry_ids(ROLE, document)


class TestOneEntry:
    @pytest.fixture
    def memory(self, tmp_path: Path) -> RoleMemory:
        text = (
            MEMORY_HEADER
            + protected_entries(1)
            + learning_text("money is in cents", age=9)
            + observation_text("a review", age=3)
        )
        return RoleMemory(tmp_path / "p", text)

    def ids(self, home: Home, memory: RoleMemory) -> dict[str, str]:
        return {e["title"]: e["id"] for e in home.json("prune", memory.project, "--dry-run")["entries"]}

    def test_its_explanation_recomputes_by_hand(self, home: Home, memory: RoleMemory) -> None:
        ids = self.ids(home, memory)

        said = home.json("explain", ids["money is in cents"], memory.project)

        assert said["terms"] == {"importance": 0.7, "relevance": 0.0, "recency": pytest.approx(1 - 9 / 90)}
        assert said["score"] == pytest.approx(0.4 * 0.7 + 0.3 * 0.0 + 0.3 * 0.9)
        assert (said["layer"], said["protected"], said["pinned"], said["action"]) == ("inscribed", False, None, "keep")
        later = home.json(
            "explain", ids["money is in cents"][:6], memory.project, "--as-of", str(TODAY.replace(year=TODAY.year + 1))
        )
        assert later["terms"]["recency"] == 0

    def test_a_protected_one_has_no_rules(self, home: Home, memory: RoleMemory) -> None:
        said = home.json("explain", self.ids(home, memory)["principle 0"], memory.project)

        assert (said["protected"], said["rules"]) == (True, [])

    def test_three_sessions_that_used_it_make_an_observation_inscribed(self, home: Home, memory: RoleMemory) -> None:
        entry = self.ids(home, memory)["a review"]
        for session in ("one", "two", "two", "two"):
            home.run("record-access", entry, "--session", session, "--project", memory.project)
        home.run("run", "--once", "--now", memory.project)
        assert "Observations" in memory.file.read_text()
        assert home.json("explain", entry, memory.project)["references"] == 2

        home.run("record-access", entry, "--session", "three", "--project", memory.project)
        home.run("run", "--once", "--now", memory.project)

        said = home.json("explain", entry, memory.project)
        assert (said["layer"], said["references"]) == ("inscribed", 3)
        assert "Observations" not in memory.file.read_text()

    def test_a_pin_keeps_it_until_it_is_removed(self, home: Home, tmp_path: Path) -> None:
        memory = RoleMemory(tmp_path / "q", MEMORY_HEADER + protected_entries(30) + observation_text("a review"))
        entry = self.ids(home, memory)["a review"]
        home.run("pin", entry, memory.project)
        home.run("run", "--once", "--now", memory.project)
        assert "a review" in memory.file.read_text()
        assert home.json("explain", entry, memory.project)["pinned"] is not None

        home.run("unpin", entry, memory.project)
        home.run("run", "--once", "--now", memory.project)

        assert "a review" not in memory.file.read_text()

    def test_an_unknown_id_is_reported(self, home: Home, memory: RoleMemory) -> None:
        for command in ("explain", "pin", "unpin", "record-access"):
            result = home.echod(
                command, "ffffffffffff", *(["--project"] if command == "record-access" else []), memory.project
            )
            assert result.returncode == 2
            assert "There is no entry whose id" in result.stderr


def test_a_knowledge_file_over_its_limit_is_compressed_without_loss(home: Home, tmp_path: Path) -> None:
    memory = RoleMemory(tmp_path / "p", MEMORY_HEADER)
    knowledge = memory.role / "knowledge.md"
    knowledge.write_text(
        "# Reviewer Knowledge\n\n" + "".join(learning_text(f"learning {n}", lines=9) for n in range(60))
    )
    before = knowledge.read_bytes()
    plan = home.json("compress", memory.project, "--dry-run")

    home.run("run", "--once", "--now", memory.project)

    assert knowledge.read_text().count("\n") <= 300
    archive = read_archive(memory.archive.read_bytes())
    assert {entry.id for entry in archive.entries} == {entry["id"] for entry in plan["entries"]}
    there = knowledge.read_text() + memory.archive.read_text()
    assert [text for text in blocks(before) if text.rstrip() not in there] == []
    after = memory.tree()
    home.run("run", "--once", "--now", memory.project)
    assert memory.tree() == after

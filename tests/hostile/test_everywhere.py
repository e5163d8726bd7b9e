"""One day on which every way in is used, with a secret and a word of its own at each: what becomes of them.

No secret stands afterwards in anything that echod wrote, but for the exact images of its journal; no word of any text
stands in a log.
"""

from __future__ import annotations

import json
import os
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from echod.memory.model import Layer
from echod.memory.policy import ArchivedEntry, archive_text
from tests.hooks.events import hook, rune_team
from tests.life.files import HEAD, TODAY, learning, observation
from tests.packs.conftest import Team
from tests.support import Home, daemon, project, until

LEARNINGS = (
    "a title", "evidence", "a body", "a source", "a claim", "loose text", "a subject", "a description", "a note",
    "a note's title", "an old archive", "an old quarantine", "what has to wait", "findings that wait", "standing 0",
    "standing 3", "crowd 0", "known 0",
)  # fmt: skip
_LETTERS = string.ascii_letters + string.digits


@dataclass
class Day:
    """The project, echod's own files, and all that was said on the day."""

    root: Path
    home: Home
    secrets: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    leaks: tuple[str, ...] = ()
    drawn: random.Random = field(default_factory=lambda: random.Random(7))

    def says(self, place: str) -> str:
        """A secret and a word that stand nowhere else."""
        token = "gh" + "p_" + "".join(self.drawn.choices(_LETTERS, k=36))
        word = "quo" + "".join(self.drawn.choices(string.ascii_lowercase, k=9))
        self.secrets[place], self.words[place] = token, word
        return f"{word} {token}"

    @property
    def project(self) -> Path:
        return self.root / "project"

    def role(self, name: str) -> Path:
        return self.project / ".rune/echoes" / name

    def echod(self, *arguments: object, mode: str = "maintain") -> str:
        result = self.home.echod(*arguments, cwd=self.project, ECHOD_MODE=mode)
        self.said.append(f"$ {' '.join(map(str, arguments))[:60]}\n{result.returncode} {result.stdout}{result.stderr}")
        return result.stdout


def told(day: Day, place: str, entry: str) -> str:
    """An entry whose title and text say something of their own."""
    return entry.replace("What was learnt", f"{day.says(place)}. What was learnt")


def lived(root: Path) -> Day:
    """Do all that there is to do, with the service running."""
    team = root / "registry"
    settings = {
        "ECHOD_LOG_LEVEL": "debug", "ECHOD_GATE__SESSIONS": "false", "ECHOD_KNOWLEDGE_LINE_LIMIT": "100",
        "ECHOD_MEMORY_LINE_LIMIT": "100", "ECHOD_HOOKS__SESSION_SUMMARY": "true",
        "ECHOD_PACKS__REGISTRIES": json.dumps([str(team)]),
    }  # fmt: skip
    day = Day(root, Home(root, settings))
    day.home = replace(day.home, settings={**settings, "SOME_TOKEN": day.says("environment")})
    project(day.project, "reviewer", "workers", "planner", "orchestrator")
    Team(team).publish("kit", "1.0.0", day.says("a pack"))
    _what_stands_there(day)
    with daemon(day.home) as service:
        day.echod("add", day.project)
        _what_agents_write(day)
        until(lambda: not list(day.project.glob(".rune/echoes/*/*-findings.md")), "the findings folded in")
        until(lambda: not list((day.home.state / "spool").glob("*.json")), "the spool to be empty")
        _what_a_person_decides(day)
        _while_a_workflow_runs(day)
        _upkeep(day)
        _what_cannot_be_read(day)
        day.leaks = tuple(_leaks(day))
        day.echod("scrub", day.project, "--yes")
        service.stop()
    return day


def _what_a_person_decides(day: Day) -> None:
    day.echod("remember", day.says("a note"), "--title", day.says("a note's title"))
    day.echod("restore", "0123456789ab")
    for item in json.loads(day.echod("review", day.project, "--json"))["items"]:
        if "-odd-" in item["text"]:
            day.echod("review", "accept", item["id"], "--yes")
    memory = day.role("reviewer") / "MEMORY.md"
    standing = "".join(told(day, f"standing {n}", learning(f"standing {n}")) for n in range(3))
    memory.write_text(memory.read_text() + standing + learning(day.says("standing 3")))
    useful = day.role("orchestrator") / "MEMORY.md"
    useful.write_text(HEAD + observation("proven"))
    shown = json.loads(day.echod("show", day.project, "--json"))["entries"]
    ids = {entry["title"].rpartition(": ")[2]: entry["id"] for entry in shown}
    day.echod("forget", ids["standing 0"], day.project, "--yes")
    day.echod("raise", ids["standing 1"], "notes", day.project, "--yes")
    day.echod("elevate", ids["standing 2"], day.project, "--domain", "backend")
    for key in (day.says("a session key"), "second", "third"):
        day.echod("record-access", ids["proven"], "--session", key, "--project", day.project)
    day.echod("restore", ids["standing 0"], day.project)
    day.echod("undo", "--last", day.project, "--yes")
    memory.write_text("".join(memory.read_text().rpartition("### ")[:1]))  # the person takes out the last entries
    day.echod("packs", "install", "kit")
    day.echod("run", "--once", day.project)


def _while_a_workflow_runs(day: Day) -> None:
    name = day.says("a workflow")
    day.echod("workflow", "begin", name, "--project", day.project)
    marker = day.project / "tmp/.rune-review-abc.json"
    marker.parent.mkdir()
    fields = ("status", "session_id", "team_name", "workflow", "feature", "phase", "identifier")
    marker.write_text(json.dumps({"owner_pid": str(os.getpid()), **{f: day.says(f"a marker's {f}") for f in fields}}))
    day.echod("remember", day.says("what has to wait"), "--force")
    (day.role("workers") / "ward-findings.md").write_text(learning(day.says("findings that wait")))
    day.echod("run", "--once", day.project)
    marker.unlink()
    assert "has ended" in day.echod("workflow", "end", name, "--project", day.project)


def _upkeep(day: Day) -> None:
    crowd = [told(day, f"crowd {n}", learning(f"crowd {n}", "traced", age=n + 20, lines=20)) for n in range(9)]
    known = [told(day, f"known {n}", learning(f"known {n}", "traced", age=n, lines=15)) for n in range(9)]
    (day.role("workers") / "MEMORY.md").write_text(HEAD + "".join(crowd))
    (day.role("workers") / "knowledge.md").write_text("# Knowledge\n\n" + "".join(known))
    day.echod("prune", day.project)
    day.echod("compress", day.project)
    day.echod("reset", day.project, "--role", "workers", "--yes")
    day.echod("undo", "--last", day.project, "--yes")


def _what_cannot_be_read(day: Day) -> None:
    talisman = day.project / ".rune/talisman.yml"
    (day.role("planner") / "MEMORY.md").write_bytes(b"\xff\xfe " + day.says("an unreadable memory").encode())
    (day.role("planner") / "ward-findings.md").write_text(learning("cannot be folded in"))
    (day.role("utility") / "MEMORY.md").mkdir(parents=True)
    (day.role("utility") / "ward-findings.md").write_text(learning(day.says("what cannot be folded in")))
    talisman.write_text(f"echoes:\n  consolidate: {day.says('a wrong type')}\n")
    day.echod("run", "--once", day.project)
    settings = day.root / "settings.toml"
    settings.write_text(f"mode = '{day.says('a wrong setting')}'\n")
    day.echod("--config", settings, "run", "--once", day.project)
    day.echod("run", "--once", day.project, mode=day.says("a variable"))


def _what_stands_there(day: Day) -> None:
    old = day.role("planner")
    (old / "archive").mkdir()
    (old / "quarantine").mkdir()
    text = told(day, "an old archive", learning("archived long ago"))
    kept = ArchivedEntry(
        "0123456789ab", "planner", "MEMORY.md", "forgotten", Layer.INSCRIBED, None, None, TODAY, text, redacted=False
    )
    (old / "archive/removed-2026.md").write_bytes(archive_text([kept], 3))
    (old / "quarantine/2026-11-01-odd-findings.md").write_text(learning(day.says("an old quarantine")))
    (old / "MEMORY.md").write_text(HEAD + learning("plans", "etched"))


def _what_agents_write(day: Day) -> None:
    role = day.role("reviewer")
    (role / "MEMORY.md").write_text(HEAD + learning("reviews"))
    title = learning(day.says("a title")).replace("1-5", f"1-5, {day.says('evidence')}")
    (role / "ward-findings.md").write_text(
        title
        + told(day, "a body", learning("bodies"))
        + learning("sources").replace("rune:review", f"rune:review {day.says('a source')}")
        + learning("replacing").replace("- What", f"- **supersedes**: {day.says('what is replaced')}\n- What")
        + learning(day.says("a claim"), "etched")
        + f"\n\nand some loose text {day.says('loose text')}\n"
    )
    (role / "bad-findings.md").write_bytes(b"\xff\xfe " + day.says("what is no text").encode())
    token = day.says("an agent's name").split()[1]
    (role / f"{token}-findings.md").write_text(learning("names"))
    event = rune_team(
        day.project,
        "7",
        day.says("a subject"),
        task_description=day.says("a description"),
        teammate_name=day.says("a teammate").split()[1],
        session_id=day.says("a session").split()[1],
    )
    assert hook("task-completed", event, day.home.environ, day.project) == (0, b"", b"")
    assert hook("task-completed", day.says("no JSON").encode(), day.home.environ, day.project) == (0, b"", b"")


def _leaks(day: Day) -> Iterator[str]:
    """Where a secret stands that echod has written there."""
    for path in day.root.rglob("*"):
        if path.is_symlink() or not path.is_file() or _is_exact(day, path):
            continue
        held = path.read_bytes() + path.name.encode()
        for place, token in day.secrets.items():
            if token.encode() in held and not _was_there(path, place):
                yield f"{place}: {path.relative_to(day.root)}"


def _is_exact(day: Day, path: Path) -> bool:
    """What is exact on purpose: the journal's contents and commits, and files that echod replaced but did not write."""
    if day.home.state / "journal" in path.parents:
        return path.parent.name in ("images", "records", "closed")
    return path.name.startswith(".") and ".echod-" in path.name


def _was_there(path: Path, place: str) -> bool:
    """What others wrote, and echod has not touched or copied as it was for a backup."""
    written = {
        "a pack": "MEMORY.md", "an old archive": "removed-2026.md", "an unreadable memory": "MEMORY.md", "a wrong type": "talisman.yml",
        "a wrong setting": "settings.toml", "what cannot be folded in": "ward-findings.md",
    }  # fmt: skip
    if place.startswith(("standing", "crowd", "known")):
        return path.name in ("MEMORY.md", "knowledge.md") or path.name.startswith("MEMORY-")
    return written.get(place) == path.name


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    return lived(tmp_path_factory.mktemp("day"))


def test_no_secret_stands_in_anything_that_was_written(day: Day) -> None:
    assert day.leaks == ()


def test_the_learning_survives(day: Day) -> None:
    kept = "".join(path.read_text(errors="replace") for path in day.project.rglob("*.md") if path.is_file())

    assert [place for place in LEARNINGS if day.words[place] not in kept] == []


def test_no_log_holds_a_word_of_any_text(day: Day) -> None:
    logs = [day.root / "service.log", *(day.home.state / "log").glob("*")]
    logged = "".join(path.read_text() for path in logs if path.is_file())

    assert logged.count("job_ended") > 5
    assert "job_failed" in logged
    assert [place for place, word in day.words.items() if word in logged] == []
    assert [place for place, token in day.secrets.items() if token in logged] == []


def test_no_command_ends_in_a_bug(day: Day) -> None:
    assert [said for said in day.said if "Traceback" in said or "a bug in echod" in said] == []

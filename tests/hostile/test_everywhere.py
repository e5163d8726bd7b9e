"""One scenario that uses every input, each with a secret and a word of its own, and checks where they end up.

Afterwards no secret is in anything that echod wrote, except for the exact blobs of its journal, and no word of any
text is in a log.
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

from echod.memory.archive import ArchivedEntry, render_archived_entries
from echod.memory.model import Layer
from tests.hooks.events import run_hook, rune_team_event
from tests.life.files import MEMORY_HEADER, TODAY, learning_text, observation_text
from tests.packs.conftest import TeamRegistry
from tests.support import Home, make_project, running_daemon, until

pytestmark = pytest.mark.slow

LEARNINGS = (
    "a title", "evidence", "a body", "a source", "a claim", "loose text", "a subject", "a description", "a note",
    "a note's title", "an old archive", "an old quarantine", "what has to wait", "findings that wait", "standing 0",
    "standing 3", "crowd 0", "known 0",
)  # fmt: skip
_LETTERS = string.ascii_letters + string.digits


@dataclass
class Scenario:
    """The project, echod's own files, and all output of the scenario."""

    root: Path
    home: Home
    secrets: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    leaks: tuple[str, ...] = ()
    generator: random.Random = field(default_factory=lambda: random.Random(7))

    def unique_text(self, place: str) -> str:
        """Return a secret and a word that occur nowhere else."""
        token = "gh" + "p_" + "".join(self.generator.choices(_LETTERS, k=36))
        word = "quo" + "".join(self.generator.choices(string.ascii_lowercase, k=9))
        self.secrets[place], self.words[place] = token, word
        return f"{word} {token}"

    @property
    def project(self) -> Path:
        return self.root / "project"

    def role(self, name: str) -> Path:
        return self.project / ".rune/echoes" / name

    def echod(self, *arguments: object, mode: str = "maintain") -> str:
        result = self.home.echod(*arguments, cwd=self.project, ECHOD_MODE=mode)
        self.outputs.append(
            f"$ {' '.join(map(str, arguments))[:60]}\n{result.returncode} {result.stdout}{result.stderr}"
        )
        return result.stdout


def with_unique_text(scenario: Scenario, place: str, entry: str) -> str:
    """Return an entry with a title and text of its own."""
    return entry.replace("What was learnt", f"{scenario.unique_text(place)}. What was learnt")


def run_scenario(root: Path) -> Scenario:
    """Run every operation once, with the service running."""
    team = root / "registry"
    settings = {
        "ECHOD_LOG_LEVEL": "debug", "ECHOD_GATE__SESSIONS": "false", "ECHOD_KNOWLEDGE_LINE_LIMIT": "100",
        "ECHOD_MEMORY_LINE_LIMIT": "100", "ECHOD_HOOKS__SESSION_SUMMARY": "true",
        "ECHOD_PACKS__REGISTRIES": json.dumps([str(team)]),
    }  # fmt: skip
    scenario = Scenario(root, Home(root, settings))
    scenario.home = replace(scenario.home, settings={**settings, "SOME_TOKEN": scenario.unique_text("environment")})
    make_project(scenario.project, "reviewer", "workers", "planner", "orchestrator")
    TeamRegistry(team).publish("kit", "1.0.0", scenario.unique_text("a pack"))
    _write_existing_files(scenario)
    with running_daemon(scenario.home) as service:
        scenario.echod("add", scenario.project)
        _write_agent_files(scenario)
        until(lambda: not list(scenario.project.glob(".rune/echoes/*/*-findings.md")), "the findings folded in")
        until(lambda: not list((scenario.home.state / "spool").glob("*.json")), "the spool to be empty")
        _run_user_commands(scenario)
        _run_during_workflow(scenario)
        _run_maintenance(scenario)
        _write_unreadable_files(scenario)
        scenario.leaks = tuple(_find_leaks(scenario))
        scenario.echod("scrub", scenario.project, "--include-protected")
        service.stop()
    return scenario


def _run_user_commands(scenario: Scenario) -> None:
    scenario.echod("remember", scenario.unique_text("a note"), "--title", scenario.unique_text("a note's title"))
    scenario.echod("restore", "0123456789ab")
    for item in json.loads(scenario.echod("review", scenario.project, "--json"))["items"]:
        if "-odd-" in item["text"]:
            scenario.echod("review", "accept", item["id"], "--yes")
    memory = scenario.role("reviewer") / "MEMORY.md"
    standing = "".join(with_unique_text(scenario, f"standing {n}", learning_text(f"standing {n}")) for n in range(3))
    memory.write_text(memory.read_text() + standing + learning_text(scenario.unique_text("standing 3")))
    useful = scenario.role("orchestrator") / "MEMORY.md"
    useful.write_text(MEMORY_HEADER + observation_text("proven"))
    shown = json.loads(scenario.echod("show", scenario.project, "--json"))["entries"]
    ids = {entry["title"].rpartition(": ")[2]: entry["id"] for entry in shown}
    scenario.echod("forget", ids["standing 0"], scenario.project, "--yes")
    scenario.echod("raise", ids["standing 1"], "notes", scenario.project, "--yes")
    scenario.echod("elevate", ids["standing 2"], scenario.project, "--domain", "backend")
    for key in (scenario.unique_text("a session key"), "second", "third"):
        scenario.echod("record-access", ids["proven"], "--session", key, "--project", scenario.project)
    scenario.echod("restore", ids["standing 0"], scenario.project)
    scenario.echod("undo", "--last", scenario.project, "--yes")
    memory.write_text("".join(memory.read_text().rpartition("### ")[:1]))  # the user removes the last entries
    scenario.echod("packs", "install", "kit")
    scenario.echod("run", "--once", scenario.project)


def _run_during_workflow(scenario: Scenario) -> None:
    name = scenario.unique_text("a workflow")
    scenario.echod("workflow", "begin", name, "--project", scenario.project)
    marker = scenario.project / "tmp/.rune-review-abc.json"
    marker.parent.mkdir()
    fields = ("status", "session_id", "team_name", "workflow", "feature", "phase", "identifier")
    marker.write_text(
        json.dumps({"owner_pid": str(os.getpid()), **{f: scenario.unique_text(f"a marker's {f}") for f in fields}})
    )
    scenario.echod("remember", scenario.unique_text("what has to wait"), "--force")
    (scenario.role("workers") / "ward-findings.md").write_text(
        learning_text(scenario.unique_text("findings that wait"))
    )
    scenario.echod("run", "--once", scenario.project)
    marker.unlink()
    assert "has ended" in scenario.echod("workflow", "end", name, "--project", scenario.project)


def _run_maintenance(scenario: Scenario) -> None:
    crowd = [
        with_unique_text(scenario, f"crowd {n}", learning_text(f"crowd {n}", "traced", age=n + 20, lines=20))
        for n in range(9)
    ]
    known = [
        with_unique_text(scenario, f"known {n}", learning_text(f"known {n}", "traced", age=n, lines=15))
        for n in range(9)
    ]
    (scenario.role("workers") / "MEMORY.md").write_text(MEMORY_HEADER + "".join(crowd))
    (scenario.role("workers") / "knowledge.md").write_text("# Knowledge\n\n" + "".join(known))
    scenario.echod("prune", scenario.project)
    scenario.echod("compress", scenario.project)
    scenario.echod("reset", scenario.project, "--role", "workers", "--yes")
    scenario.echod("undo", "--last", scenario.project, "--yes")


def _write_unreadable_files(scenario: Scenario) -> None:
    talisman = scenario.project / ".rune/talisman.yml"
    (scenario.role("planner") / "MEMORY.md").write_bytes(
        b"\xff\xfe " + scenario.unique_text("an unreadable memory").encode()
    )
    (scenario.role("planner") / "ward-findings.md").write_text(learning_text("cannot be folded in"))
    (scenario.role("utility") / "MEMORY.md").mkdir(parents=True)
    (scenario.role("utility") / "ward-findings.md").write_text(
        learning_text(scenario.unique_text("what cannot be folded in"))
    )
    talisman.write_text(f"echoes:\n  consolidate: {scenario.unique_text('a wrong type')}\n")
    scenario.echod("run", "--once", scenario.project)
    settings = scenario.root / "settings.toml"
    settings.write_text(f"mode = '{scenario.unique_text('a wrong setting')}'\n")
    scenario.echod("--config", settings, "run", "--once", scenario.project)
    scenario.echod("run", "--once", scenario.project, mode=scenario.unique_text("a variable"))


def _write_existing_files(scenario: Scenario) -> None:
    old = scenario.role("planner")
    (old / "archive").mkdir()
    (old / "quarantine").mkdir()
    text = with_unique_text(scenario, "an old archive", learning_text("archived long ago"))
    kept = ArchivedEntry(
        "0123456789ab", "planner", "MEMORY.md", "forgotten", Layer.INSCRIBED, None, None, TODAY, text, redacted=False
    )
    (old / "archive/removed-2026.md").write_bytes(render_archived_entries([kept], 3))
    (old / "quarantine/2026-11-01-odd-findings.md").write_text(learning_text(scenario.unique_text("an old quarantine")))
    (old / "MEMORY.md").write_text(MEMORY_HEADER + learning_text("plans", "etched"))


def _write_agent_files(scenario: Scenario) -> None:
    role = scenario.role("reviewer")
    (role / "MEMORY.md").write_text(MEMORY_HEADER + learning_text("reviews"))
    title = learning_text(scenario.unique_text("a title")).replace("1-5", f"1-5, {scenario.unique_text('evidence')}")
    (role / "ward-findings.md").write_text(
        title
        + with_unique_text(scenario, "a body", learning_text("bodies"))
        + learning_text("sources").replace("rune:review", f"rune:review {scenario.unique_text('a source')}")
        + learning_text("replacing").replace(
            "- What", f"- **supersedes**: {scenario.unique_text('what is replaced')}\n- What"
        )
        + learning_text(scenario.unique_text("a claim"), "etched")
        + f"\n\nand some loose text {scenario.unique_text('loose text')}\n"
    )
    (role / "bad-findings.md").write_bytes(b"\xff\xfe " + scenario.unique_text("what is no text").encode())
    token = scenario.unique_text("an agent's name").split()[1]
    (role / f"{token}-findings.md").write_text(learning_text("names"))
    event = rune_team_event(
        scenario.project,
        "7",
        scenario.unique_text("a subject"),
        task_description=scenario.unique_text("a description"),
        teammate_name=scenario.unique_text("a teammate").split()[1],
        session_id=scenario.unique_text("a session").split()[1],
    )
    assert run_hook("task-completed", event, scenario.home.environ, scenario.project) == (0, b"", b"")
    assert run_hook(
        "task-completed", scenario.unique_text("no JSON").encode(), scenario.home.environ, scenario.project
    ) == (0, b"", b"")


def _find_leaks(scenario: Scenario) -> Iterator[str]:
    """Return the places in which echod wrote a secret."""
    for path in scenario.root.rglob("*"):
        if path.is_symlink() or not path.is_file() or _is_exact_copy(scenario, path):
            continue
        held = path.read_bytes() + path.name.encode()
        for place, token in scenario.secrets.items():
            if token.encode() in held and not _is_source_file(path, place):
                yield f"{place}: {path.relative_to(scenario.root)}"


def _is_exact_copy(scenario: Scenario, path: Path) -> bool:
    """Return whether a file is exact on purpose: blobs and commits of the journal, and replaced files."""
    if scenario.home.state / "journal" in path.parents:
        return path.parent.name in ("blobs", "records", "closed")
    return path.name.startswith(".") and ".echod-" in path.name


def _is_source_file(path: Path, place: str) -> bool:
    """Return whether a file was written by others, and echod did not change it or copied it for a backup."""
    written = {
        "a pack": "MEMORY.md", "an old archive": "removed-2026.md", "an unreadable memory": "MEMORY.md", "a wrong type": "talisman.yml",
        "a wrong setting": "settings.toml", "what cannot be folded in": "ward-findings.md",
    }  # fmt: skip
    if place.startswith(("standing", "crowd", "known")):
        return path.name in ("MEMORY.md", "knowledge.md") or path.name.startswith("MEMORY-")
    return written.get(place) == path.name


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return run_scenario(tmp_path_factory.mktemp("day"))


def test_no_secret_is_in_anything_that_was_written(scenario: Scenario) -> None:
    assert scenario.leaks == ()


def test_the_learning_survives(scenario: Scenario) -> None:
    kept = "".join(path.read_text(errors="replace") for path in scenario.project.rglob("*.md") if path.is_file())

    assert [place for place in LEARNINGS if scenario.words[place] not in kept] == []


def test_no_log_holds_a_word_of_any_text(scenario: Scenario) -> None:
    logs = [scenario.root / "service.log", *(scenario.home.state / "log").glob("*")]
    logged = "".join(path.read_text() for path in logs if path.is_file())

    assert logged.count("job_finished") > 5
    assert "job_failed" in logged
    assert [place for place, word in scenario.words.items() if word in logged] == []
    assert [place for place, token in scenario.secrets.items() if token in logged] == []


@pytest.mark.slow
def test_no_command_ends_in_a_bug(scenario: Scenario) -> None:
    assert [output for output in scenario.outputs if "Traceback" in output or "a bug in echod" in output] == []

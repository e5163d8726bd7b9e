"""Whole workflows played against a running service: no memory is rewritten while one runs, and all that is due is
done soon after its end. Markers are written the way the plugins write them, by a process that lives and dies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from echod.app.services import furnish
from echod.jobs.base import Deferred
from echod.paths import from_environment
from echod.scheduler.reconcile import reconcile
from echod.settings.values import Settings
from echod.store import layout
from echod.store.layout import Store
from echod.workflows import Verdict
from tests.support import Home, daemon, finding, project, until

QUIET_SECONDS = 1.0
LONG_AGO = 1_700_000_000
CHECKPOINT = "checkpoint_path: .rune/arc/arc-1773766661000/checkpoint.json"


class Owner:
    """The process that runs a workflow; markers name it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    @property
    def pid(self) -> str:
        return str(self.process.pid)

    def die(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def owner() -> Iterator[Owner]:
    living = Owner()
    yield living
    living.die()


@pytest.fixture
def quiet(home: Home) -> Home:
    return Home(home.root, {"ECHOD_QUIET_SECONDS": str(QUIET_SECONDS)})


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def state_file(root: Path, owner: Owner, status: str, kind: str = "review") -> None:
    write(root / f"tmp/.rune-{kind}-1a2b.json", json.dumps({"status": status, "owner_pid": owner.pid}))


def loop(root: Path, owner: Owner, *, active: bool, place: str = ".rune") -> None:
    text = f"---\nactive: {str(active).lower()}\niteration: 1\nowner_pid: {owner.pid}\n{CHECKPOINT}\n---\nGo on.\n"
    write(root / place / "arc-phase-loop.local.md", text)


def checkpoint(root: Path, owner: Owner, **phases: str) -> None:
    content = {
        "id": "arc-1773766661000",
        "owner_pid": owner.pid,
        "completed_at": None,
        "phases": {name: {"status": status} for name, status in phases.items()},
    }
    write(root / ".rune/arc/arc-1773766661000/checkpoint.json", json.dumps(content))


def lock(root: Path, owner: Owner) -> None:
    meta = {"workflow": "strive", "class": "writer", "pid": int(owner.pid)}
    write(root / "tmp/.rune-locks/strive/meta.json", json.dumps(meta))


def team(root: Path, done: int) -> None:
    place = root / "tmp/.rune-signals/rune-work-1a2b"
    write(place / ".expected", "3")
    for number in range(done):
        write(place / f"{number}.done", "{}")


Step = Callable[[Path, Owner], None]


def both(one: Step, other: Step) -> Step:
    def step(root: Path, owner: Owner) -> None:
        one(root, owner)
        other(root, owner)

    return step


def gone(name: str) -> Step:
    def step(root: Path, _: Owner) -> None:
        shutil.rmtree(root / name) if (root / name).is_dir() else (root / name).unlink()

    return step


def long_dead(*names: str) -> Step:
    """The owner dies without a word, and time passes."""

    def step(root: Path, owner: Owner) -> None:
        owner.die()
        for name in names:
            past = time.time() - 3 * 3600
            for path in (root / name, *(root / name).rglob("*"), (root / name).parent):
                os.utime(path, (past, past))

    return step


PLAYS: dict[str, list[Step]] = {
    "a state file": [
        lambda r, o: state_file(r, o, "active"),
        lambda r, o: state_file(r, o, "active"),
        lambda r, o: state_file(r, o, "completed"),
    ],
    "a state file that is removed": [lambda r, o: state_file(r, o, "running"), gone("tmp/.rune-review-1a2b.json")],
    "a pipeline with phases": [
        both(lambda r, o: loop(r, o, active=True), lambda r, o: checkpoint(r, o, forge="in_progress", work="pending")),
        lambda r, o: checkpoint(r, o, forge="completed", work="in_progress"),
        lambda r, o: checkpoint(r, o, forge="completed", work="completed"),
    ],
    "a loop in the old place": [
        lambda r, o: loop(r, o, active=True, place=".claude"),
        lambda r, o: loop(r, o, active=False, place=".claude"),
    ],
    "a lock": [lock, gone("tmp/.rune-locks/strive")],
    "a team": [lambda r, _: team(r, 1), lambda r, _: team(r, 2), lambda r, _: team(r, 3)],
    "two at once": [
        both(lambda r, o: state_file(r, o, "active"), lambda r, o: state_file(r, o, "active", "audit")),
        lambda r, o: state_file(r, o, "completed"),
        lambda r, o: state_file(r, o, "completed", "audit"),
    ],
    "an owner that dies": [
        lambda r, o: state_file(r, o, "active"),
        long_dead("tmp/.rune-review-1a2b.json"),
    ],
    "a loop whose owner dies between two phases": [
        lambda r, o: loop(r, o, active=True),
        lambda r, o: checkpoint(r, o, forge="completed", work="pending"),
        long_dead(".rune/arc-phase-loop.local.md", ".rune/arc/arc-1773766661000"),
    ],
    "a lock whose owner dies": [lock, lambda _, owner: owner.die()],
    "a team that is abandoned": [
        lambda r, _: team(r, 1),
        lambda r, _: team(r, 2),
        long_dead("tmp/.rune-signals/rune-work-1a2b"),
    ],
    "a pipeline whose owner dies in a phase": [
        lambda r, o: checkpoint(r, o, forge="in_progress"),
        long_dead(".rune/arc/arc-1773766661000"),
    ],
}


class Stage:
    """A project in which a play is given, with a memory that must stay as it is until the end."""

    def __init__(self, root: Path, play: str) -> None:
        self.root = project(root)
        *self.during, self.last = PLAYS[play]
        self.owner = Owner()
        self.role = self.root / ".rune/echoes/reviewer"
        self.memory = self.role / "MEMORY.md"
        self.memory.write_text("# Reviewer Echoes\n")
        os.utime(self.memory, (LONG_AGO, LONG_AGO))

    def go_on(self, number: int) -> None:
        """The next step, if there is one before the last, and an agent's findings."""
        if number < len(self.during):
            self.during[number](self.root, self.owner)
            write(self.role / f"agent{number}-findings.md", finding(f"Learnt {number}"))

    def end(self) -> None:
        self.last(self.root, self.owner)

    @property
    def untouched(self) -> bool:
        return self.memory.stat().st_mtime == LONG_AGO

    @property
    def done(self) -> bool:
        text = self.memory.read_text()
        all_in = all(f"Learnt {number}" in text for number in range(len(self.during)))
        return all_in and not list(self.role.glob("*-findings.md"))


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[dict[str, Stage]]:
    made = {play: Stage(tmp_path / play.replace(" ", "-"), play) for play in PLAYS}
    yield made
    for stage in made.values():
        stage.owner.die()


def test_nothing_is_rewritten_during_any_play_and_all_is_done_after_its_end(
    quiet: Home, stages: dict[str, Stage]
) -> None:
    for stage in stages.values():
        quiet.done("add", stage.root)
    with daemon(quiet):
        for number in range(max(len(stage.during) for stage in stages.values())):
            for stage in stages.values():
                stage.go_on(number)
            findings = {stage.root: min(number + 1, len(stage.during)) for stage in stages.values()}
            until(lambda findings=findings: waiting(quiet) == findings, "the findings to wait for the workflows")  # type: ignore[misc]
            assert [play for play, stage in stages.items() if not stage.untouched] == []

        for stage in stages.values():
            stage.end()
        for play, stage in stages.items():
            until(lambda stage=stage: stage.done, f"the memory after {play}", seconds=QUIET_SECONDS + 12)  # type: ignore[misc]


def waiting(home: Home) -> dict[Path, int]:
    """Projects in which a job waits for a workflow that runs, each with the findings that the service has seen."""
    told = home.json("status")
    deferred = {job["store"] for job in told["waiting"] if job["state"] == "deferred"}
    return {
        Path(store["path"]).parents[1]: store["roles"][0]["findings"]
        for store in told["stores"]
        if store["gate"]["state"] == "active" and store["path"] in deferred
    }


def test_a_workflow_in_a_worktree_is_another_projects(quiet: Home, tmp_path: Path, owner: Owner) -> None:
    root = project(tmp_path / "p")
    state_file(root / ".claude/worktrees/feature", owner, "active")
    quiet.done("add", root)
    with daemon(quiet):
        write(root / ".rune/echoes/reviewer/ward-findings.md", finding("Learnt"))

        until((root / ".rune/echoes/reviewer/MEMORY.md").exists, "the memory in spite of the worktree")


def test_a_workflow_that_starts_after_the_claim_stops_the_commit(
    tmp_path: Path, owner: Owner, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path / "p")
    write(root / ".rune/echoes/reviewer/ward-findings.md", finding("Learnt"))
    paths = from_environment(home.environ)
    with furnish(paths, Settings(quiet_seconds=0), home.environ, time.time) as house:
        gatekeeper = house.lookout.gatekeeper
        first_answer = gatekeeper.ask
        asked: list[float] = []

        def ask(place: Path, stores: Sequence[Store], now: float) -> Verdict:
            if asked:
                state_file(root, owner, "active")
            asked.append(now)
            return first_answer(place, stores, now)

        monkeypatch.setattr(gatekeeper, "ask", ask)
        (store,) = layout.stores_of(root)
        reconcile(store, house.lookout.rules(root), house.queue, time.time())

        finished = house.worker.turn()

    assert finished is not None
    assert isinstance(finished.outcome, Deferred)
    assert finished.held_by_gate
    assert len(asked) >= 2
    assert not (root / ".rune/echoes/reviewer/MEMORY.md").exists()
    assert (root / ".rune/echoes/reviewer/ward-findings.md").exists()


def test_a_workflow_can_be_announced_and_ended_by_any_tool(quiet: Home, tmp_path: Path) -> None:
    root = project(tmp_path / "p")
    quiet.done("add", root)
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    with daemon(quiet):
        said = quiet.done("workflow", "begin", "refactoring", "--project", root, "--ttl", "60")
        assert "echod workflow end refactoring" in said
        write(memory.parent / "ward-findings.md", finding("Learnt"))
        until(lambda: waiting(quiet) == {root: 1}, "the findings to wait")
        assert "refactoring" in quiet.done("gate", root)

        quiet.done("workflow", "end", "refactoring", "--project", root)

        until(memory.exists, "the memory after the end", seconds=QUIET_SECONDS + 12)


def test_an_announced_workflow_ends_with_its_process(quiet: Home, tmp_path: Path, owner: Owner) -> None:
    root = project(tmp_path / "p")
    quiet.done("add", root)
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    with daemon(quiet):
        quiet.done("workflow", "begin", "refactoring", "--project", root, "--pid", owner.pid)
        write(memory.parent / "ward-findings.md", finding("Learnt"))
        until(lambda: waiting(quiet) == {root: 1}, "the findings to wait")

        owner.die()

        until(memory.exists, "the memory after the process", seconds=QUIET_SECONDS + 12)


def test_an_announced_workflow_ends_with_its_time(quiet: Home, tmp_path: Path) -> None:
    root = project(tmp_path / "p")
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    quiet.done("workflow", "begin", "refactoring", "--project", root, "--ttl", "0.02")

    until(lambda: quiet.json("gate", root)["state"] != "active", "the announced time to be over")
    assert not memory.exists()


def test_ending_what_does_not_run_is_said(quiet: Home, tmp_path: Path) -> None:
    root = project(tmp_path / "p")

    result = quiet.echod("workflow", "end", "refactoring", "--project", root)

    assert result.returncode == 2
    assert "No workflow 'refactoring' runs" in result.stderr

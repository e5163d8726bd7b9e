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
from functools import partial
from pathlib import Path

import pytest

from echod.app.services import open_services
from echod.jobs.base import JobDeferred
from echod.paths import paths_from_environment
from echod.scheduler.reconcile import reconcile
from echod.settings.schema import Settings
from echod.store import layout
from echod.store.layout import Store
from echod.workflows import Verdict
from tests.support import Home, finding_text, make_project, running_daemon, until

QUIET_SECONDS = 1.0
LONG_AGO = 1_700_000_000
CHECKPOINT = "checkpoint_path: .rune/arc/arc-1773766661000/checkpoint.json"


class WorkflowProcess:
    """The process that runs a workflow. Markers contain its number."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    @property
    def pid(self) -> str:
        return str(self.process.pid)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def owner() -> Iterator[WorkflowProcess]:
    process = WorkflowProcess()
    yield process
    process.kill()


@pytest.fixture
def quiet(home: Home) -> Home:
    return Home(home.root, {"ECHOD_QUIET_SECONDS": str(QUIET_SECONDS)})


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_state_file(root: Path, owner: WorkflowProcess, status: str, kind: str = "review") -> None:
    write_file(root / f"tmp/.rune-{kind}-1a2b.json", json.dumps({"status": status, "owner_pid": owner.pid}))


def write_loop_file(root: Path, owner: WorkflowProcess, *, active: bool, place: str = ".rune") -> None:
    text = f"---\nactive: {str(active).lower()}\niteration: 1\nowner_pid: {owner.pid}\n{CHECKPOINT}\n---\nGo on.\n"
    write_file(root / place / "arc-phase-loop.local.md", text)


def write_checkpoint(root: Path, owner: WorkflowProcess, **phases: str) -> None:
    content = {
        "id": "arc-1773766661000",
        "owner_pid": owner.pid,
        "completed_at": None,
        "phases": {name: {"status": status} for name, status in phases.items()},
    }
    write_file(root / ".rune/arc/arc-1773766661000/checkpoint.json", json.dumps(content))


def write_lock(root: Path, owner: WorkflowProcess) -> None:
    meta = {"workflow": "strive", "class": "writer", "pid": int(owner.pid)}
    write_file(root / "tmp/.rune-locks/strive/meta.json", json.dumps(meta))


def write_team_signals(root: Path, done: int) -> None:
    place = root / "tmp/.rune-signals/rune-work-1a2b"
    write_file(place / ".expected", "3")
    for number in range(done):
        write_file(place / f"{number}.done", "{}")


Step = Callable[[Path, WorkflowProcess], None]


def combine_steps(one: Step, other: Step) -> Step:
    def step(root: Path, owner: WorkflowProcess) -> None:
        one(root, owner)
        other(root, owner)

    return step


def remove_marker(name: str) -> Step:
    def step(root: Path, _: WorkflowProcess) -> None:
        shutil.rmtree(root / name) if (root / name).is_dir() else (root / name).unlink()

    return step


def kill_long_ago(*names: str) -> Step:
    """The owner dies without cleaning up, and time passes."""

    def step(root: Path, owner: WorkflowProcess) -> None:
        owner.kill()
        for name in names:
            past = time.time() - 3 * 3600
            for path in (root / name, *(root / name).rglob("*"), (root / name).parent):
                os.utime(path, (past, past))

    return step


SCENARIOS: dict[str, list[Step]] = {
    "a state file": [
        lambda r, o: write_state_file(r, o, "active"),
        lambda r, o: write_state_file(r, o, "active"),
        lambda r, o: write_state_file(r, o, "completed"),
    ],
    "a state file that is removed": [
        lambda r, o: write_state_file(r, o, "running"),
        remove_marker("tmp/.rune-review-1a2b.json"),
    ],
    "a pipeline with phases": [
        combine_steps(
            lambda r, o: write_loop_file(r, o, active=True),
            lambda r, o: write_checkpoint(r, o, forge="in_progress", work="pending"),
        ),
        lambda r, o: write_checkpoint(r, o, forge="completed", work="in_progress"),
        lambda r, o: write_checkpoint(r, o, forge="completed", work="completed"),
    ],
    "a loop in the old place": [
        lambda r, o: write_loop_file(r, o, active=True, place=".claude"),
        lambda r, o: write_loop_file(r, o, active=False, place=".claude"),
    ],
    "a lock": [write_lock, remove_marker("tmp/.rune-locks/strive")],
    "a team": [
        lambda r, _: write_team_signals(r, 1),
        lambda r, _: write_team_signals(r, 2),
        lambda r, _: write_team_signals(r, 3),
    ],
    "two at once": [
        combine_steps(
            lambda r, o: write_state_file(r, o, "active"), lambda r, o: write_state_file(r, o, "active", "audit")
        ),
        lambda r, o: write_state_file(r, o, "completed"),
        lambda r, o: write_state_file(r, o, "completed", "audit"),
    ],
    "an owner that dies": [
        lambda r, o: write_state_file(r, o, "active"),
        kill_long_ago("tmp/.rune-review-1a2b.json"),
    ],
    "a loop whose owner dies between two phases": [
        lambda r, o: write_loop_file(r, o, active=True),
        lambda r, o: write_checkpoint(r, o, forge="completed", work="pending"),
        kill_long_ago(".rune/arc-phase-loop.local.md", ".rune/arc/arc-1773766661000"),
    ],
    "a lock whose owner dies": [write_lock, lambda _, owner: owner.kill()],
    "a team that is abandoned": [
        lambda r, _: write_team_signals(r, 1),
        lambda r, _: write_team_signals(r, 2),
        kill_long_ago("tmp/.rune-signals/rune-work-1a2b"),
    ],
    "a pipeline whose owner dies in a phase": [
        lambda r, o: write_checkpoint(r, o, forge="in_progress"),
        kill_long_ago(".rune/arc/arc-1773766661000"),
    ],
}


class ScenarioProject:
    """A project in which a workflow is played, with a memory that must not change until the end."""

    def __init__(self, root: Path, play: str) -> None:
        self.root = make_project(root)
        *self.steps, self.last_step = SCENARIOS[play]
        self.owner = WorkflowProcess()
        self.role = self.root / ".rune/echoes/reviewer"
        self.memory = self.role / "MEMORY.md"
        self.memory.write_text("# Reviewer Echoes\n")
        os.utime(self.memory, (LONG_AGO, LONG_AGO))

    def run_step(self, number: int) -> None:
        """Do the next step, if there is one before the last, and write an agent's findings."""
        if number < len(self.steps):
            self.steps[number](self.root, self.owner)
            write_file(self.role / f"agent{number}-findings.md", finding_text(f"Learnt {number}"))

    def run_last_step(self) -> None:
        self.last_step(self.root, self.owner)

    @property
    def untouched(self) -> bool:
        return self.memory.stat().st_mtime == LONG_AGO

    @property
    def done(self) -> bool:
        text = self.memory.read_text()
        all_in = all(f"Learnt {number}" in text for number in range(len(self.steps)))
        return all_in and not list(self.role.glob("*-findings.md"))


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[dict[str, ScenarioProject]]:
    made = {play: ScenarioProject(tmp_path / play.replace(" ", "-"), play) for play in SCENARIOS}
    yield made
    for stage in made.values():
        stage.owner.kill()


def test_nothing_is_rewritten_during_any_workflow_and_all_is_done_after_its_end(
    quiet: Home, stages: dict[str, ScenarioProject]
) -> None:
    for stage in stages.values():
        quiet.run("add", stage.root)
    with running_daemon(quiet):
        for number in range(max(len(stage.steps) for stage in stages.values())):
            for stage in stages.values():
                stage.run_step(number)
            findings = {stage.root: min(number + 1, len(stage.steps)) for stage in stages.values()}
            until(partial(_findings_wait, quiet, findings), "the findings to wait for the workflows")
            assert [play for play, stage in stages.items() if not stage.untouched] == []

        for stage in stages.values():
            stage.run_last_step()
        for play, stage in stages.items():
            until(lambda stage=stage: stage.done, f"the memory after {play}", seconds=QUIET_SECONDS + 12)  # type: ignore[misc]


def waiting_findings(home: Home) -> dict[Path, int]:
    """Create projects in which a job waits for a running workflow, each with findings that the service has detected."""
    told = home.json("status")
    deferred = {job["store"] for job in told["waiting"] if job["state"] == "deferred"}
    return {
        Path(store["path"]).parents[1]: store["roles"][0]["findings"]
        for store in told["stores"]
        if store["gate"]["state"] == "active" and store["path"] in deferred
    }


def test_a_workflow_in_a_worktree_belongs_to_another_project(
    quiet: Home, tmp_path: Path, owner: WorkflowProcess
) -> None:
    root = make_project(tmp_path / "p")
    write_state_file(root / ".claude/worktrees/feature", owner, "active")
    quiet.run("add", root)
    with running_daemon(quiet):
        write_file(root / ".rune/echoes/reviewer/ward-findings.md", finding_text("Learnt"))

        until((root / ".rune/echoes/reviewer/MEMORY.md").exists, "the memory in spite of the worktree")


def test_a_workflow_that_starts_after_the_claim_stops_the_commit(
    tmp_path: Path, owner: WorkflowProcess, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_project(tmp_path / "p")
    write_file(root / ".rune/echoes/reviewer/ward-findings.md", finding_text("Learnt"))
    paths = paths_from_environment(home.environ)
    with open_services(paths, Settings(quiet_seconds=0), home.environ, time.time) as services:
        gatekeeper = services.read_context.project_gate
        first_answer = gatekeeper.check
        asked: list[float] = []

        def ask(place: Path, stores: Sequence[Store], now: float) -> Verdict:
            if asked:
                write_state_file(root, owner, "active")
            asked.append(now)
            return first_answer(place, stores, now)

        monkeypatch.setattr(gatekeeper, "check", ask)
        (store,) = layout.find_stores(root)
        reconcile(store, services.read_context.need_settings(root), services.queue, time.time())

        finished = services.worker.run_next()

    assert finished is not None
    assert isinstance(finished.outcome, JobDeferred)
    assert finished.deferred_by_gate
    assert len(asked) >= 2
    assert not (root / ".rune/echoes/reviewer/MEMORY.md").exists()
    assert (root / ".rune/echoes/reviewer/ward-findings.md").exists()


def test_a_workflow_can_be_announced_and_ended_by_any_tool(quiet: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    quiet.run("add", root)
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    with running_daemon(quiet):
        said = quiet.run("workflow", "begin", "refactoring", "--project", root, "--ttl", "60")
        assert "echod workflow end refactoring" in said
        write_file(memory.parent / "ward-findings.md", finding_text("Learnt"))
        until(lambda: waiting_findings(quiet) == {root: 1}, "the findings to wait")
        assert "refactoring" in quiet.run("gate", root)

        quiet.run("workflow", "end", "refactoring", "--project", root)

        until(memory.exists, "the memory after the end", seconds=QUIET_SECONDS + 12)


def test_an_announced_workflow_ends_with_its_process(quiet: Home, tmp_path: Path, owner: WorkflowProcess) -> None:
    root = make_project(tmp_path / "p")
    quiet.run("add", root)
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    with running_daemon(quiet):
        quiet.run("workflow", "begin", "refactoring", "--project", root, "--pid", owner.pid)
        write_file(memory.parent / "ward-findings.md", finding_text("Learnt"))
        until(lambda: waiting_findings(quiet) == {root: 1}, "the findings to wait")

        owner.kill()

        until(memory.exists, "the memory after the process", seconds=QUIET_SECONDS + 12)


def test_an_announced_workflow_ends_with_its_time(quiet: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    quiet.run("workflow", "begin", "refactoring", "--project", root, "--ttl", "0.02")

    until(lambda: quiet.json("gate", root)["state"] != "active", "the announced time to be over")
    assert not memory.exists()


def test_ending_a_workflow_that_does_not_run_is_reported(quiet: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")

    result = quiet.echod("workflow", "end", "refactoring", "--project", root)

    assert result.returncode == 0
    assert "No workflow 'refactoring' is running" in result.stdout


def _findings_wait(home: Home, expected: dict[Path, int]) -> bool:
    return waiting_findings(home) == expected

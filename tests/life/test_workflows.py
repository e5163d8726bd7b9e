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

from echod.daemon.wiring import furnish
from echod.jobs.outcome import Deferred
from echod.jobs.reconcile import reconcile
from echod.paths import from_environment
from echod.settings import Settings
from echod.store import layout
from echod.store.layout import Store
from echod.workflows import Verdict
from tests.support import Home, daemon, finding, project, until

QUIET_SECONDS = 1.0
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


@pytest.mark.parametrize("play", PLAYS, ids=lambda name: name.replace(" ", "-"))
def test_nothing_is_rewritten_during_the_play_and_all_is_done_after_it(
    quiet: Home, tmp_path: Path, owner: Owner, play: str
) -> None:
    root = project(tmp_path / "p")
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    memory.write_text("# Reviewer Echoes\n")
    os.utime(memory, (1_700_000_000, 1_700_000_000))
    quiet.done("add", root)
    *during, last = PLAYS[play]
    with daemon(quiet):
        for number, step in enumerate(during):
            step(root, owner)
            write(memory.parent / f"agent{number}-findings.md", finding(f"Learnt {number}"))
            until(lambda number=number: waits(quiet, number + 1), "the findings to wait for the workflow")  # type: ignore[misc]
            assert memory.stat().st_mtime == 1_700_000_000

        last(root, owner)
        until(
            lambda: all(f"Learnt {number}" in memory.read_text() for number in range(len(during))),
            "the memory after the workflow",
            seconds=QUIET_SECONDS + 12,
        )
        until(lambda: not list(memory.parent.glob("*-findings.md")), "the findings to be gone")


def waits(home: Home, findings: int) -> bool:
    """Whether the service has seen all findings and lets them wait for a running workflow."""
    (store,) = home.json("status")["stores"]
    jobs = home.json("status")["waiting"]
    return (
        store["gate"]["state"] == "active"
        and store["roles"][0]["findings"] == findings
        and any(job["state"] == "deferred" for job in jobs)
    )


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
        until(lambda: waits(quiet, 1), "the findings to wait")
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
        until(lambda: waits(quiet, 1), "the findings to wait")

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

"""Step through a commit, with a foreign writer at any step and a kill at any step.

Without kills everything runs in this process. With kills the service runs in a child that asks at each step. The
writers run in the parent, because a kill of the service does not kill them.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from echod.store.commit.context import CommitStep
from tests.torture.entries import count_entries, entry, named_entries, version_of
from tests.torture.service import StressProject, in_child, reconcile_once
from tests.torture.writers import Action, Schedule, Writer, waits_for_lease

_UNDER_LEASE = {CommitStep.LEASED, CommitStep.EXCHANGED, CommitStep.LINKED}
_ORIGINAL = ("w0", "w1", "w2", "p000", "p001", "p002", "p003", "p004", "p005")
_FINDINGS = ("f1", "f2")
_KEEP = 5


@dataclass
class Tally:
    """The results of a series of schedules."""

    schedules: int = 0
    kills: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, problems: Iterable[str]) -> None:
        self.schedules += 1
        for problem in problems:
            self.wrong[problem] += 1
            self.examples.setdefault(problem, name)

    def row(self, title: str) -> str:
        """Return the results as a line of a table."""
        return f"{title:44}{self.schedules:7} schedules{self.wrong.total():7} wrong{self.kills:7} kills"


ProjectFactory = Callable[[Path], StressProject]
"""Creates a project with the tests' own service, or one with the product's jobs."""


def create_project(base: Path, make: ProjectFactory = StressProject) -> StressProject:
    """Create a role with nine entries, five of them to be archived bit by bit, and one findings file."""
    shutil.rmtree(base, ignore_errors=True)
    project = make(base)
    project.create(*map(entry, _ORIGINAL))
    (project.role.path / "a-findings.md").write_bytes(b"".join(map(entry, _FINDINGS)))
    return project


def _split(step: CommitStep, due: list[Action]) -> tuple[list[Action], list[Action]]:
    """Split actions into those to do now, and those that must wait because their open waits for the lease."""
    if step not in _UNDER_LEASE:
        return due, []
    first = next((i for i, action in enumerate(due) if waits_for_lease(action)), len(due))
    return due[:first], due[first:]


@dataclass
class _ScheduleRunner:
    """Calls the actions of a schedule when their step is passed."""

    schedule: Schedule
    step: int = 0
    passed: list[CommitStep] = field(default_factory=list)

    def __call__(self, step: CommitStep, /) -> None:
        self.passed.append(step)
        due = self.schedule.pop(self.step, [])
        self.step += 1
        now, later = _split(step, due)
        if later:
            self.schedule[self.step] = later + self.schedule.get(self.step, [])
        for action in now:
            action()

    def take_remaining(self) -> list[Action]:
        return [action for at in sorted(self.schedule) for action in self.schedule.pop(at)]


def count_steps(base: Path, make: ProjectFactory = StressProject) -> int:
    """Count the steps that three turns of the service pass without any other writer."""
    project, conductor = create_project(base, make), _ScheduleRunner({})
    for _ in range(3):
        reconcile_once(project, project.engine(trace=conductor), keep=_KEEP)
    return len(conductor.passed)


def run(
    base: Path, script: Callable[[StressProject], tuple[Writer, Schedule]], make: ProjectFactory = StressProject
) -> list[str]:
    """Run one schedule without kills and return the problems in the end."""
    project = create_project(base, make)
    writer, schedule = script(project)
    conductor = _ScheduleRunner(schedule)
    engine = project.engine(trace=conductor)
    for _ in range(3):
        reconcile_once(project, engine, keep=_KEEP)
    for action in conductor.take_remaining():
        action()
        reconcile_once(project, engine, keep=_KEEP)
    run_until_idle(project)
    return find_problems(project, [writer])


def run_killed(
    base: Path, schedule: Schedule, writers: list[Writer], kills: set[int], make: ProjectFactory = StressProject
) -> tuple[int, list[str]]:
    """Run one schedule, killing the service at the given steps (counted over all its lives).

    Returns the number of kills and the problems in the end.
    """
    project = make(base)
    step = done = 0
    for _ in range(2 * len(kills) + 6):
        step, killed = _run_service_until_killed(project, schedule, kills, step)
        done += killed
        if not killed and not schedule:
            break
        if not killed:
            at = min(schedule)
            for action in schedule.pop(at):
                action()
            step = max(step, at + 1)
    for at in sorted(schedule):
        for action in schedule.pop(at):
            action()
    run_until_idle(project)
    return done, find_problems(project, writers)


def _run_service_until_killed(
    project: StressProject, schedule: Schedule, kills: set[int], step: int
) -> tuple[int, bool]:
    """Run one life of the service, until three turns are done or it is killed."""
    step_reader, step_writer = os.pipe()
    answer_reader, answer_writer = os.pipe()

    def wait_for_permission(passed: CommitStep, /) -> None:
        os.write(step_writer, passed.value.encode().ljust(24))
        if os.read(answer_reader, 1) != b"c":
            os.kill(os.getpid(), signal.SIGKILL)

    def serve() -> None:
        os.close(step_reader)
        os.close(answer_writer)
        engine = project.engine(trace=wait_for_permission)
        engine.recover([project.store])
        for _ in range(3):
            reconcile_once(project, engine, keep=_KEEP)

    child = in_child(serve)
    os.close(step_writer)
    os.close(answer_reader)
    waiting: list[Action] = []
    killed = False
    while passed := os.read(step_reader, 24):
        now, waiting = _split(CommitStep(passed.decode().strip()), waiting + schedule.pop(step, []))
        for action in now:
            action()
        killed = step in kills
        step += 1
        os.write(answer_writer, b"k" if killed else b"c")
    os.close(step_reader)
    os.close(answer_writer)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"the service ended with {status}"
    for action in waiting:
        action()
    return step, killed


def run_until_idle(project: StressProject) -> None:
    """Run turns without any other writer, until there is nothing left to do."""
    engine = project.engine()
    engine.recover([project.store])
    for _ in range(12):
        if not reconcile_once(project, engine, keep=_KEEP) and not project.staged_files():
            return


def find_problems(project: StressProject, writers: list[Writer]) -> list[str]:
    """Return the problems: entries lost, doubled in the memory, out of date, torn, or written by no writer."""
    expected = {*_ORIGINAL, *_FINDINGS, *(w.name for w in writers if w.acknowledged)}
    memory, archive = count_entries([project.memory]), count_entries(project.archives())
    waiting = count_entries(project.findings())
    found = []
    for name in sorted(expected):
        if not memory[name] and not archive[name]:
            found.append(f"left in findings: {name}" if waiting[name] else f"lost: {name}")
        if memory[name] > 1:
            found.append(f"twice: {name}")
    present = dict(named_entries(project.memory.read_bytes()))
    found += [f"outdated: {w.name}" for w in writers if version_of(present.get(w.name, "")) not in (-1, w.version)]
    found += [f"foreign: {name}" for name in memory if name not in expected]
    found += [f"torn: {name}" for name in project.torn_entries()]
    return found + project.find_damage()

"""Step by step through a commit, with a foreign writer at every step and a kill wherever one is wanted.

Without kills everything runs in this process. With kills the service runs in a child that asks at each step; the
writers live in the parent, because a kill of the service is no kill of theirs.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from echod.store.commit.steps import Step
from tests.torture.entries import census, entry, is_whole, named, version_of
from tests.torture.service import Arena, in_child, turn
from tests.torture.writers import Action, Schedule, Writer, waits_for_lease

_UNDER_LEASE = {Step.LEASED, Step.EXCHANGED, Step.LINKED}
_ORIGINAL = ("w0", "w1", "w2", "p000", "p001", "p002", "p003", "p004", "p005")
_FINDINGS = ("f1", "f2")
_KEEP = 5


@dataclass
class Tally:
    """What a series of schedules came to."""

    schedules: int = 0
    kills: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, problems: Iterable[str]) -> None:
        self.schedules += 1
        for problem in problems:
            self.wrong[problem] += 1
            self.examples.setdefault(problem, name)


Make = Callable[[Path], Arena]
"""What is at work in an arena: the tests' own service, or the product's jobs."""


def fresh(base: Path, make: Make = Arena) -> Arena:
    """A role with nine entries, five of them to be archived bit by bit, and one findings file."""
    shutil.rmtree(base, ignore_errors=True)
    arena = make(base)
    arena.found(*map(entry, _ORIGINAL))
    (arena.role.path / "a-findings.md").write_bytes(b"".join(map(entry, _FINDINGS)))
    return arena


def _split(step: Step, due: list[Action]) -> tuple[list[Action], list[Action]]:
    """What a writer does now, and what it must wait with because its open waits for the lease."""
    if step not in _UNDER_LEASE:
        return due, []
    first = next((i for i, action in enumerate(due) if waits_for_lease(action)), len(due))
    return due[:first], due[first:]


@dataclass
class _Conductor:
    """Calls the actions of a schedule when their step is passed."""

    schedule: Schedule
    step: int = 0
    passed: list[Step] = field(default_factory=list)

    def __call__(self, step: Step, /) -> None:
        self.passed.append(step)
        due = self.schedule.pop(self.step, [])
        self.step += 1
        now, later = _split(step, due)
        if later:
            self.schedule[self.step] = later + self.schedule.get(self.step, [])
        for action in now:
            action()

    def rest(self) -> list[Action]:
        return [action for at in sorted(self.schedule) for action in self.schedule.pop(at)]


def count_steps(base: Path, make: Make = Arena) -> int:
    """How many steps three turns of the service pass when nobody disturbs them."""
    arena, conductor = fresh(base, make), _Conductor({})
    for _ in range(3):
        turn(arena, arena.engine(trace=conductor), keep=_KEEP)
    return len(conductor.passed)


def run(base: Path, script: Callable[[Arena], tuple[Writer, Schedule]], make: Make = Arena) -> list[str]:
    """One schedule without kills; what is wrong in the end."""
    arena = fresh(base, make)
    writer, schedule = script(arena)
    conductor = _Conductor(schedule)
    engine = arena.engine(trace=conductor)
    for _ in range(3):
        turn(arena, engine, keep=_KEEP)
    for action in conductor.rest():
        action()
        turn(arena, engine, keep=_KEEP)
    calm(arena)
    return problems(arena, [writer])


def run_killed(
    base: Path, schedule: Schedule, writers: list[Writer], kills: set[int], make: Make = Arena
) -> tuple[int, list[str]]:
    """One schedule, the service killed at the given steps (counted over all its lives); kills done, what is wrong."""
    arena = make(base)
    step = done = 0
    for _ in range(2 * len(kills) + 6):
        step, killed = _live(arena, schedule, kills, step)
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
    calm(arena)
    return done, problems(arena, writers)


def _live(arena: Arena, schedule: Schedule, kills: set[int], step: int) -> tuple[int, bool]:
    """One life of the service: until three turns are done, or it is killed."""
    asks, asked = os.pipe()
    answers, answered = os.pipe()

    def ask(passed: Step, /) -> None:
        os.write(asked, passed.value.encode().ljust(24))
        if os.read(answers, 1) != b"c":
            os.kill(os.getpid(), signal.SIGKILL)

    def serve() -> None:
        os.close(asks)
        os.close(answered)
        engine = arena.engine(trace=ask)
        engine.recover([arena.store])
        for _ in range(3):
            turn(arena, engine, keep=_KEEP)

    child = in_child(serve)
    os.close(asked)
    os.close(answers)
    waiting: list[Action] = []
    killed = False
    while passed := os.read(asks, 24):
        now, waiting = _split(Step(passed.decode().strip()), waiting + schedule.pop(step, []))
        for action in now:
            action()
        killed = step in kills
        step += 1
        os.write(answered, b"k" if killed else b"c")
    os.close(asks)
    os.close(answered)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), f"the service ended with {status}"
    for action in waiting:
        action()
    return step, killed


def calm(arena: Arena) -> None:
    """Turns without anybody else, until there is nothing left to do."""
    engine = arena.engine()
    engine.recover([arena.store])
    for _ in range(12):
        if not turn(arena, engine, keep=_KEEP) and not arena.hidden():
            return


def problems(arena: Arena, writers: list[Writer]) -> list[str]:
    """What is not as it should be: lost, twice in the memory, out of date, half an entry, something nobody wrote."""
    wanted = {*_ORIGINAL, *_FINDINGS, *(w.name for w in writers if w.acknowledged)}
    memory, archive = census([arena.memory]), census(arena.archives())
    waiting = census(arena.findings())
    found = []
    for name in sorted(wanted):
        if not memory[name] and not archive[name]:
            found.append(f"left in findings: {name}" if waiting[name] else f"lost: {name}")
        if memory[name] > 1:
            found.append(f"twice: {name}")
    standing = dict(named(arena.memory.read_bytes()))
    found += [f"outdated: {w.name}" for w in writers if version_of(standing.get(w.name, "")) not in (-1, w.version)]
    found += [f"foreign: {name}" for name in memory if name not in wanted]
    found += [f"torn: {name}" for name, text in named(arena.memory.read_bytes()) if not is_whole(text)]
    return found + arena.faults()

"""Run series of schedules and storms, all of them or a sample. Results are counted, not judged."""

from __future__ import annotations

import random
from pathlib import Path

from tests.torture.explorer import ProjectFactory, Tally, count_steps, create_project, run, run_killed
from tests.torture.service import StressProject
from tests.torture.storm import StormResult
from tests.torture.writers import KINDS, Schedule, Writer, actions, all_schedules, random_revisions

SEED = 20261127
TARGETS = ("memory", "findings")
ALL = tuple(f"{target}-{kind}" for target in TARGETS for kind in KINDS)

MIXES = {
    "appenders": "aaaagg",
    "held descriptors": "hhaagg",
    "renaming replacers": "rrggg",
    "truncating editors": "eeggg",
    "shell appends": "ssrgg",
    "all of them": "aarreeggg",
}
"""The writers of a storm, by the letters of `storm`."""


def is_harmless(outcome: StormResult) -> bool:
    """Return whether nothing was lost, doubled or torn, no edit was lost, and the service did not crash."""
    return not any(
        (
            outcome.lost,
            outcome.lost_findings,
            outcome.twice,
            outcome.torn,
            outcome.edits_lost,
            outcome.crashes,
        )
    )


def explore(base: Path, target: str, kind: str, sample: int | None, make: ProjectFactory = StressProject) -> Tally:
    """Run one writer at every step of a commit, or at a sample of them."""
    steps, tally = count_steps(base, make), Tally()
    every = list(all_schedules(kind, _target(base, target), steps))
    chosen = every if sample is None or sample >= len(every) else random.Random(SEED).sample(every, sample)
    for name, writer, schedule in chosen:
        tally.add(name, run(base, lambda _arena, w=writer, s=schedule: (w, s), make))  # type: ignore[misc]
    return tally


def explore_revisions(base: Path, runs: int, seed: int) -> Tally:
    """Run random schedules of a writer that updates its entry, and of programs that keep files open."""
    rnd, tally, steps = random.Random(seed), Tally(), count_steps(base)
    for number in range(runs):
        writer, schedule = random_revisions(_target(base, "memory"), steps, rnd)
        steps_by_name = {at: [action.__name__ for action in due] for at, due in sorted(schedule.items())}
        tally.add(f"seed {seed} run {number}: {steps_by_name}", run(base, lambda _arena, w=writer, s=schedule: (w, s)))  # type: ignore[misc]
    return tally


def explore_killed(
    base: Path, kinds: tuple[str, ...], runs: int, seed: int, make: ProjectFactory = StressProject
) -> Tally:
    """Run random schedules of one or two writers in turn, with up to three kills, some of them in recovery."""
    rnd, tally, steps = random.Random(seed), Tally(), count_steps(base, make)
    for number in range(runs):
        create_project(base, make)
        schedule: Schedule = {}
        writers = []
        for turn, kind in enumerate(rnd.sample(kinds, rnd.randint(1, 2))):
            target, way = kind.split("-")
            writer = Writer(_target(base, target), f"x{turn}")
            writers.append(writer)
            steps_of = actions(way, writer)
            start = turn * steps
            for at, action in zip(sorted(rnd.randrange(steps) for _ in steps_of), steps_of, strict=True):
                schedule.setdefault(start + at, []).append(action)
        kills = {rnd.randrange(steps + 8) for _ in range(rnd.randint(1, 3))}
        name = f"seed {seed} run {number}: {[w.path.name for w in writers]} kills {sorted(kills)}"
        done, wrong = run_killed(base, schedule, writers, kills, make)
        tally.kills += done
        tally.add(name, wrong)
    return tally


def kill_at_every_step(base: Path, make: ProjectFactory = StressProject) -> Tally:
    """Run two turns of the service, killed once at each of their steps, without any other writer."""
    tally = Tally()
    for step in range(count_steps(base, make)):
        create_project(base, make)
        done, wrong = run_killed(base, {}, [], {step}, make)
        tally.kills += done
        tally.add(f"killed at {step}", wrong)
    return tally


def _target(base: Path, target: str) -> Path:
    role = StressProject(base).role
    return role.memory if target == "memory" else role.path / "a-findings.md"

"""Kills, writers without locks, failing system calls: a sample of `make torture`, with the same harness.

Entries lost, duplicated or torn are counted; none is the bar for echod. For comparison, the same storm runs
without any service, and with plain write-and-rename.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.bench.figures import Cells, Figures, Row, Table, none
from tests.bench.workspace import Workspace
from tests.torture.campaigns import ALL, MIXES, SEED, TARGETS, explore, explore_killed, kill_at_every_step
from tests.torture.explorer import Tally
from tests.torture.storm import Service, Storm, StormResult, engine_service, naive_service, run_storm
from tests.torture.writers import KINDS

_SAMPLE = 30
_KILLED_SCHEDULES = 60
_STORM_SECONDS = 4.0
_ALL_WRITERS = "all of them"


def measure(space: Workspace) -> Figures:
    """Schedules in memory, since their steps are what counts; storms on the disk."""
    killed = kill_at_every_step(space.memory / "steps")
    random = explore_killed(space.memory / "random", ALL, _KILLED_SCHEDULES, SEED)
    schedules = {
        f"{kind}, to {target}": explore(space.memory / "one", target, kind, _SAMPLE)
        for target in TARGETS
        for kind in KINDS
    }
    storms = list(_run_storms(space.disk / "arena"))
    with_echod = [storm.outcome for storm in storms if storm.service is engine_service]
    total = sum(with_echod, start=StormResult())
    kills = killed.kills + random.kills + total.kills
    schedules |= {"killed at every step of two turns": killed, "one or two writers, killed at random": random}
    wrong = sum(sum(tally.wrong.values()) for tally in schedules.values())
    return Figures(
        (
            Row("kill -9 and foreign writers at steps of a commit: what was wrong", wrong, "", bar=none()),
            Row("storms with kills: entries lost", total.lost + total.lost_findings, "", bar=none()),
            Row("storms with kills: entries duplicated", total.twice, "", bar=none()),
            Row("storms with kills: entries torn, edits lost, crashes", _count_broken(total), "", bar=none()),
            Row("entries acknowledged in storms with echod", total.acknowledged, ""),
            Row("kills", kills, ""),
        ),
        tables=(_schedules_table(schedules), _storms_table(storms)),
    )


@dataclass(frozen=True, slots=True)
class _StormResult:
    name: str
    service: Service | None
    outcome: StormResult


def _run_storms(base: Path) -> list[_StormResult]:
    everybody = Storm(MIXES[_ALL_WRITERS], _STORM_SECONDS, seed=1)
    results = [
        _StormResult("nobody", None, run_storm(base, everybody, None)),
        _StormResult("plain rename", naive_service, run_storm(base, everybody, naive_service)),
        _StormResult("echod", engine_service, run_storm(base, everybody, engine_service)),
    ]
    for name, mix in MIXES.items():
        storm = Storm(mix, _STORM_SECONDS, seed=2, kills=True)
        results.append(_StormResult(f"echod, killed: {name}", engine_service, run_storm(base, storm, engine_service)))
    return results


def _count_broken(outcome: StormResult) -> int:
    return outcome.torn + outcome.edits_lost + outcome.crashes


def _schedules_table(tallies: dict[str, Tally]) -> Table:
    rows = tuple((name, one.schedules, one.kills, sum(one.wrong.values())) for name, one in tallies.items())
    examples = tuple(f"{what}: {name}" for one in tallies.values() for what, name in one.examples.items())
    return Table("Schedules: a writer, a kill, or both, at a step of a commit", _SCHEDULES, rows, examples)


_SCHEDULES = ("writer", "schedules", "kills", "wrong")


def _storms_table(storms: list[_StormResult]) -> Table:
    columns = [name for name in StormResult.__dataclass_fields__ if name != "names"]
    header = ("storm", *(name.replace("_", " ") for name in columns))
    rows: list[Cells] = [(one.name, *(int(getattr(one.outcome, name)) for name in columns)) for one in storms]
    title = f"Storms of {_STORM_SECONDS:g} s: {_ALL_WRITERS} but where named"
    return Table(title, header, tuple(rows))

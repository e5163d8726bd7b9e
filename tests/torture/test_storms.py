"""Real programs write the same files without a lock of echod's, which is killed at random: nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.campaigns import MIXES, is_harmless
from tests.torture.storm import Storm, StormResult, engine_service, naive_service, run_storm, table


@pytest.mark.slow
@pytest.mark.parametrize("mix", ["held descriptors", "all of them"])
def test_a_storm_with_kills_loses_nothing(tmp_path: Path, mix: str) -> None:
    outcome = run_storm(tmp_path / "arena", Storm(MIXES[mix], 4, seed=len(mix), kills=True), engine_service)

    print(table({mix: outcome}))
    assert outcome.acknowledged > 100
    assert outcome.kills > 5
    assert is_harmless(outcome), outcome.names


@pytest.mark.slow
def test_the_harness_itself_loses_nothing_and_shows_what_renaming_loses(tmp_path: Path) -> None:
    storm = Storm(MIXES["all of them"], 2, seed=1)

    alone = run_storm(tmp_path / "alone", storm, None)
    naive = run_storm(tmp_path / "naive", storm, naive_service)

    assert (alone.lost, alone.lost_findings, alone.torn, alone.twice) == (0, 0, 0, 0)
    assert naive.lost + naive.lost_findings > 0


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kills", [False, True], ids=["no kills", "kills"])
@pytest.mark.parametrize("mix", MIXES)
def test_long_storms(tmp_path: Path, mix: str, kills: bool) -> None:
    storms = [Storm(MIXES[mix], 10, seed=seed, kills=kills) for seed in range(4 + kills)]

    outcome = sum((run_storm(tmp_path / "arena", storm, engine_service) for storm in storms), start=StormResult())

    title = f"echod{', kills' * kills}: {mix}"
    print(f"\n{table({title: outcome})}")
    assert is_harmless(outcome), outcome.names


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mix", MIXES)
def test_the_harness_loses_nothing_in_long_storms(tmp_path: Path, mix: str) -> None:
    storm = Storm(MIXES[mix], 10, seed=1)

    alone = run_storm(tmp_path / "arena", storm, None)
    naive = run_storm(tmp_path / "arena", storm, naive_service)

    print(f"\n{table({f'no service: {mix}': alone, f'rename: {mix}': naive})}")
    assert is_harmless(alone), alone.names


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_writers_that_overwrite_each_other_are_reported_and_not_judged(tmp_path: Path) -> None:
    everyone = Storm(MIXES["all of them"], 10, seed=1, serialised=False)

    outcomes = {
        "free for all, no service": run_storm(tmp_path / "arena", everyone, None),
        "free for all, echod": run_storm(tmp_path / "arena", everyone, engine_service),
    }

    print(f"\n{table(outcomes)}")
    assert all(outcome.crashes == 0 for outcome in outcomes.values())

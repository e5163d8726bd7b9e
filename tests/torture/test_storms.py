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
@pytest.mark.timeout(7200)
def test_fifty_storms(tmp_path: Path) -> None:
    rows: dict[str, StormResult] = {}
    for name, mix in MIXES.items():
        rows[f"no service: {name}"] = run_storm(tmp_path / "arena", Storm(mix, 10, seed=1), None)
        rows[f"rename: {name}"] = run_storm(tmp_path / "arena", Storm(mix, 10, seed=1), naive_service)
        for kills in (False, True):
            storms = [Storm(mix, 10, seed=seed, kills=kills) for seed in range(4 + kills)]
            results = [run_storm(tmp_path / "arena", storm, engine_service) for storm in storms]
            rows[f"echod{', kills' * kills}: {name}"] = sum(results, start=StormResult())
    everyone = Storm(MIXES["all of them"], 10, seed=1, serialised=False)
    free = {
        "free for all, no service": run_storm(tmp_path / "arena", everyone, None),
        "free for all, echod": run_storm(tmp_path / "arena", everyone, engine_service),
    }
    print(f"\n{table(rows)}\n\nReported, not judged (the writers overwrite each other):\n{table(free)}")

    assert all(is_harmless(outcome) for name, outcome in rows.items() if not name.startswith("rename")), rows

from __future__ import annotations

import json
import pkgutil
import re
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis.strategies import integers

from echod import contract
from echod.contract import codec, commands, status
from echod.contract.codec import to_json
from echod.contract.status import (
    DaemonInfo,
    GateReason,
    GateReport,
    Health,
    JobKindInfo,
    QueueInfo,
    RoleInfo,
    Severity,
    StatusReport,
    StatusWarning,
    StoreInfo,
    WaitingJob,
    status_from_json,
)

ROOT = Path(__file__).parents[1]

FULL = StatusReport(
    health=Health.DEGRADED,
    warnings=(StatusWarning("job-failed", Severity.WARNING, 3.0, "It was given up.", "Retry it."),),
    daemon=DaemonInfo(7, "0.1.0", 12.5),
    queue=QueueInfo(queued=1, oldest_due_seconds=2.0),
    jobs={"consolidate": JobKindInfo(1.0, None)},
    waiting=(WaitingJob(1, "consolidate", "/p/.rune/echoes", "reviewer", "queued", "1 findings file", 4.0),),
    stores=(
        StoreInfo(
            "/p/.rune/echoes",
            (RoleInfo("reviewer", None, 150, {"etched": 1}, 2, "unreadable"),),
            GateReport("active", (GateReason("tmp/x", "runs", until=9.0, pid=7),), 9.0),
        ),
    ),
)


@pytest.mark.parametrize("report", [FULL, StatusReport(Health.HEALTHY)], ids=["full", "empty"])
def test_a_status_is_the_same_after_a_round_trip_through_json(report: StatusReport) -> None:
    assert status_from_json(to_json(report)) == report


def test_every_time_is_printed_as_iso_8601_in_utc() -> None:
    status_values = json.loads(to_json(FULL))
    job = commands.JobInfo(1, "prune", "/p", "r", "done", 0, "", "", 1_764_322_200.25, 1.0, None, 2.0)

    values = json.loads(to_json(commands.JobsReport((job,))))["jobs"][0]

    assert values["due"] == "2025-11-28T09:30:00.250Z"
    assert (values["started_at"], values["finished_at"]) == (None, "1970-01-01T00:00:02.000Z")
    assert status_values["warnings"][0]["since"] == "1970-01-01T00:00:03.000Z"
    assert status_values["jobs"]["consolidate"] == {"last_success": "1970-01-01T00:00:01.000Z", "last_failure": None}
    assert status_values["stores"][0]["gate"]["reasons"][0]["until"] == "1970-01-01T00:00:09.000Z"
    assert status_values["daemon"]["uptime_seconds"] == 12.5


def test_a_field_named_as_a_moment_is_a_timestamp() -> None:
    """A new field must not bring Unix seconds back: a number that is not a time has a unit or a known name."""
    numbers = {"score", "confidence", "importance", "relevance", "recency"}
    kinds = [kind for module in (status, commands) for kind in vars(module).values() if hasattr(kind, "__match_args__")]
    plain = {
        name
        for kind in kinds
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if float in (hint, *get_args(hint)) and hint != codec.Timestamp
    }

    assert len(kinds) > 40
    assert {name for name in plain if not name.endswith("_seconds")} == numbers


@pytest.mark.parametrize("moment", [float("inf"), float("-inf"), 1e18], ids=["inf", "minus-inf", "far"])
def test_a_moment_beyond_the_calendar_is_still_a_time(moment: float) -> None:
    printed = json.loads(to_json(GateReport("active", until=moment)))["until"]

    assert datetime.fromisoformat(printed).year in (1, 9999)


@given(integers(min_value=0, max_value=4_000_000_000_000))
def test_a_time_of_whole_milliseconds_survives_json(milliseconds: int) -> None:
    report = replace(FULL, jobs={"prune": JobKindInfo(milliseconds / 1000)})

    assert status_from_json(to_json(report)) == report


def test_the_schema_is_the_first_key() -> None:
    assert next(iter(json.loads(to_json(FULL)))) == "schema"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"schema": 99}', '{"schema": 1}', '{"schema": 1, "health": "odd"}']
)
def test_text_that_is_not_a_status_of_this_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        status_from_json(text)


def test_newer_fields_are_ignored() -> None:
    values = json.loads(to_json(FULL)) | {"new": 1}
    values["queue"]["new"] = 1

    assert status_from_json(json.dumps(values)) == FULL


def test_every_field_and_warning_code_is_documented() -> None:
    page = (ROOT / "docs/json.md").read_text()
    modules = [import_module(f"echod.contract.{module.name}") for module in pkgutil.iter_modules(contract.__path__)]
    found = [kind for module in (status, *modules) for kind in vars(module).values()]
    kinds = [kind for kind in found if isinstance(kind, type) and hasattr(kind, "__match_args__")]
    fields = {name for kind in kinds for name in kind.__match_args__}
    sources = (ROOT / "echod").rglob("*.py")
    codes = {code for file in sources for code in re.findall(r'StatusWarning\(\s*"([a-z-]+)"', file.read_text())}

    assert len(kinds) > 40
    assert [name for name in sorted(fields) if f"`{name}`" not in page and f"`{name}[]`" not in page] == []
    assert len(codes) > 8
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []

from __future__ import annotations

import json
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

from echod import contract
from echod.contract import status
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
    to_json,
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
    commands = [import_module(f"echod.contract.{module.name}") for module in pkgutil.iter_modules(contract.__path__)]
    found = [kind for module in (status, *commands) for kind in vars(module).values()]
    kinds = [kind for kind in found if isinstance(kind, type) and hasattr(kind, "__match_args__")]
    fields = {name for kind in kinds for name in kind.__match_args__}
    sources = (ROOT / "echod").rglob("*.py")
    codes = {code for file in sources for code in re.findall(r'StatusWarning\(\s*"([a-z-]+)"', file.read_text())}

    assert len(kinds) > 40
    assert [name for name in sorted(fields) if f"`{name}`" not in page and f"`{name}[]`" not in page] == []
    assert len(codes) > 8
    assert [code for code in sorted(codes) if f"`{code}`" not in page] == []

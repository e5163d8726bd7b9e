from __future__ import annotations

import time
from pathlib import Path

import pytest

from echod.cli import output
from echod.cli.commands import status
from echod.contract.status import (
    DaemonInfo,
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
)

LONG_PATH = "/home/somebody/" + "/".join(["a-directory-with-a-long-name"] * 6) + "/.rune/echoes"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (200_000, "2 days"),
    ],
)
def test_a_duration_is_readable(seconds: float, said: str) -> None:
    assert output.format_duration(seconds) == said


def test_a_long_path_shows_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))

    assert output.fit_path("/home/me/src/p", 20) == "~/src/p"
    assert output.fit_path("/srv/projects/alpha/beta", 12) == "...lpha/beta"
    assert len(output.fit_path(LONG_PATH, 40)) == 40
    assert output.fit_path(LONG_PATH, 40).endswith("/.rune/echoes")


def test_a_status_with_long_names_fits_into_eighty_columns() -> None:
    now = time.time()
    role = "a-role-with-quite-a-long-name"
    report = StatusReport(
        health=Health.DEGRADED,
        warnings=(StatusWarning("job-failed", Severity.WARNING, now, "It was given up. " * 9, "Try again. " * 9),),
        daemon=DaemonInfo(4711, "0.1.0", 80_000),
        queue=QueueInfo(1, 2, 3, 4, 5.0),
        jobs={"consolidate": JobKindInfo(now - 5, None)},
        waiting=(WaitingJob(1, "consolidate", LONG_PATH, role, "deferred", "a workflow runs " * 12, now + 60),),
        stores=(
            StoreInfo(
                LONG_PATH,
                (RoleInfo(role, 1000, 150, {"etched": 100, "inscribed": 100, "observations": 1000}, 7),),
                GateReport("active"),
                2,
                3,
            ),
        ),
    )

    screen = status.render_status(report, now)

    assert max(map(len, screen.splitlines())) <= 80

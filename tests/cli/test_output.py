from __future__ import annotations

import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from echod.cli import output, status_screen
from echod.cli.context import colorize
from echod.cli.targets import ask_choice
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


@pytest.mark.parametrize("detail", status_screen.Detail)
def test_a_status_with_long_names_fits_into_eighty_columns(detail: status_screen.Detail) -> None:
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

    screen = status_screen.render_status(report, now, detail)

    assert max(map(len, screen.splitlines())) <= 80


def report_of(*stores: StoreInfo, health: Health = Health.HEALTHY, warnings: tuple[StatusWarning, ...] = ()) -> str:
    report = StatusReport(health, warnings, DaemonInfo(4711, "0.1.0", 80_000), stores=stores)
    return status_screen.render_status(report, time.time())


def test_a_calm_project_is_one_line_and_its_roles_are_not_listed() -> None:
    roles = tuple(RoleInfo(f"role-{number}", 20, 150, {"etched": 1}) for number in range(20))

    screen = report_of(StoreInfo("/srv/shop/.rune/echoes", roles, GateReport("idle")))

    assert "  /srv/shop  idle" in screen.splitlines()
    assert "role-" not in screen
    assert "1 project, 20 roles, 20 entries." in screen


def test_a_project_that_needs_attention_comes_before_the_calm_ones() -> None:
    calm = [StoreInfo(f"/srv/calm-{number}/.rune/echoes", (), GateReport("idle")) for number in range(30)]
    over = StoreInfo("/srv/shop/.rune/echoes", (RoleInfo("planner", 151, 150),), GateReport("active"), review=2)

    screen = report_of(*calm, over)

    first = screen.partition("\nProjects\n")[2].splitlines()[0]
    assert first.split() == [
        "/srv/shop",
        "busy",
        "planner",
        "151/150",
        "lines",
        "OVER;",
        "2",
        "to",
        "review",
        "(echod",
        "review)",
    ]
    assert "... and 19 more stores, all calm" in screen
    assert len(screen.splitlines()) < 24


def test_a_healthy_service_has_no_red_mark() -> None:
    notice = StatusWarning("memory-too-long", Severity.NOTICE, time.time(), "It is long.", "echod prune")

    screen = report_of(warnings=(notice,))

    assert "\n- It is long. [memory-too-long" in screen
    assert "\x1b[31m" not in colorize(screen)


def test_warnings_are_counted_and_the_worst_comes_first() -> None:
    now = time.time()
    kinds = (Severity.NOTICE, Severity.WARNING, Severity.ERROR, *[Severity.NOTICE] * 9)
    warnings = tuple(StatusWarning(f"w{number}", kind, now, "Text.", "") for number, kind in enumerate(kinds))

    screen = report_of(health=Health.DEGRADED, warnings=warnings)

    assert "1 error, 1 warning, 10 notices" in screen
    assert screen.index("! Text. [w2") < screen.index("! Text. [w1") < screen.index("- Text. [w0")
    assert "... and 7 more: echod status -v" in screen


def test_the_home_directory_in_a_text_is_short_unless_it_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))

    text = "/home/me/src/p: run echod prune /home/me/src/p, or '/home/me/src/a b', not /home/meg/x"

    assert output.shorten_paths(text) == "~/src/p: run echod prune ~/src/p, or '/home/me/src/a b', not /home/meg/x"


def test_a_wrong_answer_to_a_choice_is_asked_again_with_the_reason() -> None:
    @click.command()
    def choose() -> None:
        click.echo(f"chosen: {ask_choice('Domain', ['backend', 'testing'])}")

    said = CliRunner().invoke(choose, input="cooking\n\n3\ntesting\n").output

    assert "not 'cooking'" in said
    assert "not '3'" in said
    assert said.count("Domain (1-2, Ctrl-C to cancel): ") == 4
    assert said.endswith("chosen: 1\n")

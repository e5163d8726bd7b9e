"""The service detects new findings, waits for workflows, survives being killed, and stops at SIGTERM."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support import NO_PRUNING, Daemon, Home, finding_text, make_project, running_daemon, start_daemon, until

ROLES = ("reviewer", "workers")


def remaining_findings(*roots: Path) -> list[Path]:
    return [path for root in roots for path in root.glob(".rune/echoes/*/*-findings.md")]


def count_titles(root: Path) -> Counter[str]:
    """Return how often each entry is in the memory files of a project."""
    found: Counter[str] = Counter()
    for memory in root.glob(".rune/echoes/*/MEMORY.md"):
        found.update(re.findall(r"(?m)^### \[[0-9-]+\] Pattern: (.+)$", memory.read_text()))
    return found


def warnings_by_code(home: Home) -> dict[str, dict[str, Any]]:
    """Return the warnings of the status by code."""
    return {warning["code"]: warning for warning in home.json("status")["warnings"]}


def test_findings_of_two_projects_are_consolidated_while_the_service_runs(home: Home, tmp_path: Path) -> None:
    one, other = (
        make_project(tmp_path / "one", *ROLES),
        make_project(tmp_path / "other", *ROLES, store=".claude/echoes"),
    )
    home.run("add", one)
    with running_daemon(home):
        home.run("add", other)
        for number in range(5):
            (one / f".rune/echoes/reviewer/a{number}-findings.md").write_text(finding_text(f"One {number}"))
            (other / f".claude/echoes/workers/b{number}-findings.md").write_text(finding_text(f"Other {number}"))

        until(lambda: count_titles(one).total() == 5, "the first project's findings in its memory")
        until(
            lambda: (
                (other / ".claude/echoes/workers/MEMORY.md").exists()
                and (other / ".claude/echoes/workers/MEMORY.md").read_text().count("### [") == 5
            ),
            "the second project's findings in its memory",
        )
        assert set(count_titles(one).values()) == {1}
        until(lambda: not remaining_findings(one, other), "no findings file to be left")


def test_a_store_that_appears_later_is_maintained(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    with running_daemon(home):
        late = root / ".claude/echoes/planner"
        late.mkdir(parents=True)
        (late / "ward-findings.md").write_text(finding_text("Seen late"))

        until((late / "MEMORY.md").exists, "the late store's memory")


def test_a_project_that_vanishes_is_reported_kept_and_picked_up_again(home: Home, tmp_path: Path) -> None:
    # A renamed directory gives no event. The periodic reconcile finds it.
    home = Home(home.root, {"ECHOD_RECONCILE_MINUTES": "0.03"})
    root = make_project(tmp_path / "p")
    home.run("add", root)
    with running_daemon(home):
        root.rename(tmp_path / "unmounted")
        until(lambda: "project-missing" in warnings_by_code(home), "the project to be reported as missing")
        assert home.json("projects")["projects"][0]["missing"]

        (tmp_path / "unmounted/.rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Back again"))
        (tmp_path / "unmounted").rename(root)

        until(lambda: count_titles(root).total() == 1, "the findings of the project that came back")
        until(lambda: "project-missing" not in warnings_by_code(home), "the warning to be gone")


def test_while_a_workflow_runs_nothing_is_written_until_its_end(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (root / "tmp").mkdir()
    marker = root / "tmp/.rune-review-abc.json"
    state = {"status": "active", "owner_pid": str(os.getpid())}
    marker.write_text(json.dumps(state))
    home.run("add", root)
    with running_daemon(home):
        (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
        until(lambda: home.json("status")["queue"]["deferred"] == 1, "the job to be deferred")
        report = home.json("status")
        assert report["stores"][0]["gate"]["state"] == "active"
        assert "abc" in report["waiting"][0]["reason"]
        assert not (root / ".rune/echoes/reviewer/MEMORY.md").exists()

        marker.write_text(json.dumps({**state, "status": "completed"}))

        until(lambda: count_titles(root).total() == 1, "the memory to be written after the workflow", seconds=10)


def test_a_second_service_is_a_friendly_message_and_no_error(home: Home) -> None:
    with running_daemon(home) as first:
        second = home.echod("run")

    assert second.returncode == 0
    assert f"already running (process {first.process.pid}" in second.stdout


def test_it_stops_at_sigterm_and_removes_its_heartbeat(home: Home) -> None:
    running = start_daemon(home)

    began = time.monotonic()
    assert running.stop() == 0
    assert time.monotonic() - began < 10

    assert home.echod("status").returncode == 3
    assert not (home.root / "run/heartbeat.json").exists()


def test_settings_are_read_again_at_sighup_and_wrong_ones_change_nothing(home: Home, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("")
    named = Home(home.root, {"ECHOD_CONFIG": str(config)})
    root = make_project(tmp_path / "p")
    named.run("add", root)
    with running_daemon(named) as running:
        config.write_text("quiet_secnds = 3")
        running.process.send_signal(1)
        until(lambda: "settings_not_reloaded" in running.log.read_text(), "the wrong settings to be refused")
        until(lambda: "settings-not-reloaded" in warnings_by_code(named), "the status to say so")
        said = warnings_by_code(named)["settings-not-reloaded"]
        assert "quiet_secnds" in said["text"]
        assert str(running.process.pid) in said["fix"]
        assert named.json("status")["health"] == "degraded"

        config.write_text('mode = "report"')
        running.process.send_signal(1)
        until(lambda: "settings_reloaded" in running.log.read_text(), "the settings to be read again")
        until(lambda: "settings-not-reloaded" not in warnings_by_code(named), "the warning to go")

        (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))

        until(lambda: "would do: 1 added" in named.run("jobs"), "the report instead of the deed")
        assert not (root / ".rune/echoes/reviewer/MEMORY.md").exists()


def test_losing_the_database_stops_the_service_with_a_clear_last_line(home: Home) -> None:
    with running_daemon(home) as running:
        for file in home.state.glob("echod.db*"):
            file.unlink()

        assert running.process.wait(30) == 1
        assert "deleted or replaced" in running.log.read_text().splitlines()[-1]


def test_losing_the_lock_stops_the_service(home: Home) -> None:
    with running_daemon(home) as running:
        (home.state / "daemon.lock").unlink()
        (home.state / "daemon.lock").touch()

        assert running.process.wait(30) == 1
        assert "lock file was replaced" in running.log.read_text()


def test_once_leaves_the_work_to_a_running_service(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    with running_daemon(home):
        (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))

        said = home.run("run", "--once", root)

    assert "The running service does the work." in said
    assert "1 added" in said
    assert count_titles(root).total() == 1


def test_no_memory_text_reaches_the_log(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    with running_daemon(home) as running:
        (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Xylophone", "Zanzibar is warm."))
        until(lambda: count_titles(root).total() == 1, "the memory to be written")
        running.stop()

    assert "Xylophone" not in running.log.read_text()
    assert "Zanzibar" not in running.log.read_text()


class FindingsStorm:
    """Agents that write findings without pause. Each file is written aside and renamed, as careful agents do."""

    def __init__(self, roots: list[Path], seed: int) -> None:
        self.roots = roots
        self.random = random.Random(seed)
        self.acknowledged: list[tuple[Path, str]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write_findings)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _write_findings(self) -> None:
        number = 0
        while not self._stop.is_set():
            root, role = self.random.choice(self.roots), self.random.choice(ROLES)
            title = f"Storm {number}"
            target = root / f".rune/echoes/{role}/agent{number % 7}-findings.md"
            stage = target.with_name(f".{target.name}.{number}")
            stage.write_text(finding_text(title))
            try:
                os.link(stage, target)  # never over an existing findings file
            except FileExistsError:
                self._stop.wait(0.002)
            else:
                self.acknowledged.append((root, title))
                number += 1
            finally:
                stage.unlink()
            self._stop.wait(0.004)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.torture)])
def test_killed_during_a_storm_of_findings_it_loses_and_duplicates_nothing(
    home: Home, tmp_path: Path, seed: int
) -> None:
    home = Home(home.root, NO_PRUNING)
    roots = [make_project(tmp_path / name, *ROLES) for name in ("one", "other")]
    for root in roots:
        home.run("add", root)
    moments = random.Random(seed)
    running: Daemon | None = None
    try:
        with FindingsStorm(roots, seed) as storm:
            for _ in range(6):
                running = start_daemon(home)
                enough = len(storm.acknowledged) + moments.randint(5, 60)
                until(lambda enough=enough: len(storm.acknowledged) >= enough, "the storm to continue")  # type: ignore[misc]
                running.kill()
        running = start_daemon(home)
        until(lambda: not remaining_findings(*roots), "all findings to be consolidated")
        until(lambda: home.json("status")["queue"]["queued"] == 0, "the queue to be empty")
    finally:
        if running is not None and running.process.poll() is None:
            running.stop()

    for root in roots:
        expected = {title for where, title in storm.acknowledged if where == root}
        found = count_titles(root)
        assert expected - set(found) == set()
        assert {title: times for title, times in found.items() if times > 1} == {}
    assert len(storm.acknowledged) > 30


def test_a_job_in_flight_is_finished_before_the_service_ends(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    running = start_daemon(home)
    for number in range(40):
        (root / f".rune/echoes/reviewer/a{number}-findings.md").write_text(finding_text(f"Many {number}"))

    assert running.stop() == 0

    left = {path.read_text() for path in remaining_findings(root)}
    assert count_titles(root).total() + len(left) == 40
    assert not list(root.glob(".rune/echoes/.echod/.MEMORY.md.echod-*"))[1:]  # at most the displaced one


def test_the_package_runs_from_elsewhere(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "echod", "--version"],
        cwd="/",
        env=home.environ,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith("echod ")

"""`echod status` and `echod gate` for a service that waits, was killed, or never ran."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from echod.paths import Paths
from echod.state.database import Database
from echod.state.jobs import JobKind, JobState, Need, ProcessIdentity
from echod.state.queue import JobQueue
from tests.support import Home, finding_text, make_project, running_daemon, start_daemon, until


def warnings_with_code(home: Home, code: str) -> list[dict[str, Any]]:
    return [warning for warning in home.json("status")["warnings"] if warning["code"] == code]


def unix_time(printed: str) -> float:
    return datetime.fromisoformat(printed).timestamp()


@pytest.mark.parametrize("everything", [True, False], ids=["everything", "one-project"])
def test_a_pause_is_reported_though_nothing_is_due(home: Home, tmp_path: Path, everything: bool) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    before = time.time()
    home.run("pause", "--all" if everything else root)

    (said,) = warnings_with_code(home, "paused")
    assert said["text"].startswith("Everything is paused" if everything else f"{root} is paused")
    assert said["fix"].endswith("echod resume --all" if everything else f"echod resume {root}")
    assert said["severity"] == "notice"
    assert before - 1 <= unix_time(said["since"]) <= time.time()
    assert home.json("status")["stores"][0]["paused"] is True
    assert "paused" in home.echod("status").stdout


def test_a_running_service_reports_a_pause_and_its_end_at_once(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    with running_daemon(home):
        until(lambda: home.echod("status").returncode == 0, "the service to be well")
        home.run("pause", root)
        until(lambda: len(warnings_with_code(home, "paused")) == 1, "the status to tell the pause")
        assert home.echod("status").returncode == 0

        home.run("resume", root)

        until(lambda: not warnings_with_code(home, "paused"), "the status to forget the pause")


def test_a_paused_project_does_not_read_as_if_it_would_be_written(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    assert "may be written now" in home.run("gate", root)
    home.run("pause", "--all")
    home.run("pause", root)

    said = " ".join(home.run("gate", root).split())
    assert "may be written" not in said
    assert "paused: Everything is paused. Resume with: echod resume --all" in said
    assert f"echod resume {root}" in said
    report = home.json("gate", root)
    assert report["state"] == "idle"
    assert [(reason["marker"], reason["holds"]) for reason in report["reasons"]] == [("paused", False)] * 2


def test_an_unreadable_list_of_pauses_does_not_count_as_empty(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    (home.state / "paused").mkdir()

    (said,) = warnings_with_code(home, "pauses-unreadable")

    assert str(home.state / "paused") in said["text"]
    assert home.json("status")["stores"][0]["paused"] is None


def test_a_killed_service_is_stopped_since_its_last_sign_of_life(home: Home) -> None:
    running = start_daemon(home)
    running.kill()
    # Not the time of the file, which the kernel takes from its last tick, earlier than the clock that programs read.
    beat = json.loads((home.root / "run/heartbeat.json").read_text())["beat_at"]

    (said,) = warnings_with_code(home, "daemon-stopped")

    assert unix_time(said["since"]) == pytest.approx(beat, abs=1)
    assert unix_time(said["since"]) <= beat
    assert f"process {running.process.pid} did not stop cleanly" in said["text"]
    assert said["fix"].startswith("Start it with: echod ")
    assert home.echod("status").returncode == 3


def test_a_service_that_ended_cleanly_is_stopped_since_something_it_did(home: Home) -> None:
    before = time.time()
    running = start_daemon(home)
    running.stop()
    after = time.time()

    (said,) = warnings_with_code(home, "daemon-stopped")

    assert before - 1 <= unix_time(said["since"]) <= after
    assert said["text"] == "The daemon is not running."
    assert home.echod("status").returncode == 3


def test_a_job_whose_process_ended_is_not_reported_as_running(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    claim_job(home, root, ProcessIdentity(os.getpid(), psutil.Process().create_time() - 100))

    report = home.json("status")

    assert (report["queue"]["running"], report["queue"]["queued"]) == (0, 1)
    assert report["waiting"][0]["state"] == "queued"
    assert "interrupted" in report["waiting"][0]["reason"]
    assert [job["state"] for job in home.json("jobs")["jobs"]] == ["interrupted"]
    assert " interrupted " in home.run("jobs")


def test_a_job_whose_process_lives_runs_also_without_a_service(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    claim_job(home, root, ProcessIdentity(os.getpid(), psutil.Process().create_time()))

    report = home.json("status")

    assert (report["queue"]["running"], report["queue"]["queued"]) == (1, 0)
    assert report["waiting"][0]["state"] == "running"
    assert [job["state"] for job in home.json("jobs")["jobs"]] == ["running"]


def test_an_interrupted_command_of_the_user_does_not_delay_anything(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    claim_job(home, root, ProcessIdentity(os.getpid(), psutil.Process().create_time() - 100), JobKind.SCRUB)

    report = home.json("status")

    assert (report["queue"]["running"], report["queue"]["queued"]) == (0, 0)
    assert report["waiting"] == []


def claim_job(home: Home, root: Path, worker: ProcessIdentity, kind: JobKind = JobKind.CONSOLIDATE) -> None:
    """Write a job as a process leaves it that claimed it and still runs or died."""
    paths = Paths(home.state, home.root / "run", home.root / "config.toml")
    with Database.open(paths.database) as database:
        queue = JobQueue(database, worker=worker, rng=random.Random(1))
        need = Need(kind, str(root / ".rune/echoes"), "reviewer", "f", "1 findings file", 1.0)
        queue.put(need, time.time())
        job = queue.claim(time.time())
        assert job is not None
        assert job.state is JobState.RUNNING


@pytest.fixture
def as_a_user() -> tuple[str, ...]:
    """Run a command without the right to read everything."""
    before = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    if before and shutil.which("setpriv") is None:
        pytest.skip("setpriv is needed to give up the right to read everything")
    return before


def write_old_findings(root: Path) -> None:
    """Write findings that have been complete for long."""
    findings = root / ".rune/echoes/reviewer/agent-findings.md"
    findings.write_text(finding_text("Fresh"))
    os.utime(findings, (time.time() - 3600, time.time() - 3600))


def undo_consolidation(home: Home, root: Path) -> Path:
    """Consolidate findings and undo that. Return the project's store."""
    write_old_findings(root)
    home.run("add", root)
    home.run("run", "--once", root)
    home.run("undo", "1", "--yes")
    assert warnings_with_code(home, "findings-restored")
    return root / ".rune/echoes"


def test_an_unreadable_store_with_findings_does_not_hide_other_stores(
    home: Home, tmp_path: Path, as_a_user: tuple[str, ...]
) -> None:
    store = undo_consolidation(home, make_project(tmp_path / "p"))
    home.run("add", make_project(tmp_path / "q"))
    store.chmod(0)
    try:
        report = json.loads(home.echod("status", "--json", before=as_a_user).stdout)
    finally:
        store.chmod(0o700)

    problems = {Path(told["path"]).parents[1].name: told["problem"] for told in report["stores"]}
    assert "cannot be listed" in problems["p"]
    assert problems["q"] is None


def test_a_damaged_record_of_an_undo_does_not_stop_other_work(home: Home, tmp_path: Path) -> None:
    undo_consolidation(home, make_project(tmp_path / "p"))
    other = make_project(tmp_path / "q")
    home.run("add", other)
    max((home.state / "journal").rglob("records/*.json")).write_bytes(b"{")

    assert len(home.json("status")["stores"]) == 2
    with running_daemon(home):
        write_old_findings(other)
        memory = other / ".rune/echoes/reviewer/MEMORY.md"
        until(lambda: memory.exists() and "Fresh" in memory.read_text(), "the other project's findings to be folded in")
        assert len(home.json("status")["stores"]) == 2


def test_adding_a_store_that_cannot_be_listed_is_reported(
    home: Home, tmp_path: Path, as_a_user: tuple[str, ...]
) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/echoes").chmod(0o300)
    try:
        result = home.echod("add", root, before=as_a_user)
    finally:
        (root / ".rune/echoes").chmod(0o700)

    assert result.returncode == 0, result.stderr
    assert "cannot be listed" in " ".join(result.stdout.split())
    assert "0 roles" not in result.stdout

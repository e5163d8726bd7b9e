"""Processes that use the queue are killed at random moments, and nothing they were promised is broken."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from echod.state.database import Database
from echod.state.jobs import Job, JobState, QueueView

ROOT = Path(__file__).parents[2]
TIMEOUT_SECONDS = 60.0


class KillTest:
    """Workers on one queue, each with its notes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / "echod.db"
        self.worker_count = 0

    def start(self, *arguments: str) -> tuple[int, subprocess.Popen[bytes]]:
        self.worker_count += 1
        notes = self.directory / f"{self.worker_count:04}.notes"
        command = [sys.executable, "-m", "tests.state.queue_worker", str(self.database), str(notes)]
        return self.worker_count, subprocess.Popen([*command, str(self.worker_count), *arguments], cwd=ROOT)

    def notes(self) -> list[list[str]]:
        return [
            line.split() for file in sorted(self.directory.glob("*.notes")) for line in file.read_text().splitlines()
        ]

    def wait_for(self, number: int) -> None:
        """Until that worker is at work."""
        file = self.directory / f"{number:04}.notes"
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not (file.exists() and file.stat().st_size):
            assert time.monotonic() < deadline
            time.sleep(0.005)


def run_with_kills(directory: Path, kills: int, seed: int) -> KillTest:
    """Two workers at a time; whichever comes next in turn is killed at a random moment of its work and replaced."""
    rng = random.Random(seed)
    kill_test = KillTest(directory)
    workers = dict([kill_test.start(), kill_test.start()])
    try:
        for _ in range(kills):
            victim = min(workers)
            kill_test.wait_for(victim)
            time.sleep(rng.random() * 0.08)  # the moment is what varies, not what is waited for
            worker = workers.pop(victim)
            worker.send_signal(signal.SIGKILL)
            assert worker.wait(TIMEOUT_SECONDS) == -signal.SIGKILL
            workers.update([kill_test.start()])
    finally:
        kill_all(*workers.values())
    _, last = kill_test.start("drain")
    try:
        assert last.wait(TIMEOUT_SECONDS) == 0
    finally:
        kill_all(last)
    return kill_test


def kill_all(*workers: subprocess.Popen[bytes]) -> None:
    for worker in workers:
        worker.kill()
        worker.wait(TIMEOUT_SECONDS)


def check_promises(kill_test: KillTest) -> Counter[str]:
    """Assert that everything acknowledged was kept, and return the number of events by kind."""
    notes = kill_test.notes()
    assert [note for note in notes if note[0] == "twice"] == []
    with Database.open(kill_test.database) as database:
        with database.read_transaction() as link:
            assert link.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        jobs = {job.id: job for job in QueueView(database).list_jobs(limit=1_000_000)}
    assert {job.state for job in jobs.values()} == {JobState.DONE}
    for what, number, *times in notes:
        if what == "queued":
            successor = final_successor(jobs[int(number)], jobs)
            assert successor.started_at is not None
            assert successor.started_at >= float(times[0]), f"job {number} was never run after it was asked for"
    finished = Counter(number for what, number, *_ in notes if what == "finished")
    assert set(finished.values()) <= {1}, "a finished job ran again"
    return Counter(what for what, *_ in notes)


def final_successor(job: Job, jobs: dict[int, Job]) -> Job:
    while job.merged_into is not None:
        assert job.merged_into > job.id
        job = jobs[job.merged_into]
    return job


def test_killed_at_random_no_job_is_lost_and_none_runs_twice_at_once(tmp_path: Path) -> None:
    happened = check_promises(run_with_kills(tmp_path, kills=40, seed=1))

    assert min(happened["queued"], happened["finished"], happened["recovered"]) > 0


@pytest.mark.torture
@pytest.mark.timeout(900)
def test_killed_two_hundred_times_no_job_is_lost_and_none_runs_twice_at_once(tmp_path: Path) -> None:
    happened = check_promises(run_with_kills(tmp_path, kills=200, seed=2))

    print(f"\n200 kills: {dict(happened)}")
    assert min(happened["queued"], happened["finished"], happened["recovered"]) > 0

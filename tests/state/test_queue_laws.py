"""The queue against a model of a page: whatever happens in whatever order, no job is lost and none runs twice."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from echod.state.database import Database
from echod.state.job import PENDING, Job, JobKind, JobState, Need, ProcessIdentity
from echod.state.job_rows import QueueView
from echod.state.queue import JobQueue
from tests.state.examples import NOW, PAUSE

MAX_ATTEMPTS = 3

Key = tuple[str, str]
keys = st.tuples(st.sampled_from(["/a", "/b"]), st.sampled_from(["r", "s"]))
inputs = st.sampled_from(["x", "y", "z"])
workers = st.sampled_from([0, 1])


class QueueMachine(RuleBasedStateMachine):
    """`waiting`, `dead` and `settled` map a key to its input; `running` a worker to its job."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.database = Database.open(Path(self.directory.name) / "echod.db")
        self.view = QueueView(self.database)
        self.now = NOW
        self.born = 0
        self.highest = 0
        self.workers = [self._new_worker(), self._new_worker()]
        self.waiting: dict[Key, str] = {}
        self.dead: dict[Key, str] = {}
        self.settled: dict[Key, str] = {}
        self.running: dict[int, Job] = {}

    def teardown(self) -> None:
        self.database.close()
        self.directory.cleanup()

    def _new_worker(self) -> ProcessIdentity:
        self.born += 1
        return ProcessIdentity(1000 + self.born % 2, NOW + self.born)  # process numbers are used again

    def _queue(self, worker: int = 0) -> JobQueue:
        return JobQueue(
            self.database,
            worker=self.workers[worker],
            rng=random.Random(self.born),
            max_attempts=MAX_ATTEMPTS,
            backoff=PAUSE,
        )

    def _runs(self, key: Key) -> Job | None:
        return next((job for job in self.running.values() if key_of(job) == key), None)

    def _number(self, number: int, *, new: bool) -> None:
        assert (number > self.highest) == new
        self.highest = max(self.highest, number)

    # What a store calls for

    @rule(key=keys, fingerprint=inputs, delay=st.sampled_from([-5.0, 20.0]))
    def put(self, key: Key, fingerprint: str, delay: float) -> None:
        number = self._queue().put(self._need(key, fingerprint, delay), self.now)

        active = self._runs(key)
        if self.settled.get(key) == fingerprint:
            assert number is None
            self.waiting.pop(key, None)
        elif key not in self.waiting and active and active.fingerprint == fingerprint:
            assert number is None
        else:
            assert number is not None
            self._number(number, new=key not in self.waiting)
            self.waiting[key] = fingerprint

    @rule(key=keys, fingerprint=inputs)
    def insist(self, key: Key, fingerprint: str) -> None:
        number = self._queue().insist(self._need(key, fingerprint, 0), self.now)

        self.settled.pop(key, None)
        active = self._runs(key)
        if key not in self.waiting and active and active.fingerprint == fingerprint:
            assert number == active.id
        else:
            self._number(number, new=key not in self.waiting)
            self.waiting[key] = fingerprint

    @rule(store=st.sampled_from(["/a", "/b"]), kept=st.sampled_from(["r", "s"]))
    def withdraw(self, store: str, kept: str) -> None:
        self._queue().withdraw(store, self.now, "gone", keep={(JobKind.CONSOLIDATE, kept)})

        for held in (self.waiting, self.dead):
            for key in [key for key in held if key[0] == store and key[1] != kept]:
                del held[key]

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.dead)))
        (row,) = [job for job in self.view.jobs({JobState.DEAD}) if key_of(job) == key]

        number = self._queue().retry(row.id, self.now)

        if key in self.waiting:
            assert number != row.id
        else:
            assert number == row.id
            self.waiting[key] = self.dead.pop(key)
            self.settled.pop(key, None)

    # Running one

    @rule(worker=workers)
    def claim(self, worker: int) -> None:
        open_now = {
            key_of(job) for job in self.view.jobs(PENDING) if job.due <= self.now and not self._runs(key_of(job))
        }

        job = self._queue(worker).claim(self.now)

        if worker in self.running or not open_now:
            assert job is None
            return
        assert job is not None
        assert key_of(job) in open_now
        assert 1 <= job.attempts <= MAX_ATTEMPTS
        assert self.waiting.pop(key_of(job)) == job.fingerprint
        self.running[worker] = job

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        worker, job = self._end_one(data)
        self._queue(worker).finish(job, "done", self.now)

        self.dead.pop(key_of(job), None)
        if self.waiting.get(key_of(job)) != job.fingerprint:
            self.settled[key_of(job)] = job.fingerprint

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        worker, job = self._end_one(data)
        after = self._queue(worker).fail(job, "it broke", self.now)

        assert (after.state is JobState.DEAD) == (job.attempts >= MAX_ATTEMPTS)
        self._back(job, dies=job.attempts >= MAX_ATTEMPTS)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        worker, job = self._end_one(data)
        self._queue(worker).give_up(job, "nothing helps", self.now)

        self._back(job, dies=True)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), seconds=st.sampled_from([0.0, 60.0, 7200.0]))
    def defer(self, data: st.DataObject, seconds: float) -> None:
        worker, job = self._end_one(data)
        self._queue(worker).defer(job, "a workflow runs", self.now + seconds, self.now)

        self._back(job, dies=False)

    @rule(worker=workers)
    def die_and_recover(self, worker: int) -> None:
        self.workers[worker] = self._new_worker()
        lost = self.running.pop(worker, None)

        recovered = self._queue(worker).recover(lambda identity: identity in self.workers, self.now)

        assert [job.id for job in recovered] == ([lost.id] if lost else [])
        if lost:
            self._back(lost, dies=lost.attempts >= MAX_ATTEMPTS)

    # Time and the gate

    @rule(seconds=st.sampled_from([1.0, 60.0, 86_400.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(store=st.sampled_from(["/a", "/b"]))
    def wake(self, store: str) -> None:
        self._queue().wake_deferred(store, self.now)

        assert all(job.store != store for job in self.view.jobs({JobState.DEFERRED}))

    @rule()
    def forget(self) -> None:
        self._queue().delete_finished(self.now)

    @invariant()
    def nothing_is_lost_and_nothing_is_there_twice(self) -> None:
        rows = self.view.jobs(set(JobState) - {JobState.DONE}, limit=1000)

        assert sorted((key_of(job), job.fingerprint) for job in rows if job.state in PENDING) == sorted(
            self.waiting.items()
        )
        assert sorted((key_of(job), job.fingerprint) for job in rows if job.state is JobState.DEAD) == sorted(
            self.dead.items()
        )
        assert sorted((job.id, job.worker) for job in rows if job.state is JobState.RUNNING) == sorted(
            (job.id, self.workers[worker]) for worker, job in self.running.items()
        )

    @invariant()
    def every_waiting_job_is_due_within_reason(self) -> None:
        latest = self.view.jobs(PENDING)
        assert all(job.due == max(job.ready, job.rests_until) for job in latest)
        assert all(job.attempts < MAX_ATTEMPTS for job in latest)

    def _need(self, key: Key, fingerprint: str, delay: float) -> Need:
        return Need(JobKind.CONSOLIDATE, *key, fingerprint, f"input {fingerprint}", self.now + delay)

    def _end_one(self, data: st.DataObject) -> tuple[int, Job]:
        worker = data.draw(st.sampled_from(sorted(self.running)))
        return worker, self.running.pop(worker)

    def _back(self, job: Job, *, dies: bool) -> None:
        key = key_of(job)
        if not dies:
            self.waiting.setdefault(key, job.fingerprint)
            return
        self.dead[key] = self.settled[key] = job.fingerprint
        if self.waiting.get(key) == job.fingerprint:
            del self.waiting[key]


def key_of(job: Job) -> Key:
    return (job.store, job.role)


def run(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        QueueMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_no_order_of_events_loses_a_job() -> None:
    run(examples=50, steps=40)


@pytest.mark.fuzz
@pytest.mark.timeout(900)
def test_no_order_of_events_loses_a_job_however_long_one_looks() -> None:
    run(examples=1000, steps=80)

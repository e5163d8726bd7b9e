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
from echod.state.jobs import PENDING_STATES, Job, JobKind, JobState, Need, ProcessIdentity, QueueView
from echod.state.queue import JobQueue
from tests.state.examples import BACKOFF, NOW

MAX_ATTEMPTS = 3

Key = tuple[str, str]
keys = st.tuples(st.sampled_from(["/a", "/b"]), st.sampled_from(["r", "s"]))
inputs = st.sampled_from(["x", "y", "z"])
workers = st.sampled_from([0, 1])


class QueueMachine(RuleBasedStateMachine):
    """`pending_inputs`, `dead_inputs` and `done_inputs` map a key to its input; `running_jobs` a worker to its job."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.database = Database.open(Path(self.directory.name) / "echod.db")
        self.view = QueueView(self.database)
        self.now = NOW
        self.worker_count = 0
        self.highest_id = 0
        self.workers = [self._new_worker(), self._new_worker()]
        self.pending_inputs: dict[Key, str] = {}
        self.dead_inputs: dict[Key, str] = {}
        self.done_inputs: dict[Key, str] = {}
        self.running_jobs: dict[int, Job] = {}

    def teardown(self) -> None:
        self.database.close()
        self.directory.cleanup()

    def _new_worker(self) -> ProcessIdentity:
        self.worker_count += 1
        return ProcessIdentity(1000 + self.worker_count % 2, NOW + self.worker_count)  # process numbers are used again

    def _queue(self, worker: int = 0) -> JobQueue:
        return JobQueue(
            self.database,
            worker=self.workers[worker],
            rng=random.Random(self.worker_count),
            max_attempts=MAX_ATTEMPTS,
            backoff=BACKOFF,
        )

    def _running_job(self, key: Key) -> Job | None:
        return next((job for job in self.running_jobs.values() if key_of(job) == key), None)

    def _check_id(self, number: int, *, new: bool) -> None:
        assert (number > self.highest_id) == new
        self.highest_id = max(self.highest_id, number)

    # What a store calls for

    @rule(key=keys, fingerprint=inputs, delay=st.sampled_from([-5.0, 20.0]))
    def put(self, key: Key, fingerprint: str, delay: float) -> None:
        number = self._queue().put(self._need(key, fingerprint, delay), self.now)

        active = self._running_job(key)
        if self.done_inputs.get(key) == fingerprint:
            assert number is None
            self.pending_inputs.pop(key, None)
        elif key not in self.pending_inputs and active and active.fingerprint == fingerprint:
            assert number is None
        else:
            assert number is not None
            self._check_id(number, new=key not in self.pending_inputs)
            self.pending_inputs[key] = fingerprint

    @rule(key=keys, fingerprint=inputs)
    def put_forced(self, key: Key, fingerprint: str) -> None:
        number = self._queue().put_forced(self._need(key, fingerprint, 0), self.now)

        self.done_inputs.pop(key, None)
        active = self._running_job(key)
        if key not in self.pending_inputs and active and active.fingerprint == fingerprint:
            assert number == active.id
        else:
            self._check_id(number, new=key not in self.pending_inputs)
            self.pending_inputs[key] = fingerprint

    @rule(store=st.sampled_from(["/a", "/b"]), kept=st.sampled_from(["r", "s"]))
    def withdraw(self, store: str, kept: str) -> None:
        self._queue().withdraw(store, self.now, "gone", keep={(JobKind.CONSOLIDATE, kept)})

        for held in (self.pending_inputs, self.dead_inputs):
            for key in [key for key in held if key[0] == store and key[1] != kept]:
                del held[key]

    @precondition(lambda self: self.dead_inputs)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.dead_inputs)))
        (row,) = [job for job in self.view.list_jobs({JobState.DEAD}) if key_of(job) == key]

        number = self._queue().retry(row.id, self.now)

        if key in self.pending_inputs:
            assert number != row.id
        else:
            assert number == row.id
            self.pending_inputs[key] = self.dead_inputs.pop(key)
            self.done_inputs.pop(key, None)

    # Running one

    @rule(worker=workers)
    def claim(self, worker: int) -> None:
        open_now = {
            key_of(job)
            for job in self.view.list_jobs(PENDING_STATES)
            if job.due <= self.now and not self._running_job(key_of(job))
        }

        job = self._queue(worker).claim(self.now)

        if worker in self.running_jobs or not open_now:
            assert job is None
            return
        assert job is not None
        assert key_of(job) in open_now
        assert 1 <= job.attempts <= MAX_ATTEMPTS
        assert self.pending_inputs.pop(key_of(job)) == job.fingerprint
        self.running_jobs[worker] = job

    @precondition(lambda self: self.running_jobs)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        worker, job = self._end_one(data)
        self._queue(worker).finish(job, "done", self.now)

        self.dead_inputs.pop(key_of(job), None)
        if self.pending_inputs.get(key_of(job)) != job.fingerprint:
            self.done_inputs[key_of(job)] = job.fingerprint

    @precondition(lambda self: self.running_jobs)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        worker, job = self._end_one(data)
        after = self._queue(worker).fail(job, "it broke", self.now)

        assert (after.state is JobState.DEAD) == (job.attempts >= MAX_ATTEMPTS)
        self._requeue(job, dies=job.attempts >= MAX_ATTEMPTS)

    @precondition(lambda self: self.running_jobs)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        worker, job = self._end_one(data)
        self._queue(worker).give_up(job, "nothing helps", self.now)

        self._requeue(job, dies=True)

    @precondition(lambda self: self.running_jobs)
    @rule(data=st.data(), seconds=st.sampled_from([0.0, 60.0, 7200.0]))
    def defer(self, data: st.DataObject, seconds: float) -> None:
        worker, job = self._end_one(data)
        self._queue(worker).defer(job, "a workflow runs", self.now + seconds, self.now)

        self._requeue(job, dies=False)

    @rule(worker=workers)
    def die_and_recover(self, worker: int) -> None:
        self.workers[worker] = self._new_worker()
        lost = self.running_jobs.pop(worker, None)

        recovered = self._queue(worker).recover(lambda identity: identity in self.workers, self.now)

        assert [job.id for job in recovered] == ([lost.id] if lost else [])
        if lost:
            self._requeue(lost, dies=lost.attempts >= MAX_ATTEMPTS)

    # Time and the gate

    @rule(seconds=st.sampled_from([1.0, 60.0, 86_400.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(store=st.sampled_from(["/a", "/b"]))
    def wake(self, store: str) -> None:
        self._queue().wake_deferred(store, self.now)

        assert all(job.store != store for job in self.view.list_jobs({JobState.DEFERRED}))

    @rule()
    def delete_finished(self) -> None:
        self._queue().delete_finished(self.now)

    @invariant()
    def nothing_is_lost_and_nothing_is_there_twice(self) -> None:
        rows = self.view.list_jobs(set(JobState) - {JobState.DONE}, limit=1000)

        assert sorted((key_of(job), job.fingerprint) for job in rows if job.state in PENDING_STATES) == sorted(
            self.pending_inputs.items()
        )
        assert sorted((key_of(job), job.fingerprint) for job in rows if job.state is JobState.DEAD) == sorted(
            self.dead_inputs.items()
        )
        assert sorted((job.id, job.worker) for job in rows if job.state is JobState.RUNNING) == sorted(
            (job.id, self.workers[worker]) for worker, job in self.running_jobs.items()
        )

    @invariant()
    def every_waiting_job_is_due_within_reason(self) -> None:
        latest = self.view.list_jobs(PENDING_STATES)
        assert all(job.due == max(job.ready_at, job.not_before) for job in latest)
        assert all(job.attempts < MAX_ATTEMPTS for job in latest)

    def _need(self, key: Key, fingerprint: str, delay: float) -> Need:
        return Need(JobKind.CONSOLIDATE, *key, fingerprint, f"input {fingerprint}", self.now + delay)

    def _end_one(self, data: st.DataObject) -> tuple[int, Job]:
        worker = data.draw(st.sampled_from(sorted(self.running_jobs)))
        return worker, self.running_jobs.pop(worker)

    def _requeue(self, job: Job, *, dies: bool) -> None:
        key = key_of(job)
        if not dies:
            self.pending_inputs.setdefault(key, job.fingerprint)
            return
        self.dead_inputs[key] = self.done_inputs[key] = job.fingerprint
        if self.pending_inputs.get(key) == job.fingerprint:
            del self.pending_inputs[key]


def key_of(job: Job) -> Key:
    return (job.store, job.role)


def run_machine(examples: int, steps: int) -> None:
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
    run_machine(examples=50, steps=40)


@pytest.mark.fuzz
@pytest.mark.timeout(900)
def test_no_order_of_events_loses_a_job_however_long_one_looks() -> None:
    run_machine(examples=1000, steps=80)

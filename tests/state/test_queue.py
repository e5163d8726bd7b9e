"""The moves of a job, one rule a test."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from echod.errors import UsageError
from echod.state.database import Database
from echod.state.jobs import Backoff, Job, JobKind, JobState, QueueView
from echod.state.queue import MAX_DEFERRAL_SECONDS, STALLED_RETRY_SECONDS, JobNotOwnedError, JobQueue
from tests.state.examples import BACKOFF, NOW, OTHER_PROCESS, THIS_PROCESS, claim_job, make_queue, need

OTHER_STORE = "/q/.claude/echoes"
MUCH_LATER = NOW + 10 * BACKOFF.cap_seconds


DAY = 86_400.0


def exhaust_attempts(queue: JobQueue, now: float = NOW) -> Job:
    """Fail the job of need() until it is dead."""
    job = claim_job(queue, now)
    while (job := queue.fail(job, "it broke", now)).state is not JobState.DEAD:
        now = job.due
        job = claim_job(queue, now)
    return job


class TestPut:
    def test_a_need_becomes_one_queued_job(self, queue: JobQueue, view: QueueView) -> None:
        number = queue.put(need(due=NOW + 5), NOW)

        assert number is not None
        job = view.get(number)
        assert job is not None
        assert (job.state, job.reason, job.due, job.queued_at) == (JobState.QUEUED, "input a", NOW + 5, NOW)
        assert (job.attempts, job.started_at, job.finished_at, job.worker) == (0, None, None, None)

    def test_a_newer_cause_takes_over_the_waiting_job(self, queue: JobQueue, view: QueueView) -> None:
        first = queue.put(need("a"), NOW)

        second = queue.put(need("b", due=NOW + 9), NOW + 1)

        assert second == first
        (job,) = view.list_jobs()
        assert (job.fingerprint, job.reason, job.due) == ("b", "input b", NOW + 9)

    def test_kinds_stores_and_roles_wait_separately(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need(), NOW)
        queue.put(need(role="workers"), NOW)
        queue.put(need(store=OTHER_STORE), NOW)

        assert view.count_by_state()[JobState.QUEUED] == 3

    def test_what_was_done_is_not_queued_again_for_the_same_input(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        queue.finish(claim_job(queue), "nothing to do", NOW)

        assert queue.put(need("a"), NOW + 1) is None
        assert view.count_by_state()[JobState.QUEUED] == 0
        assert queue.put(need("b"), NOW + 2) is not None

    def test_what_is_being_done_is_not_queued_again(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)
        claim_job(queue)

        assert queue.put(need("a"), NOW + 1) is None

    def test_a_cause_that_arrives_during_the_run_is_queued(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)
        job = claim_job(queue)

        later = queue.put(need("b"), NOW + 1)
        queue.finish(job, "done", NOW + 2)

        assert later not in (None, job.id)
        assert claim_job(queue, NOW + 3).fingerprint == "b"

    def test_a_cause_that_came_and_went_during_the_run_is_still_looked_at(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)
        job = claim_job(queue)
        queue.put(need("b"), NOW)
        queue.put(need("a"), NOW)

        queue.finish(job, "done", NOW)

        assert claim_job(queue).fingerprint == "a"

    def test_a_waiting_job_whose_input_went_back_to_a_settled_one_is_closed(
        self, queue: JobQueue, view: QueueView
    ) -> None:
        queue.put(need("a"), NOW)
        queue.finish(claim_job(queue), "done", NOW)
        waiting = queue.put(need("b"), NOW)
        assert waiting is not None

        assert queue.put(need("a"), NOW) is None

        job = view.get(waiting)
        assert job is not None
        assert job.state is JobState.DONE
        assert queue.claim(NOW) is None

    def test_an_unchanged_need_writes_nothing(self, queue: JobQueue, database: Database) -> None:
        """An idle daemon looks again and again; the disk must not notice."""
        queue.put(need("a"), NOW)
        queue.put(need("b", role="workers"), NOW)
        queue.finish(claim_job(queue), "done", NOW)
        job = claim_job(queue)
        queue.defer(job, "a workflow runs", NOW + 60, NOW)
        log = database.path.with_name("echod.db-wal")
        before = (log.stat().st_size, log.stat().st_mtime_ns)

        queue.put(need("a"), NOW + 1)
        queue.put(need("b", role="workers"), NOW + 1)
        queue.claim(NOW + 1)
        queue.wake_deferred(OTHER_STORE, NOW + 1)

        assert (log.stat().st_size, log.stat().st_mtime_ns) == before


class TestInsist:
    def test_the_user_may_request_a_done_input_again(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)
        queue.finish(claim_job(queue), "done", NOW)

        number = queue.put_forced(need("a"), NOW)

        assert claim_job(queue).id == number

    def test_it_is_not_closed_by_the_next_look_at_the_disk(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)
        queue.finish(claim_job(queue), "done", NOW)

        number = queue.put_forced(need("a"), NOW)

        assert queue.put(need("a"), NOW) == number

    def test_a_waiting_or_running_job_serves(self, queue: JobQueue) -> None:
        number = queue.put(need("a"), NOW)
        assert queue.put_forced(need("a"), NOW) == number
        claim_job(queue)
        assert queue.put_forced(need("a"), NOW) == number

    def test_a_deferred_job_asks_the_gate_again(self, queue: JobQueue) -> None:
        number = queue.put(need("a"), NOW)
        queue.defer(claim_job(queue), "a workflow runs", NOW + 600, NOW)

        assert queue.put_forced(need("a"), NOW) == number

        assert claim_job(queue).id == number


class TestClaim:
    def test_nothing_is_claimed_before_it_is_due(self, queue: JobQueue) -> None:
        queue.put(need(due=NOW + 5), NOW)

        assert queue.claim(NOW + 4.9) is None
        assert claim_job(queue, NOW + 5).state is JobState.RUNNING

    def test_a_worker_runs_one_job_at_a_time(self, queue: JobQueue) -> None:
        queue.put(need(), NOW)
        queue.put(need(role="workers"), NOW)
        claim_job(queue)

        assert queue.claim(NOW) is None

    def test_another_worker_gets_another_job(self, queue: JobQueue, database: Database) -> None:
        queue.put(need(), NOW)
        queue.put(need(role="workers"), NOW)

        mine, theirs = claim_job(queue), claim_job(make_queue(database, OTHER_PROCESS))

        assert mine.id != theirs.id
        assert (mine.worker, theirs.worker) == (THIS_PROCESS, OTHER_PROCESS)

    def test_no_job_runs_twice_at_once(self, queue: JobQueue, database: Database) -> None:
        queue.put(need("a"), NOW)
        job = claim_job(queue)
        queue.put(need("b"), NOW)
        other = make_queue(database, OTHER_PROCESS)

        assert other.claim(NOW) is None
        queue.finish(job, "done", NOW)
        assert claim_job(other).fingerprint == "b"

    def test_the_store_served_longest_ago_comes_first(self, queue: JobQueue) -> None:
        """A store that produces without end does not starve the others."""
        queue.put(need(store=OTHER_STORE, due=NOW), NOW)
        served = []
        for turn in range(6):
            queue.put(need(f"{turn}", store="/busy", role=f"r{turn}", due=NOW - 1000), NOW)
            if turn % 2:
                queue.put(need(f"{turn}", store=OTHER_STORE), NOW)
            job = claim_job(queue)
            queue.finish(job, "done", NOW)
            served.append(job.store)

        assert served == ["/busy", OTHER_STORE, "/busy", OTHER_STORE, "/busy", OTHER_STORE]

    def test_within_a_store_the_longest_due_comes_first(self, queue: JobQueue) -> None:
        queue.put(need(role="late", due=NOW - 1), NOW)
        queue.put(need(role="early", due=NOW - 2), NOW)

        assert claim_job(queue).role == "early"

    def test_only_the_named_stores_are_served(self, queue: JobQueue) -> None:
        queue.put(need(store="/a"), NOW)

        assert queue.claim(NOW, {"/b"}) is None
        assert queue.claim(NOW, ()) is None
        assert queue.claim(NOW, {"/b", "/a"}) is not None


class TestDefer:
    def test_waiting_is_no_attempt(self, queue: JobQueue) -> None:
        queue.put(need(), NOW)
        now = NOW
        for _ in range(50):
            job = queue.defer(claim_job(queue, now), "a workflow runs", now + 60, now)
            assert (job.state, job.attempts, job.result) == (JobState.DEFERRED, 0, "a workflow runs")
            assert queue.claim(now + 59) is None
            now += 60

    def test_the_opening_gate_wakes_the_deferred_jobs_of_its_store(self, queue: JobQueue) -> None:
        queue.put(need(store="/a"), NOW)
        queue.put(need(store="/b"), NOW)
        for _ in range(2):
            queue.defer(claim_job(queue), "a workflow runs", NOW + 600, NOW)

        assert queue.wake_deferred("/a", NOW + 1) == 1

        assert claim_job(queue, NOW + 1).store == "/a"
        assert queue.wake_deferred("/a", NOW + 1) == 0

    def test_waking_does_not_forget_that_the_input_is_not_ready(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        queue.defer(claim_job(queue), "a workflow runs", NOW + 600, NOW)
        queue.put(need("b", due=NOW + 30), NOW)

        queue.wake_deferred(need().store, NOW + 1)

        assert view.next_due() == NOW + 30

    def test_a_newer_cause_leaves_it_deferred(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        queue.defer(claim_job(queue), "a workflow runs", NOW + 600, NOW)

        queue.put(need("b"), NOW + 1)

        (job,) = view.list_jobs()
        assert (job.state, job.due, job.fingerprint) == (JobState.DEFERRED, NOW + 600, "b")
        assert job.result == "a workflow runs"

    def test_it_waits_in_its_successor_if_a_cause_arrived_meanwhile(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        job = claim_job(queue)
        successor = queue.put(need("b"), NOW)

        after = queue.defer(job, "a workflow runs", NOW + 600, NOW)

        assert (after.state, after.merged_into) == (JobState.DONE, successor)
        (waiting,) = view.list_jobs({JobState.DEFERRED})
        assert (waiting.id, waiting.due, waiting.attempts) == (successor, NOW + 600, 0)

    def test_looks_at_the_store_meanwhile_do_not_cut_a_days_deferral_short(
        self, queue: JobQueue, view: QueueView
    ) -> None:
        queue.put(need("a"), NOW)
        queue.defer(claim_job(queue), "a first prune waits for a day", NOW + 86_400, NOW)

        for minutes in (1, 60, 600):
            queue.put(need("a" if minutes > 1 else "b"), NOW + 60 * minutes)

        assert view.next_due() == NOW + 86_400

    def test_a_deferral_computed_under_a_wrong_clock_ends(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        queue.defer(claim_job(queue), "a workflow runs", NOW + 365 * 86_400, NOW)

        queue.put(need("a"), NOW)

        assert view.next_due() == NOW + MAX_DEFERRAL_SECONDS


class TestFail:
    def test_it_rests_longer_after_each_failure(self, queue: JobQueue) -> None:
        queue.put(need(), NOW)
        first = queue.fail(claim_job(queue), "the disk is full", NOW)
        second = queue.fail(claim_job(queue, first.due), "the disk is full", first.due)

        assert (first.state, first.attempts, first.result) == (JobState.QUEUED, 1, "the disk is full")
        assert 15 <= first.due - NOW <= 30
        assert 60 <= second.due - first.due <= 120

    def test_a_stalled_job_is_retried_every_minute_and_never_given_up(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)
        now = NOW
        for _ in range(8):
            job = queue.stall(claim_job(queue, now), "the disk is full", now)

            assert (job.state, job.result) == (JobState.QUEUED, "the disk is full")
            assert now < job.due <= now + STALLED_RETRY_SECONDS
            assert job.attempts >= 1
            now = job.due

        queue.finish(claim_job(queue, now), "done", now)

    def test_after_the_last_attempt_it_is_dead_for_that_input(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)

        job = exhaust_attempts(queue)

        assert (job.attempts, job.result) == (3, "it broke")
        assert queue.put(need("a"), MUCH_LATER) is None
        assert queue.claim(MUCH_LATER) is None
        assert view.count_by_state()[JobState.DEAD] == 1

    def test_a_dead_job_blocks_no_other(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)
        exhaust_attempts(queue)

        queue.put(need("a", role="workers"), NOW)

        assert claim_job(queue).role == "workers"

    def test_changed_input_revives_it_with_all_its_attempts(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        dead = exhaust_attempts(queue)
        queue.put(need("b"), MUCH_LATER)

        job = claim_job(queue, MUCH_LATER)
        queue.finish(job, "done", MUCH_LATER)

        assert job.attempts == 1
        history = view.get(dead.id)
        assert history is not None
        assert (history.state, history.merged_into) == (JobState.DONE, job.id)

    def test_changed_input_that_changes_back_leaves_it_dead(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        dead = exhaust_attempts(queue)
        queue.put(need("b"), MUCH_LATER)

        assert queue.put(need("a"), MUCH_LATER) is None

        assert queue.claim(MUCH_LATER) is None
        assert [job.id for job in view.list_jobs({JobState.DEAD})] == [dead.id]

    def test_dead_for_changed_input_too_it_is_listed_once(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        exhaust_attempts(queue)
        queue.put(need("b"), MUCH_LATER)
        exhaust_attempts(queue, MUCH_LATER)

        (job,) = view.list_jobs({JobState.DEAD})
        assert job.fingerprint == "b"

    def test_changed_input_of_a_resting_job_is_tried_early(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        first = queue.fail(claim_job(queue), "it broke", NOW)
        resting = queue.fail(claim_job(queue, first.due), "it broke", first.due)

        queue.put(need("b"), first.due)

        (job,) = view.list_jobs()
        assert job.attempts == 0
        assert first.due < job.due <= first.due + BACKOFF.base_seconds < resting.due

    def test_input_that_changes_all_the_time_does_not_make_it_spin(self, queue: JobQueue) -> None:
        """However often the input of a failing job changes, it runs at most once in half a base pause."""
        now, runs = NOW, 0
        for turn in range(200):
            queue.put(need(f"{turn}", due=now), now)
            if job := queue.claim(now):
                queue.put(need(f"{turn} and a half", due=now), now)
                queue.fail(job, "it broke", now)
                runs += 1
            now += 1

        assert 2 < runs <= 200 / (BACKOFF.base_seconds / 2) + 1

    def test_the_same_input_leaves_it_resting(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        resting = queue.fail(claim_job(queue), "it broke", NOW)

        queue.put(need("a"), NOW + 1)

        (job,) = view.list_jobs()
        assert (job.due, job.attempts, job.result) == (resting.due, 1, "it broke")

    def test_a_pause_computed_under_a_wrong_clock_ends(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        queue.fail(claim_job(queue), "it broke", NOW + 365 * 86_400)

        queue.put(need("a"), NOW)

        assert view.next_due() == NOW + BACKOFF.cap_seconds

    def test_failing_with_the_same_input_waiting_again_counts(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        job = claim_job(queue)
        queue.put(need("b"), NOW)
        queue.put(need("a"), NOW)

        queue.fail(job, "it broke", NOW)

        (waiting,) = view.list_jobs({JobState.QUEUED})
        assert waiting.attempts == 1

    def test_dying_takes_the_same_input_that_waits_along(self, database: Database, view: QueueView) -> None:
        queue = make_queue(database, max_attempts=1)
        queue.put(need("a"), NOW)
        job = claim_job(queue)
        queue.put(need("b"), NOW)
        successor = queue.put(need("a"), NOW)

        queue.fail(job, "it broke", NOW)

        assert [(each.id, each.state, each.merged_into) for each in view.list_jobs()] == [
            (successor, JobState.DONE, job.id),
            (job.id, JobState.DEAD, None),
        ]
        assert queue.put(need("a"), NOW) is None


class TestGiveUp:
    def test_it_is_dead_at_once_for_that_input_and_only_for_that(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)

        job = queue.give_up(claim_job(queue), "the memory file has conflict markers", NOW)

        assert (job.state, job.attempts, job.result) == (JobState.DEAD, 1, "the memory file has conflict markers")
        assert queue.put(need("a"), MUCH_LATER) is None
        assert queue.put(need("b"), MUCH_LATER) is not None


class TestRetry:
    def test_a_dead_job_runs_at_once_with_all_its_attempts(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)
        dead = exhaust_attempts(queue)

        assert queue.retry(dead.id, MUCH_LATER) == dead.id

        job = claim_job(queue, MUCH_LATER)
        assert (job.id, job.attempts) == (dead.id, 1)
        queue.finish(job, "done", MUCH_LATER)
        assert queue.put(need("a"), MUCH_LATER) is None

    def test_the_next_look_at_the_disk_does_not_close_it_again(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)
        dead = exhaust_attempts(queue)

        queue.retry(dead.id, MUCH_LATER)

        assert queue.put(need("a"), MUCH_LATER) == dead.id
        assert claim_job(queue, MUCH_LATER).id == dead.id

    def test_a_resting_job_stops_resting(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)
        resting = queue.fail(claim_job(queue), "it broke", NOW)

        queue.retry(resting.id, NOW + 1)

        assert claim_job(queue, NOW + 1).id == resting.id

    def test_a_dead_job_whose_changed_input_waits_is_left_to_that(self, queue: JobQueue) -> None:
        queue.put(need("a"), NOW)
        dead = exhaust_attempts(queue)
        waiting = queue.put(need("b", due=NOW + 5), NOW)

        assert queue.retry(dead.id, NOW + 1) == waiting

    @pytest.mark.parametrize("end", ["deferred", "running", "done"])
    def test_other_states_are_refused_with_a_sentence(self, queue: JobQueue, end: str) -> None:
        queue.put(need(), NOW)
        job = claim_job(queue)
        if end == "deferred":
            queue.defer(job, "a workflow runs", NOW + 60, NOW)
        if end == "done":
            queue.finish(job, "done", NOW)

        with pytest.raises(UsageError, match=f"Job {job.id} is {end}"):
            queue.retry(job.id, NOW)

    def test_an_unknown_number_is_refused_with_a_sentence(self, queue: JobQueue) -> None:
        with pytest.raises(UsageError, match="no job 99"):
            queue.retry(99, NOW)


class TestWithdraw:
    def test_what_a_store_no_longer_calls_for_is_closed(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        exhaust_attempts(queue)
        kept = queue.put(need(role="kept"), NOW)
        queue.put(need(role="gone"), NOW)
        queue.put(need(store=OTHER_STORE), NOW)

        closed = queue.withdraw(need().store, NOW, "its findings are gone", keep={(JobKind.CONSOLIDATE, "kept")})

        assert len(closed) == 2
        assert all(job.result == "its findings are gone" for job in view.list_jobs({JobState.DONE}))
        assert {job.id for job in view.list_jobs({JobState.QUEUED}) if job.store != OTHER_STORE} == {kept}
        assert view.count_by_state()[JobState.DEAD] == 0

    def test_a_running_job_is_left_alone(self, queue: JobQueue) -> None:
        queue.put(need(), NOW)
        job = claim_job(queue)

        assert queue.withdraw(job.store, NOW, "the project was removed") == ()
        queue.finish(job, "done", NOW)


class TestHolding:
    """Every move checks the row's present state: two workers that believe to own a job are found out."""

    ENDINGS = (
        pytest.param(lambda queue, job: queue.finish(job, "done", NOW), id="finish"),
        pytest.param(lambda queue, job: queue.fail(job, "it broke", NOW), id="fail"),
        pytest.param(lambda queue, job: queue.defer(job, "it waits", NOW, NOW), id="defer"),
    )

    @pytest.mark.parametrize("end", ENDINGS)
    def test_a_job_ends_once(self, queue: JobQueue, view: QueueView, end: Callable[[JobQueue, Job], object]) -> None:
        queue.put(need(), NOW)
        job = claim_job(queue)
        queue.finish(job, "the first", NOW)

        with pytest.raises(JobNotOwnedError, match="done"):
            end(queue, job)

        assert [each.result for each in view.list_jobs()] == ["the first"]

    @pytest.mark.parametrize("end", ENDINGS)
    def test_only_its_worker_ends_a_job(
        self, queue: JobQueue, database: Database, end: Callable[[JobQueue, Job], object]
    ) -> None:
        queue.put(need(), NOW)
        job = claim_job(queue)

        with pytest.raises(JobNotOwnedError, match="running"):
            end(make_queue(database, OTHER_PROCESS), job)

    @pytest.mark.parametrize("end", ENDINGS)
    def test_a_job_that_never_was_cannot_end(self, queue: JobQueue, end: Callable[[JobQueue, Job], object]) -> None:
        queue.put(need(), NOW)
        job = claim_job(queue)._replace(id=99)

        with pytest.raises(JobNotOwnedError, match="deleted"):
            end(queue, job)


class TestRecover:
    def test_a_job_of_a_dead_process_runs_again_at_once(self, queue: JobQueue, database: Database) -> None:
        queue.put(need(), NOW)
        lost = claim_job(make_queue(database, OTHER_PROCESS))

        (job,) = queue.recover(lambda worker: worker != OTHER_PROCESS, NOW)

        assert (job.id, job.state, job.attempts) == (lost.id, JobState.QUEUED, 1)
        assert claim_job(queue).attempts == 2

    def test_a_job_of_a_live_process_is_left_alone(self, queue: JobQueue, database: Database) -> None:
        queue.put(need(), NOW)
        other = make_queue(database, OTHER_PROCESS)
        job = claim_job(other)

        assert queue.recover(lambda worker: worker == OTHER_PROCESS, NOW) == ()
        other.finish(job, "done", NOW)

    def test_our_own_job_is_not_asked_about(self, queue: JobQueue) -> None:
        queue.put(need(), NOW)
        claim_job(queue)

        assert queue.recover(lambda _: False, NOW) == ()

    def test_a_job_that_kills_its_process_every_time_is_given_up(self, database: Database, view: QueueView) -> None:
        queue = make_queue(database)
        queue.put(need(), NOW)
        now = NOW
        for _ in range(3):
            claim_job(make_queue(database, OTHER_PROCESS), now)
            (job,) = queue.recover(lambda _: False, now)
            now = job.due + 1

        assert (job.state, job.attempts) == (JobState.DEAD, 3)
        assert "pid 4343" in job.result
        assert queue.put(need(), now) is None
        assert view.kind_records()[JobKind.CONSOLIDATE].last_error == job.result

    def test_merging_into_a_successor_keeps_the_attempts(self, database: Database, view: QueueView) -> None:
        queue, other = make_queue(database), make_queue(database, OTHER_PROCESS)
        queue.put(need("a"), NOW)
        lost = claim_job(other)
        successor = queue.put(need("b"), NOW)

        (job,) = queue.recover(lambda _: False, NOW)

        assert (job.id, job.state, job.merged_into) == (lost.id, JobState.DONE, successor)
        (waiting,) = view.list_jobs({JobState.QUEUED})
        assert (waiting.fingerprint, waiting.attempts) == ("b", 1)

    def test_a_job_that_ended_meanwhile_stays_ended(self, queue: JobQueue, database: Database) -> None:
        queue.put(need(), NOW)
        other = make_queue(database, OTHER_PROCESS)
        job = claim_job(other)

        def finishes_when_asked(_: object) -> bool:
            other.finish(job, "done", NOW)
            return False

        assert queue.recover(finishes_when_asked, NOW) == ()


class TestRetention:
    def test_done_jobs_are_forgotten_and_the_memo_stays(self, queue: JobQueue, view: QueueView) -> None:
        for turn in range(3):
            queue.put(need(f"{turn}"), NOW + turn)
            queue.finish(claim_job(queue, NOW + turn), "done", NOW + turn)

        assert queue.delete_finished(NOW + 1.5) == 2

        assert [job.fingerprint for job in view.list_jobs()] == ["2"]
        assert queue.put(need("2"), NOW + 9) is None
        assert view.kind_records()[JobKind.CONSOLIDATE].last_success == NOW + 2

    def test_dead_and_waiting_jobs_are_never_forgotten(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need(), NOW)
        exhaust_attempts(queue)
        queue.put(need(role="workers", due=NOW - 999_999), NOW)

        assert queue.delete_finished(MUCH_LATER) == 0
        assert len(view.list_jobs()) == 2

    def test_numbers_are_never_used_again(self, queue: JobQueue) -> None:
        first = queue.put(need("a"), NOW)
        queue.finish(claim_job(queue), "done", NOW)
        queue.delete_finished(MUCH_LATER)

        second = queue.put(need("b"), NOW)

        assert first is not None
        assert second is not None
        assert second > first

    def test_many_are_forgotten_in_short_transactions_and_give_their_space_back(
        self, queue: JobQueue, database: Database
    ) -> None:
        with database.write_transaction() as link:
            link.executemany(
                "INSERT INTO job (kind, store, role, state, reason, fingerprint, attempts, ready_at, not_before, "
                "queued_at, finished_at, result) VALUES ('consolidate', ?, '', 'done', '', '', 0, 0, 0, 0, ?, '')",
                [("/store" * 50, NOW)] * 1600,
            )
        with database.read_transaction() as link:
            before = link.execute("PRAGMA page_count").fetchone()[0]

        assert queue.delete_finished(NOW + 1) == 1600

        with database.read_transaction() as link:
            assert link.execute("PRAGMA page_count").fetchone()[0] < before / 4


class TestView:
    def test_an_empty_queue_has_nothing_to_say(self, view: QueueView) -> None:
        assert view.list_jobs() == ()
        assert view.count_by_state() == dict.fromkeys(JobState, 0)
        assert (view.oldest_due(NOW), view.next_due(), view.get(1)) == (None, None, None)
        assert view.kind_records() == {}

    def test_health_is_how_long_the_oldest_due_job_has_waited(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need(role="waits", due=NOW - 50), NOW)
        queue.put(need(role="young", due=NOW + 50), NOW)

        assert view.oldest_due(NOW) == NOW - 50
        assert view.next_due() == NOW - 50

        queue.defer(claim_job(queue), "a workflow runs", NOW + 20, NOW)

        assert view.oldest_due(NOW) is None
        assert view.next_due() == NOW + 20

    def test_the_newest_jobs_come_first_and_no_more_than_asked(self, queue: JobQueue, view: QueueView) -> None:
        numbers = [queue.put(need(role=f"r{n}"), NOW) for n in range(5)]

        assert [job.id for job in view.list_jobs(limit=2)] == [numbers[4], numbers[3]]

    def test_each_kind_records_its_last_success_and_failure(self, queue: JobQueue, view: QueueView) -> None:
        queue.put(need("a"), NOW)
        queue.finish(claim_job(queue), "done", NOW + 1)
        queue.put(need("b"), NOW + 2)
        queue.fail(claim_job(queue, NOW + 2), "it broke", NOW + 3)

        record = view.kind_records()[JobKind.CONSOLIDATE]
        assert (record.last_success, record.last_failure, record.last_error) == (NOW + 1, NOW + 3, "it broke")


class TestBackoff:
    def test_pauses_grow_to_a_cap_and_never_overflow(self) -> None:
        rng = random.Random(1)

        pauses = [BACKOFF.pause(failures, rng) for failures in (0, 1, 2, 3, 10, 10_000)]

        assert pauses[0] == 0
        assert all(
            nominal / 2 <= pause <= nominal
            for pause, nominal in zip(pauses[1:], [30, 120, 480, 3600, 3600], strict=True)
        )

    def test_jobs_that_failed_together_come_back_apart(self) -> None:
        rng = random.Random(1)

        assert len({Backoff().pause(1, rng) for _ in range(20)}) == 20


class TestTheClockOfDeletions:
    def test_a_clock_that_goes_on_is_believed(self, queue: JobQueue) -> None:
        assert all(queue.believes_clock(NOW + day * DAY) for day in range(5))

    def test_a_jump_ahead_is_believed_when_it_goes_on_from_there(self, queue: JobQueue) -> None:
        queue.believes_clock(NOW)
        readings = [400 * DAY, 400 * DAY + 3600, 401 * DAY, 402 * DAY]
        assert [queue.believes_clock(NOW + at) for at in readings] == [False, False, True, True]

    def test_a_clock_that_was_ahead_for_a_while_changes_nothing(self, queue: JobQueue) -> None:
        queue.believes_clock(NOW)
        readings = [400 * DAY, DAY, 2 * DAY, 700 * DAY, 3 * DAY]
        assert [queue.believes_clock(NOW + at) for at in readings] == [False, True, True, False, True]

    def test_a_machine_that_was_off_waits_a_day(self, queue: JobQueue) -> None:
        queue.believes_clock(NOW)
        assert [queue.believes_clock(NOW + day * DAY) for day in (30, 60, 61, 62)] == [False, False, True, True]

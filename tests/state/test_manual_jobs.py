"""Manual jobs: they run at once, never wait, and are never run by another process."""

from __future__ import annotations

import pytest

from echod.errors import StateError, UsageError
from echod.state.database import Database
from echod.state.jobs import Job, JobKind, JobState, Need, QueueView
from echod.state.queue import JobQueue
from tests.state.examples import NOW, OTHER_PROCESS, THIS_PROCESS, claim_job, make_queue, need

STORE = "/p/.rune/echoes"


def manual_need(fingerprint: str = "job 7") -> Need:
    return Need(JobKind.UNDO, STORE, "reviewer", fingerprint, "asked for", NOW)


def test_it_runs_from_the_start_under_a_new_number(queue: JobQueue, view: QueueView) -> None:
    first = queue.put(need(), NOW)

    job = queue.start_manual(manual_need(), NOW)

    assert first is not None
    assert job.id > first
    assert (job.kind, job.state, job.attempts, job.worker) == (JobKind.UNDO, JobState.RUNNING, 1, THIS_PROCESS)
    assert (job.queued_at, job.started_at) == (NOW, NOW)
    assert view.get(job.id) == job


@pytest.mark.parametrize("state", [JobState.DONE, JobState.DEAD])
def test_it_ends_done_or_dead_with_its_sentence(queue: JobQueue, view: QueueView, state: JobState) -> None:
    job = queue.start_manual(manual_need(), NOW)

    if state is JobState.DONE:
        queue.finish(job, "took job 7 back", NOW + 1)
    else:
        queue.give_up(job, "took job 7 back", NOW + 1)

    ended = view.get(job.id)
    assert ended is not None
    assert (ended.state, ended.result, ended.finished_at) == (state, "took job 7 back", NOW + 1)


def test_the_same_may_be_asked_again_after_it_was_done(queue: JobQueue) -> None:
    job = queue.start_manual(manual_need(), NOW)
    queue.finish(job, "done", NOW)

    assert queue.start_manual(manual_need(), NOW + 1).id > job.id


def test_one_of_a_kind_that_also_waits_leaves_the_one_that_waits(queue: JobQueue, view: QueueView) -> None:
    prune = Need(JobKind.PRUNE, STORE, "reviewer", "too long", "too long", NOW)
    waiting = queue.put(prune, NOW)

    job = queue.start_manual(Need(JobKind.PRUNE, STORE, "reviewer", "asked", "asked for", NOW), NOW)
    queue.finish(job, "done", NOW)

    assert waiting is not None
    left = view.get(waiting)
    assert left is not None
    assert (left.state, left.fingerprint) == (JobState.QUEUED, "too long")


def test_what_waits_for_the_same_role_goes_on_waiting(queue: JobQueue) -> None:
    waiting = queue.put(need(), NOW)

    queue.finish(queue.start_manual(manual_need(), NOW), "done", NOW)

    assert claim_job(queue).id == waiting


def test_nothing_else_is_claimed_while_it_runs(queue: JobQueue) -> None:
    queue.put(need(), NOW)
    queue.start_manual(manual_need(), NOW)

    assert queue.claim(NOW) is None


def test_a_process_that_runs_a_job_begins_no_other(queue: JobQueue, view: QueueView) -> None:
    queue.put(need(), NOW)
    claim_job(queue)

    with pytest.raises(StateError, match="Try again"):
        queue.start_manual(manual_need(), NOW)
    assert len(view.list_jobs()) == 1


def test_two_processes_do_not_do_the_same_at_once(database: Database, queue: JobQueue) -> None:
    make_queue(database, OTHER_PROCESS).start_manual(manual_need(), NOW)

    with pytest.raises(StateError, match="Try again"):
        queue.start_manual(manual_need(), NOW)


def test_when_its_process_dies_it_is_dead_and_not_run_again(database: Database, queue: JobQueue) -> None:
    job = make_queue(database, OTHER_PROCESS).start_manual(manual_need(), NOW)

    (ended,) = queue.recover(lambda _: False, NOW + 1)

    assert (ended.id, ended.state) == (job.id, JobState.DEAD)
    assert str(OTHER_PROCESS.pid) in ended.result
    assert queue.claim(NOW + 10_000_000) is None


def give_up_job(queue: JobQueue) -> Job:
    return queue.give_up(queue.start_manual(manual_need(), NOW), "the disk is full", NOW)


def test_a_failed_one_is_not_retried_by_number(queue: JobQueue) -> None:
    job = give_up_job(queue)

    with pytest.raises(UsageError, match="echod undo"):
        queue.retry(job.id, NOW + 1)


def test_a_look_at_the_store_leaves_it_and_its_sentence_alone(queue: JobQueue, view: QueueView) -> None:
    job = give_up_job(queue)

    assert queue.withdraw(STORE, NOW + 1, "nothing calls for it") == ()
    assert view.get(job.id) == job


def test_a_failed_one_does_not_count_as_given_up(queue: JobQueue, view: QueueView) -> None:
    give_up_job(queue)

    assert view.count_by_state()[JobState.DEAD] == 0


def test_a_failed_one_is_forgotten_in_time(queue: JobQueue, view: QueueView) -> None:
    give_up_job(queue)

    assert queue.delete_finished(NOW) == 0
    assert queue.delete_finished(NOW + 1) == 1
    assert view.list_jobs() == ()


def test_numbers_go_on_after_those_that_others_remember(queue: JobQueue) -> None:
    assert not queue.has_assigned_ids()

    queue.reserve_ids(41)

    assert queue.has_assigned_ids()
    assert queue.put(need(), NOW) == 42
    queue.reserve_ids(7)
    assert queue.start_manual(manual_need(), NOW).id == 43

from __future__ import annotations

import logging
import threading
import time

import pytest
import time_machine

from echod.daemon.upkeep import IntervalScheduler, PeriodicTask
from tests.support import until


def _nothing() -> None:
    pass


def test_every_task_is_called_repeatedly() -> None:
    calls: list[str] = []

    with IntervalScheduler(
        [PeriodicTask("a", 0.02, lambda: calls.append("a")), PeriodicTask("b", 0.02, lambda: calls.append("b"))]
    ):
        until(lambda: calls.count("a") > 2 and calls.count("b") > 2, "three ticks of each")


def test_no_task_is_called_after_the_end_and_no_thread_remains() -> None:
    threads = set(threading.enumerate())
    calls: list[int] = []
    with IntervalScheduler([PeriodicTask("a", 0.01, lambda: calls.append(1))]):
        until(lambda: calls, "a tick")

    assert set(threading.enumerate()) <= threads


def test_an_action_that_fails_stops_neither_itself_nor_the_others(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    def failing() -> None:
        calls.append(1)
        raise ValueError

    with caplog.at_level(logging.CRITICAL, logger="apscheduler"), IntervalScheduler([PeriodicTask("a", 0.01, failing)]):
        until(lambda: len(calls) > 2, "further ticks")


def test_a_task_that_waited_for_another_is_late_and_not_dropped() -> None:
    calls: list[int] = []
    hold = threading.Event()

    with IntervalScheduler(
        [PeriodicTask("slow", 0.01, hold.wait), PeriodicTask("late", 0.01, lambda: calls.append(1))]
    ) as interval_scheduler:
        first = interval_scheduler._scheduler.get_job("late").next_run_time.timestamp()
        until(lambda: interval_scheduler._scheduler.get_job("late").next_run_time.timestamp() > first + 1.2, "the wait")
        before = len(calls)
        hold.set()
        until(lambda: len(calls) > before, "the late tick")


def test_all_calls_missed_in_a_sleep_become_one() -> None:
    calls: list[int] = []
    with IntervalScheduler([PeriodicTask("a", 30, lambda: calls.append(1))]) as interval_scheduler:
        scheduler = interval_scheduler._scheduler
        later = scheduler.get_job("a").next_run_time.timestamp() + 3605

        with time_machine.travel(later, tick=False):
            scheduler.wakeup()
            until(lambda: calls and scheduler.get_job("a").next_run_time.timestamp() > later, "the tick")

    assert len(calls) == 1


def test_after_the_clock_was_set_back_rescheduling_resumes_the_calls() -> None:
    calls: list[int] = []
    with IntervalScheduler([PeriodicTask("a", 30, lambda: calls.append(1))]) as interval_scheduler:
        scheduler = interval_scheduler._scheduler
        before = scheduler.get_job("a").next_run_time.timestamp()

        with time_machine.travel(before - 3630, tick=True):
            stuck = scheduler.get_job("a").next_run_time.timestamp() - time.time()
            interval_scheduler.reschedule_all()
            fresh = scheduler.get_job("a").next_run_time.timestamp() - time.time()

    assert stuck > 3600
    assert fresh <= 30

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from watchdog.events import FileSystemEvent

from echod.daemon.events import (
    CANARY_INTERVAL_SECONDS,
    CANARY_TIMEOUT_SECONDS,
    BufferingEventHandler,
    Canary,
    EventBuffer,
    EventSource,
)
from echod.daemon.watcher import WatchTargets
from echod.runtime import EVENTS_NOT_ARRIVING
from tests.daemon.watcher_harness import WatcherHarness
from tests.support import until


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return Canary(tmp_path / "run" / "canary")


def _pulse_files(canary: Canary) -> list[Path]:
    return sorted(canary.directory.iterdir())


def test_events_count_as_arriving_before_the_first_pulse(canary: Canary) -> None:
    assert canary.is_ok(0)
    assert canary.is_ok(10_000)


def test_a_pulse_that_arrives_in_time_is_ok(canary: Canary) -> None:
    canary.send_if_due(0)
    canary.check_paths(_pulse_files(canary))

    assert canary.is_ok(CANARY_TIMEOUT_SECONDS + 1)


def test_a_pulse_that_does_not_arrive_is_not_ok(canary: Canary) -> None:
    canary.send_if_due(0)

    assert canary.is_ok(CANARY_TIMEOUT_SECONDS)
    assert not canary.is_ok(CANARY_TIMEOUT_SECONDS + 0.1)


def test_silence_is_detected_within_30_seconds() -> None:
    assert CANARY_INTERVAL_SECONDS + CANARY_TIMEOUT_SECONDS < 30


def test_the_late_event_of_an_earlier_pulse_proves_nothing(canary: Canary) -> None:
    canary.send_if_due(0)
    early = _pulse_files(canary)
    canary.check_paths(early)
    canary.send_if_due(CANARY_INTERVAL_SECONDS)
    canary.check_paths(early)

    assert not canary.is_ok(CANARY_INTERVAL_SECONDS + CANARY_TIMEOUT_SECONDS + 1)


def test_after_silence_only_a_new_pulse_is_ok_again(canary: Canary) -> None:
    canary.send_if_due(0)
    canary.mark_lost()
    assert not canary.is_ok(1)

    canary.send_if_due(1)
    assert not canary.is_ok(1)
    canary.check_paths(_pulse_files(canary))

    assert canary.is_ok(1)


def test_old_pulses_are_swept_and_other_files_are_not(canary: Canary) -> None:
    canary.directory.mkdir(parents=True)
    (canary.directory / "pulse-99").touch()
    (canary.directory / "wake").touch()

    canary.send_if_due(0)

    assert [path.name for path in _pulse_files(canary)] == ["pulse-1", "wake"]


def test_a_pulse_that_cannot_be_written_is_reported_and_proves_nothing(canary: Canary) -> None:
    canary.directory.parent.write_text("in the way")

    canary.send_if_due(0)

    assert canary.write_error
    assert canary.is_ok(CANARY_TIMEOUT_SECONDS + 1)


def test_a_live_watcher_reports_the_canary(harness: WatcherHarness, canary: Canary) -> None:
    event_source = EventSource(harness.watcher, canary)
    event_source.watch(WatchTargets())
    event_source.poll(0)  # the canary's directory appears
    now = 0.0

    def heard() -> bool:
        event_source.poll(now)
        return event_source.is_alive(CANARY_TIMEOUT_SECONDS + 1)

    until(heard, "the canary")
    assert event_source.problems(CANARY_TIMEOUT_SECONDS + 1) == ()


def test_a_dead_dispatcher_is_reported_and_replaced(harness: WatcherHarness, canary: Canary, store: Path) -> None:
    """Emitters look alive in this state. Only the round trip shows the problem."""
    canary.directory.mkdir(parents=True)
    event_source = EventSource(harness.watcher, canary)
    event_source.watch(WatchTargets((store,)))
    observer = harness.watcher._observer
    assert observer is not None
    hook = threading.excepthook
    threading.excepthook = lambda _: None
    try:

        class Raising(BufferingEventHandler):
            def dispatch(self, event: FileSystemEvent) -> None:
                raise ValueError

        for emitter in list(observer.emitters):
            observer.add_handler_for_watch(Raising(EventBuffer(threading.Event())), emitter.watch)
        (store / "poison.md").write_text("x")
        until(lambda: not observer.is_alive(), "the dispatcher's end")
    finally:
        threading.excepthook = hook
    assert all(emitter.is_alive() for emitter in observer.emitters)

    event_source.poll(0)
    late = CANARY_TIMEOUT_SECONDS + 1
    assert not event_source.is_alive(late)
    assert event_source.problems(late) == (EVENTS_NOT_ARRIVING,)

    reasons: list[str] = []

    def healed() -> bool:
        reasons.extend(event_source.poll(late).rescan)
        return event_source.is_alive(late)

    until(healed, "the canary after the restart")
    assert EVENTS_NOT_ARRIVING in reasons


def test_a_swept_runtime_directory_is_created_again(harness: WatcherHarness, canary: Canary) -> None:
    """Some systems clean that directory. Without it the canary would be silent for ever, unnoticed."""
    canary.directory.mkdir(parents=True)
    event_source = EventSource(harness.watcher, canary)
    event_source.watch(WatchTargets())
    event_source.poll(0)
    shutil.rmtree(canary.directory.parent)
    until(lambda: event_source.poll(0) and not harness.watcher.is_watched(canary.directory), "the loss")
    now = 100.0

    def proven() -> bool:
        event_source.poll(now)
        return any(canary.directory.glob("pulse-*")) and event_source.is_alive(now + CANARY_TIMEOUT_SECONDS + 1)

    until(proven, "the canary in its new directory")


def test_watching_that_is_impossible_here_does_not_count_as_hung(harness: WatcherHarness, canary: Canary) -> None:
    """At the kernel's limit a new process would do no better. `unwatched` reports it."""
    event_source = EventSource(harness.watcher, canary)
    event_source.poll(0)
    event_source.poll(CANARY_INTERVAL_SECONDS + CANARY_TIMEOUT_SECONDS + 1)

    assert event_source.is_alive(CANARY_INTERVAL_SECONDS + CANARY_TIMEOUT_SECONDS + 1)

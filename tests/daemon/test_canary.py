from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from watchdog.events import FileSystemEvent

from echod.daemon.event_health import PATIENCE_SECONDS, PULSE_SECONDS, SILENT, Canary, EventPipe
from echod.daemon.events import Handler, Sink
from echod.daemon.watcher import Targets
from tests.daemon.watching import Watching, wait_until


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return Canary(tmp_path / "run" / "canary")


def _pulses(canary: Canary) -> list[Path]:
    return sorted(canary.directory.iterdir())


def test_nothing_speaks_against_a_pipe_that_was_not_tried(canary: Canary) -> None:
    assert canary.ok(0)
    assert canary.ok(10_000)


def test_a_pulse_that_comes_back_in_time_is_well(canary: Canary) -> None:
    canary.beat(0)
    canary.heard(_pulses(canary))

    assert canary.ok(PATIENCE_SECONDS + 1)


def test_a_pulse_that_does_not_come_back_is_not(canary: Canary) -> None:
    canary.beat(0)

    assert canary.ok(PATIENCE_SECONDS)
    assert not canary.ok(PATIENCE_SECONDS + 0.1)


def test_silence_is_seen_within_30_seconds() -> None:
    assert PULSE_SECONDS + PATIENCE_SECONDS < 30


def test_a_late_echo_of_an_earlier_pulse_proves_nothing(canary: Canary) -> None:
    canary.beat(0)
    early = _pulses(canary)
    canary.heard(early)
    canary.beat(PULSE_SECONDS)
    canary.heard(early)

    assert not canary.ok(PULSE_SECONDS + PATIENCE_SECONDS + 1)


def test_after_silence_only_a_heard_pulse_is_well_again(canary: Canary) -> None:
    canary.beat(0)
    canary.give_up()
    assert not canary.ok(1)

    canary.beat(1)
    assert not canary.ok(1)
    canary.heard(_pulses(canary))

    assert canary.ok(1)


def test_old_pulses_are_swept_and_other_files_are_not(canary: Canary) -> None:
    canary.directory.mkdir(parents=True)
    (canary.directory / "pulse-99").touch()
    (canary.directory / "wake").touch()

    canary.beat(0)

    assert [path.name for path in _pulses(canary)] == ["pulse-1", "wake"]


def test_a_pulse_that_cannot_be_written_says_so_and_proves_nothing(canary: Canary) -> None:
    canary.directory.parent.write_text("in the way")

    canary.beat(0)

    assert canary.unwritten
    assert canary.ok(PATIENCE_SECONDS + 1)


def test_a_live_pipe_hears_its_canary(watching: Watching, canary: Canary) -> None:
    pipe = EventPipe(watching.watcher, canary)
    pipe.arm(Targets())
    pipe.look(0)  # the canary's directory appears
    now = 0.0

    def heard() -> bool:
        pipe.look(now)
        return pipe.alive(PATIENCE_SECONDS + 1)

    wait_until(heard, "the canary")
    assert pipe.troubles(PATIENCE_SECONDS + 1) == ()


def test_a_dead_dispatcher_is_told_and_the_pipe_heals(watching: Watching, canary: Canary, store: Path) -> None:
    """Emitters look alive then; only the round trip shows it."""
    canary.directory.mkdir(parents=True)
    pipe = EventPipe(watching.watcher, canary)
    pipe.arm(Targets((store,)))
    observer = watching.watcher._observer
    assert observer is not None
    hook = threading.excepthook
    threading.excepthook = lambda _: None
    try:

        class Raising(Handler):
            def dispatch(self, event: FileSystemEvent) -> None:
                raise ValueError

        for emitter in list(observer.emitters):
            observer.add_handler_for_watch(Raising(Sink(threading.Event())), emitter.watch)
        (store / "poison.md").write_text("x")
        wait_until(lambda: not observer.is_alive(), "the dispatcher's end")
    finally:
        threading.excepthook = hook
    assert all(emitter.is_alive() for emitter in observer.emitters)

    pipe.look(0)
    late = PATIENCE_SECONDS + 1
    assert not pipe.alive(late)
    assert pipe.troubles(late) == (SILENT,)

    reasons: list[str] = []

    def healed() -> bool:
        reasons.extend(pipe.look(late).rescan)
        return pipe.alive(late)

    wait_until(healed, "the canary after the restart")
    assert SILENT in reasons


def test_a_swept_runtime_directory_needs_no_hand(watching: Watching, canary: Canary) -> None:
    """Some systems sweep there; without the directory the canary would be silent for ever without a word."""
    canary.directory.mkdir(parents=True)
    pipe = EventPipe(watching.watcher, canary)
    pipe.arm(Targets())
    pipe.look(0)
    shutil.rmtree(canary.directory.parent)
    wait_until(lambda: pipe.look(0) and not watching.watcher.watches(canary.directory), "the loss")
    now = 100.0

    def proven() -> bool:
        pipe.look(now)
        return any(canary.directory.glob("pulse-*")) and pipe.alive(now + PATIENCE_SECONDS + 1)

    wait_until(proven, "the canary in its new directory")


def test_a_pipe_that_cannot_exist_here_is_not_hung(watching: Watching, canary: Canary) -> None:
    """At the kernel's limit a new process would do no better; `unwatched` tells."""
    pipe = EventPipe(watching.watcher, canary)
    pipe.look(0)
    pipe.look(PULSE_SECONDS + PATIENCE_SECONDS + 1)

    assert pipe.alive(PULSE_SECONDS + PATIENCE_SECONDS + 1)

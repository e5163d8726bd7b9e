from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from watchdog.events import FileModifiedEvent, FileSystemEvent
from watchdog.observers.api import BaseObserver

from echod.daemon.events import (
    BUFFER_FULL,
    EVENT_NOT_RECORDED,
    OVERFLOW,
    WATCHES_NOT_REBUILT,
    BufferingEventHandler,
    EventBuffer,
    OverflowLogHandler,
)
from echod.daemon.watcher import DISPATCHER_DIED, Watcher, WatchTargets
from tests.daemon.watcher_harness import WatcherHarness
from tests.support import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify only exists on Linux")


def _observer(watcher: Watcher) -> BaseObserver:
    assert watcher._observer is not None
    return watcher._observer


# The events of each way of saving a file


def test_a_written_file_is_dirty(harness: WatcherHarness, store: Path) -> None:
    harness.set_targets(store)

    (store / "reviewer" / "MEMORY.md").write_text("x")

    harness.until(store / "reviewer" / "MEMORY.md")


def test_a_file_replaced_by_a_rename_inside_is_dirty_under_its_own_name(harness: WatcherHarness, store: Path) -> None:
    harness.set_targets(store)
    stage = store / "reviewer" / ".MEMORY.md.tmp"
    stage.write_text("x")

    stage.replace(store / "reviewer" / "MEMORY.md")

    harness.until(store / "reviewer" / "MEMORY.md")


def test_a_file_replaced_from_outside_is_dirty(harness: WatcherHarness, store: Path, tmp_path: Path) -> None:
    (store / "reviewer" / "MEMORY.md").write_text("old")
    outside = tmp_path / "outside"
    outside.write_text("new")
    harness.set_targets(store)

    outside.replace(store / "reviewer" / "MEMORY.md")

    harness.until(store / "reviewer" / "MEMORY.md")


def test_a_deleted_file_is_dirty(harness: WatcherHarness, store: Path) -> None:
    memory = store / "reviewer" / "MEMORY.md"
    memory.write_text("x")
    harness.set_targets(store)

    memory.unlink()

    harness.until(memory)


def test_a_new_role_written_at_once_is_dirty(harness: WatcherHarness, store: Path) -> None:
    harness.set_targets(store)

    (store / "planner").mkdir()
    (store / "planner" / "MEMORY.md").write_text("x")

    harness.until(store / "planner" / "MEMORY.md")


def test_a_tree_moved_in_is_dirty_down_to_its_files(harness: WatcherHarness, store: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "archive").mkdir(parents=True)
    (tree / "archive" / "a.md").write_text("x")
    harness.set_targets(store)

    tree.rename(store / "workers")

    harness.until(store / "workers" / "archive" / "a.md")


def test_a_waiting_loop_is_woken(store: Path) -> None:
    wake = threading.Event()
    with Watcher(EventBuffer(wake)) as watcher:
        watcher.set_targets(WatchTargets((store,)))
        watcher.drain()
        wake.clear()

        (store / "reviewer" / "MEMORY.md").write_text("x")

        assert wake.wait(20)


# Noise


@linux
def test_reading_and_listing_are_not_events(harness: WatcherHarness, store: Path) -> None:
    """Otherwise every read of a store would cause the next one."""
    memory = store / "reviewer" / "MEMORY.md"
    memory.write_text("x")
    harness.set_targets(store)

    for _ in range(20):
        memory.read_bytes()
        list(store.iterdir())
    harness.wait_for_pending_events(store / "beacon.md")

    assert harness.paths == {store / "beacon.md"}


def test_stages_and_other_dot_files_are_ignored_but_the_files_they_become_are_not(
    harness: WatcherHarness, store: Path
) -> None:
    harness.set_targets(store)
    stage = store / "reviewer" / ".MEMORY.md.echod-7"

    stage.write_text("x")
    (store / ".search-index.db").write_text("x")
    harness.wait_for_pending_events(store / "beacon.md")
    assert harness.paths == {store / "beacon.md"}

    stage.rename(store / "reviewer" / "MEMORY.md")
    harness.until(store / "reviewer" / "MEMORY.md")


def test_entries_of_a_hint_directory_are_reported_and_deeper_ones_are_not(
    harness: WatcherHarness, tmp_path: Path
) -> None:
    hint = tmp_path / "tmp"
    (hint / "deep").mkdir(parents=True)
    harness.set_targets(hints=(hint,))

    (hint / "deep" / "noise.json").write_text("x")
    (hint / ".rune-strive-1.json").write_text("x")

    harness.until(hint / ".rune-strive-1.json")
    assert hint / "deep" / "noise.json" not in harness.paths


# Exceptions and losses


def test_an_exception_while_an_event_is_recorded_ends_nothing_and_causes_a_rescan(
    harness: WatcherHarness, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.set_targets(store)
    real_add = EventBuffer.add

    def failing(self: EventBuffer, path: str | bytes) -> None:
        raise ValueError(path)

    monkeypatch.setattr(EventBuffer, "add", failing)
    (store / "reviewer" / "MEMORY.md").write_text("x")
    until(lambda: harness.drain() and harness.rescan, "the rescan")
    monkeypatch.setattr(EventBuffer, "add", real_add)

    assert harness.rescan == [EVENT_NOT_RECORDED] * len(harness.rescan)
    harness.until_seen(store / "reviewer" / "MEMORY.md")


def test_a_raising_handler_would_have_ended_watchdog(harness: WatcherHarness, store: Path) -> None:
    """The reason why our handler never raises and a dead dispatcher is replaced. If this fails, watchdog has changed."""
    harness.set_targets(store)
    hook = threading.excepthook
    threading.excepthook = lambda _: None
    try:
        _kill_dispatcher(harness.watcher, store)
    finally:
        threading.excepthook = hook

    assert all(emitter.is_alive() for emitter in _observer(harness.watcher).emitters)


def test_a_dead_dispatcher_is_replaced_when_targets_are_set_again(harness: WatcherHarness, store: Path) -> None:
    harness.set_targets(store)
    hook = threading.excepthook
    threading.excepthook = lambda _: None
    try:
        _kill_dispatcher(harness.watcher, store)
    finally:
        threading.excepthook = hook

    harness.watcher.set_targets(WatchTargets((store,)))

    assert DISPATCHER_DIED in harness.drain().rescan
    harness.until_seen(store / "reviewer" / "MEMORY.md")


def _kill_dispatcher(watcher: Watcher, store: Path) -> None:
    class Raising(BufferingEventHandler):
        def dispatch(self, event: FileSystemEvent) -> None:
            raise ValueError

    observer = _observer(watcher)
    watch = next(emitter.watch for emitter in observer.emitters)
    observer.add_handler_for_watch(Raising(EventBuffer(threading.Event())), watch)
    (store / "poison.md").write_text("x")
    until(lambda: not observer.is_alive(), "the dispatcher's end")


def test_a_restart_gives_a_reason_and_watches_again(harness: WatcherHarness, store: Path) -> None:
    harness.set_targets(store)
    before = _observer(harness.watcher)

    harness.watcher.restart("the canary fell silent")

    assert _observer(harness.watcher) is not before
    assert not before.is_alive()
    assert harness.drain().rescan == ("the canary fell silent",)
    harness.until_seen(store / "reviewer" / "MEMORY.md")


@linux
def test_an_overflow_of_the_kernel_queue_causes_a_rescan_and_watching_continues(
    harness: WatcherHarness, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real queue overflows: watchdog's reader is blocked while more events occur than the kernel keeps."""
    import watchdog.observers.inotify_c as native

    kept = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if kept > 50_000:
        pytest.skip(f"the kernel keeps {kept} events; filling that takes too long")
    may_read = threading.Event()
    handle = native.InotifyFD.handle_event

    def held_up(self: native.InotifyFD, event: native.InotifyEvent) -> None:
        may_read.wait()
        handle(self, event)

    monkeypatch.setattr(native.InotifyFD, "handle_event", held_up)
    harness.set_targets(store)
    here, there = store / "a.md", store / "b.md"
    here.write_text("x")
    for _ in range(kept // 4 + 2000):  # two events a rename, two renames a turn, and what the reader holds already
        here.rename(there)
        there.rename(here)
    may_read.set()

    until(lambda: harness.drain() and OVERFLOW in harness.rescan, "the rescan")
    harness.until_seen(store / "reviewer" / "MEMORY.md")


@linux
def test_watches_that_watchdog_could_not_rebuild_after_an_overflow_are_rebuilt_by_us(
    harness: WatcherHarness, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """watchdog only logs that. The watch looks complete but is not."""
    from watchdog.observers.inotify import InotifyWatchGroup

    harness.set_targets(store)
    [emitter] = _observer(harness.watcher).emitters
    with monkeypatch.context() as patch:

        def full(self: InotifyWatchGroup, path: bytes) -> None:
            raise OSError(28, "inotify watch limit reached")

        patch.setattr(InotifyWatchGroup, "_add_all_callbacks", full)
        emitter._inotify.on_queue_overflow()  # type: ignore[attr-defined]

    assert WATCHES_NOT_REBUILT in harness.drain().rescan
    harness.until_seen(store / "reviewer" / "MEMORY.md")


def test_an_overflow_is_detected_even_if_warnings_are_not_logged(store: Path) -> None:
    buffer = EventBuffer(threading.Event())
    logger = logging.getLogger("watchdog.observers.inotify_c")
    root_level = logging.getLogger().level
    logging.getLogger().setLevel(logging.CRITICAL)
    try:
        with OverflowLogHandler(buffer):
            logger.warning("Inotify queue overflowed; filesystem events were lost")
        logger.warning("after the tap was closed nothing is heard")
    finally:
        logging.getLogger().setLevel(root_level)

    assert buffer.drain() == (set(), (OVERFLOW,))
    assert buffer.drain() == (set(), ())


def test_more_paths_than_are_kept_become_a_rescan() -> None:
    buffer = EventBuffer(threading.Event(), max_paths=3)
    handler = BufferingEventHandler(buffer)

    for number in range(10):
        handler.dispatch(FileModifiedEvent(f"/s/{number}"))

    assert buffer.drain() == ({"/s/0", "/s/1", "/s/2"}, (BUFFER_FULL,))


def test_a_storm_over_one_file_loses_no_file(harness: WatcherHarness, store: Path) -> None:
    harness.set_targets(store)

    for number in range(2000):
        (store / "reviewer" / f"a{number % 50}-findings.md").write_text(str(number))
    harness.wait_for_pending_events(store / "beacon.md")

    assert len(harness.paths) == 51 or harness.rescan


def test_a_fast_mkdir_p_causes_no_warning_and_loses_nothing(harness: WatcherHarness, store: Path) -> None:
    harness.set_targets(store)
    wanted = {store / f"r{n}" / "a" / "b" / "f.md" for n in range(100)}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        harness.watcher.__enter__()  # installs the filter, as the daemon does
        for path in wanted:
            path.parent.mkdir(parents=True)
            path.write_text("x")
        harness.until(*wanted)


# Roots that come, go and change


def test_a_recreated_root_is_watched_again_without_waiting_for_a_reconcile(
    harness: WatcherHarness, store: Path
) -> None:
    hint = store.parent
    harness.set_targets(store, hints=(hint,))

    shutil.rmtree(store)
    harness.until(store)
    (store / "reviewer").mkdir(parents=True)

    harness.until_seen(store / "reviewer" / "MEMORY.md")


def test_a_root_recreated_unnoticed_is_watched_again_at_the_next_reconcile(
    harness: WatcherHarness, store: Path
) -> None:
    harness.set_targets(store)
    observer = _observer(harness.watcher)
    shutil.rmtree(store)
    until(lambda: not any(e.is_alive() for e in observer.emitters), "the end of the dead watch")
    (store / "reviewer").mkdir(parents=True)

    harness.watcher.set_targets(WatchTargets((store,)))

    harness.until_seen(store / "reviewer" / "MEMORY.md")


def test_a_renamed_root_is_noticed_by_its_identity(harness: WatcherHarness, store: Path, tmp_path: Path) -> None:
    harness.set_targets(store)
    store.rename(tmp_path / "elsewhere")
    (store / "reviewer").mkdir(parents=True)

    harness.set_targets(store)
    (tmp_path / "elsewhere" / "reviewer" / "MEMORY.md").write_text("no longer ours")

    harness.until_seen(store / "reviewer" / "other.md")
    assert store / "reviewer" / "MEMORY.md" not in harness.paths


@linux
@pytest.mark.parametrize("kind", ["root", "hint"])
def test_a_watch_that_the_kernel_dropped_is_set_again_though_the_directory_is_the_same(
    harness: WatcherHarness, store: Path, kind: str
) -> None:
    """A file system that was unmounted and mounted again is such a case: same device and inode, live threads, no watch."""
    import watchdog.observers.inotify_c as native

    targets = WatchTargets((store,)) if kind == "root" else WatchTargets(hints=(store,))
    harness.watcher.set_targets(targets)
    harness.clear()
    [emitter] = _observer(harness.watcher).emitters
    reader = emitter._inotify_fd  # type: ignore[attr-defined]
    for descriptor in list(reader._watch_for_wd):
        native.inotify_rm_watch(reader._inotify_fd, descriptor)
    until(lambda: not reader._watch_for_wd, "the end of the watch")

    harness.watcher.set_targets(targets)

    harness.until_seen(store / "MEMORY.md")


def test_a_root_behind_a_symlink_is_watched_and_reported_under_its_given_name(
    harness: WatcherHarness, store: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(store)
    harness.set_targets(link)

    (store / "reviewer" / "MEMORY.md").write_text("x")

    harness.until(link / "reviewer" / "MEMORY.md")


def test_a_symlink_that_points_elsewhere_now_is_followed_at_the_next_reconcile(
    harness: WatcherHarness, store: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    link = tmp_path / "link"
    link.symlink_to(store)
    harness.set_targets(link)
    link.unlink()
    link.symlink_to(other)

    harness.set_targets(link)
    (other / "MEMORY.md").write_text("x")

    harness.until(link / "MEMORY.md")


def test_setting_targets_reports_nothing_because_the_caller_reconciles_next(
    harness: WatcherHarness, store: Path
) -> None:
    harness.watcher.set_targets(WatchTargets((store,), (store.parent,)))

    assert harness.drain().paths == set()


def test_a_root_created_late_is_watched_and_counts_as_changed(harness: WatcherHarness, tmp_path: Path) -> None:
    """There is no event for files from before the watch, so the root itself counts as changed."""
    root = tmp_path / "project" / ".rune" / "echoes"
    harness.set_targets(root)

    (root / "reviewer").mkdir(parents=True)

    harness.until(root)
    harness.until_seen(root / "reviewer" / "MEMORY.md")


def test_marker_directories_that_do_not_exist_yet_are_seen_when_they_appear(
    harness: WatcherHarness, tmp_path: Path
) -> None:
    hint = tmp_path / "project" / "tmp" / ".rune-signals"
    (tmp_path / "project").mkdir()
    harness.set_targets(hints=(hint,))

    (tmp_path / "project" / "tmp").mkdir()
    hint.mkdir()
    (hint / ".echo-dirty").write_text("1")

    harness.until(hint)
    harness.until_seen(hint / ".echo-dirty")


def test_a_missing_directory_below_a_symlink_is_seen_when_it_appears(harness: WatcherHarness, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    hint = tmp_path / "link" / "tmp"
    harness.set_targets(hints=(hint,))

    (tmp_path / "real" / "tmp").mkdir()

    harness.until_seen(hint / "marker")


def test_a_project_that_vanishes_and_returns_is_picked_up_again(harness: WatcherHarness, store: Path) -> None:
    project = store.parents[1]
    harness.set_targets(store, hints=(project / "tmp",))
    away = project.with_name("away")

    project.rename(away)
    harness.watcher.set_targets(WatchTargets((store,), (project / "tmp",)))
    away.rename(project)

    harness.until(store)
    harness.until_seen(store / "reviewer" / "MEMORY.md")


def test_setting_the_same_targets_again_changes_nothing(harness: WatcherHarness, store: Path) -> None:
    harness.set_targets(store, hints=(store.parent,))
    before = set(_observer(harness.watcher).emitters)

    harness.watcher.set_targets(WatchTargets((store,), (store.parent,)))

    assert set(_observer(harness.watcher).emitters) == before
    assert not harness.drain().paths


def test_a_target_that_is_no_longer_set_is_unwatched(harness: WatcherHarness, store: Path) -> None:
    harness.set_targets(store, hints=(store.parent,))

    harness.watcher.set_targets(WatchTargets((store,)))

    assert len(_observer(harness.watcher).emitters) == 1


def test_missing_targets_share_one_watch_of_their_ancestor(harness: WatcherHarness, tmp_path: Path) -> None:
    harness.set_targets(hints=tuple(tmp_path / name / "deeper" for name in "abcdef"))

    assert len(_observer(harness.watcher).emitters) == 1
    assert harness.watcher.unwatched() == ()


@linux
def test_hints_cost_no_thread_each(harness: WatcherHarness, tmp_path: Path) -> None:
    """Four for each of a hundred projects would be 400 threads and 12 MB."""
    hints = tuple(tmp_path / f"h{number}" for number in range(50))
    for hint in hints:
        hint.mkdir()
    harness.set_targets(hints=hints)

    assert threading.active_count() < 20

    for hint in hints:
        (hint / "marker").write_text("x")
    harness.until(*(hint / "marker" for hint in hints))


def test_a_hint_inside_a_root_and_the_root_both_see_everything(harness: WatcherHarness, store: Path) -> None:
    """The kernel keeps one mask for each directory, and the last one counts."""
    harness.set_targets(store, hints=(store / "reviewer",))
    memory = store / "reviewer" / "MEMORY.md"
    memory.write_text("x")
    harness.until(memory)

    harness.set_targets(store)
    memory.with_name("new").mkdir()
    memory.with_name("new").rename(memory.with_name("renamed"))
    (memory.with_name("renamed") / "f.md").write_text("x")
    harness.until(memory.with_name("renamed") / "f.md")

    memory.unlink()
    harness.until(memory)


@pytest.mark.parametrize("change", ["written", "moved in", "moved away", "deleted", "directory made", "directory gone"])
def test_every_change_of_an_entry_of_a_hint_is_reported(harness: WatcherHarness, tmp_path: Path, change: str) -> None:
    hint, outside = tmp_path / "tmp", tmp_path / "outside"
    (hint / "lock").mkdir(parents=True)
    (hint / "state.json").write_text("x")
    outside.write_text("x")
    harness.set_targets(hints=(hint,))

    match change:
        case "written":
            (hint / "state.json").write_text("y")
        case "moved in":
            outside.replace(hint / "state.json")
        case "moved away":
            (hint / "state.json").rename(tmp_path / "away")
        case "deleted":
            (hint / "state.json").unlink()
        case "directory made":
            (hint / "new").mkdir()
        case _:
            (hint / "lock").rmdir()

    harness.until({"directory made": hint / "new", "directory gone": hint / "lock"}.get(change, hint / "state.json"))


def test_closing_ends_every_thread_and_descriptor(store: Path) -> None:
    threads = set(threading.enumerate())
    with Watcher(EventBuffer(threading.Event())) as watcher:
        watcher.set_targets(WatchTargets((store,), (store.parent,)))

    assert {thread for thread in threading.enumerate() if thread not in threads} == set()


# Limits


@linux
def test_a_recursive_watch_at_the_limit_is_reported_as_partial_and_recovers(tmp_path: Path) -> None:
    """watchdog reports success there. The limit is that of a user namespace, so the host is not affected."""
    _run_limited("max_inotify_watches", 5, _PARTIAL_SCRIPT, tmp_path)


@linux
def test_without_an_inotify_instance_everything_is_unwatched_with_a_reason(tmp_path: Path) -> None:
    _run_limited("max_inotify_instances", 0, _NO_INSTANCE_SCRIPT, tmp_path)


@linux
@pytest.mark.skipif(os.geteuid() != 0, reason="gives up the right to read everything, which only root has")
def test_a_directory_that_may_not_be_read_is_unwatched_with_a_reason(tmp_path: Path) -> None:
    """watchdog reports success there too."""
    (tmp_path / "echoes").mkdir()
    (tmp_path / "echoes").chmod(0o300)

    _run(["setpriv", "--bounding-set=-dac_override,-dac_read_search"], _UNREADABLE_SCRIPT, tmp_path)


_PRELUDE = """
import os, sys, threading, time, warnings
from pathlib import Path
from echod.daemon.events import OVERFLOW, EventBuffer
from echod.daemon.watcher import WatchTargets
from echod.daemon.watcher import PARTIALLY_WATCHED, Watcher
base = Path(sys.argv[1])
buffer = EventBuffer(threading.Event())
def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "never happened"
        time.sleep(0.01)
"""

_PARTIAL_SCRIPT = (
    _PRELUDE
    + """
root = base / "echoes"
for n in range(9):
    (root / f"r{n}").mkdir(parents=True)
with Watcher(buffer) as watcher:
    watcher.set_targets(WatchTargets((root,)))
    assert watcher.drain().rescan == (PARTIALLY_WATCHED,)
    [(path, reason)] = watcher.unwatched()
    assert path == root and reason.startswith("5 directories below it are not watched"), reason
    watcher.set_targets(WatchTargets((root,)))
    assert watcher.drain().rescan == (), "reported once"
    watcher.set_targets(WatchTargets((root,), tuple(root / f"r{n}" for n in range(9))))
    assert any("max_user_watches" in why for _, why in watcher.unwatched())
    for n in range(6):
        (root / f"r{n}").rmdir()
    def recovered():
        watcher.set_targets(WatchTargets((root,)))
        return watcher.unwatched() == ()
    until(recovered)
    watcher.drain()
    (root / "r8" / "MEMORY.md").write_text("x")
    seen = set()
    until(lambda: seen.update(watcher.drain().paths) or root / "r8" / "MEMORY.md" in seen)
"""
)

_NO_INSTANCE_SCRIPT = (
    _PRELUDE
    + """
with Watcher(buffer) as watcher:
    watcher.set_targets(WatchTargets((base,)))
    [(path, reason)] = watcher.unwatched()
    assert path == base and "max_user_instances" in reason, reason
    assert watcher.drain().rescan == (PARTIALLY_WATCHED,)
    watcher.set_targets(WatchTargets((base,)))
    assert watcher.drain().rescan == (), "reported once"
"""
)

_UNREADABLE_SCRIPT = (
    _PRELUDE
    + """
root = base / "echoes"
with Watcher(buffer) as watcher:
    watcher.set_targets(WatchTargets((root,)))
    assert watcher.unwatched() == ((root, "Permission denied"),), watcher.unwatched()
"""
)


def _run_limited(limit: str, value: int, script: str, base: Path) -> None:
    wrapped = ["unshare", "-Ur", "sh", "-c", f'echo {value} > /proc/sys/user/{limit} && exec "$@"', "sh"]
    probe = subprocess.run([*wrapped, "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"no user namespace with own inotify limits here: {probe.stderr.strip()}")
    _run(wrapped, script, base)


def _run(wrapper: list[str], script: str, base: Path) -> None:
    done = subprocess.run(
        [*wrapper, sys.executable, "-W", "error", "-c", script, str(base)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr

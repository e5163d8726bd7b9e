"""Decide when things are due, and do what the daemon does beside its jobs: search index, summaries, secret scans.

A search is correct without it, because it compares the files itself. The thread exists for speed, so an error is logged
and the next request tries again. The index stays open while the daemon runs, since closing it would write to the disk.

The hook has only milliseconds, so it prints a file (`echod.hooks.run`). This module writes that file when the
memory changed.

The last section decides when things are due: `Debounce` and `ClockJumpDetector` are pure, with the time as an argument,
and `IntervalScheduler` runs a thread.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable
from datetime import UTC
from pathlib import Path
from typing import Generic, NamedTuple, Self, TypeVar

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from echod.contract.status import SessionsInfo, Severity, StatusWarning
from echod.errors import isolated
from echod.files import FileVersion, read_regular, regular_file_version, write_runtime_file
from echod.hooks.run import NOTICE_DIRECTORY, SUMMARY_DIRECTORY, summary_name
from echod.inspection import InspectionCache
from echod.inspection.secrets import SecretScanner
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.memory.session_summary import summarize_memories
from echod.paths import PRIVATE_DIR_MODE
from echod.runtime.system import release_free_memory
from echod.search.documents import DocumentSource
from echod.search.finder import DocumentFinder
from echod.store import layout
from echod.store.layout import Role, Store

log = get_logger(__name__)

JUMP_THRESHOLD_SECONDS = 30.0
"""A larger difference between the clocks is a jump. Time servers slew smaller ones."""

Key = TypeVar("Key")


class Debounce(Generic[Key]):
    """Marked keys, each due `quiet_seconds` after its last mark and at most `max_seconds` after its first mark.

    The maximum guarantees that a writer without pauses cannot prevent the inspection of a store. A store whose
    inspection takes long may be held off, which nothing shortens.

    Times are seconds of any clock that does not jump. A clock that is set back only makes a key due sooner.
    """

    def __init__(self, quiet_seconds: float, max_seconds: float) -> None:
        self._quiet = quiet_seconds
        self._max = max(max_seconds, quiet_seconds)
        self._marks: dict[Key, tuple[float, float]] = {}  # the first and the last mark
        self._held_off_until: dict[Key, float] = {}

    def __len__(self) -> int:
        return len(self._marks)

    def mark(self, key: Key, now: float) -> None:
        """Record that `key` changed at `now`."""
        first_at, _ = self._marks.get(key, (now, now))
        self._marks[key] = (first_at, now)

    def hold_off(self, key: Key, until: float) -> None:
        """Keep `key` from being due before `until`, even if it changes."""
        self._held_off_until[key] = until

    def is_held_off(self, key: Key, now: float) -> bool:
        """Return whether `key` is held off at `now`."""
        return self._held_off_until.get(key, now) > now

    def ready(self, now: float) -> tuple[Key, ...]:
        """Return the due keys in the order of their first marks, and unmark them."""
        self._held_off_until = {key: until for key, until in self._held_off_until.items() if until > now}
        due = [key for key in self._marks if self._due_at(key) <= now]
        for key in due:
            del self._marks[key]
        return tuple(due)

    def next_due(self) -> float | None:
        """Return when the next key is due if nothing else changes; None if no key is marked."""
        return min(map(self._due_at, self._marks), default=None)

    def _due_at(self, key: Key) -> float:
        first_at, last_at = self._marks[key]
        quiet_at = min(last_at + self._quiet, first_at + self._max)
        return max(quiet_at, self._held_off_until.get(key, quiet_at))


class ClockJumpDetector:
    """Detect that the wall clock was set or that the machine slept. Times are seconds.

    The monotonic clock neither jumps nor (on Linux) runs while the machine sleeps, so both show as a change of the
    difference between the two clocks. Everything scheduled by the wall clock must then be scheduled again.
    """

    def __init__(self, wall: float, monotonic: float, threshold: float = JUMP_THRESHOLD_SECONDS) -> None:
        self._offset = wall - monotonic
        self._threshold = threshold

    def check(self, wall: float, monotonic: float) -> float | None:
        """Return by how many seconds the wall clock is ahead (negative: behind) since the last jump, or None.

        Slow drift adds up, so it is reported in the end. After a report the new difference is the normal one.
        """
        jump_seconds = wall - monotonic - self._offset
        if abs(jump_seconds) <= self._threshold:
            return None
        self._offset += jump_seconds
        return jump_seconds


class PeriodicTask(NamedTuple):
    """An action that is called every `seconds`, for the first time after one interval.

    All actions share one thread, so an action only sets an event or a mark.
    """

    name: str
    seconds: float
    action: Callable[[], object]


class IntervalScheduler:
    """Run periodic tasks while entered.

    It stores nothing. "Daily" work is not decided here but from the time it was last done, so that a machine that
    slept catches up.
    """

    def __init__(self, tasks: Iterable[PeriodicTask]) -> None:
        self._tasks = tuple(tasks)
        self._scheduler = BackgroundScheduler(
            jobstores={"default": MemoryJobStore()},
            executors={"default": ThreadPoolExecutor(1)},
            # After a sleep one call replaces all that were missed, and is not dropped for being late.
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
            timezone=UTC,
        )

    def __enter__(self) -> Self:
        for task in self._tasks:
            self._scheduler.add_job(task.action, _interval_trigger(task), id=task.name, name=task.name)
        self._scheduler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.shutdown()

    def reschedule_all(self) -> None:
        """Start every interval again from now. Call this after a jump of the wall clock.

        The scheduler plans by the wall clock. After that was set back by an hour, no task would run for that hour.
        """
        for task in self._tasks:
            self._scheduler.reschedule_job(task.name, trigger=_interval_trigger(task))
        log.info("intervals_rescheduled", tasks=len(self._tasks))


def _interval_trigger(task: PeriodicTask) -> IntervalTrigger:
    return IntervalTrigger(seconds=task.seconds, timezone=UTC)


STOP_SECONDS = 5.0
"""How long the stop waits for a refresh. A killed one leaves a usable index."""

CLOSE_SECONDS = 10.0
"""After so long without work the index is closed: its pages take megabytes, and the next work may be hours away."""


class SearchIndexer:
    """The thread, and the stores that it has still to look at.

    Args:
        finder: the index.
        sources_of: returns the sources of a store.
        shared_sources: returns the sources that belong to no project.
        close_seconds: how long the index stays open without work.
    """

    def __init__(
        self,
        finder: DocumentFinder,
        *,
        sources_of: Callable[[Store], Iterable[DocumentSource]],
        shared_sources: Callable[[], Iterable[DocumentSource]],
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        self._finder = finder
        self._close_seconds = close_seconds
        self._sources_of = sources_of
        self._shared_sources = shared_sources
        self._pending: dict[str, Store] = {}
        self._shared_requested = False
        self._condition = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="search-index", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._stopped = True
            self._condition.notify()
        self._thread.join(STOP_SECONDS)
        if not self._thread.is_alive():
            self._finder.close()

    def request(self, stores: Iterable[Store]) -> None:
        """Look at these stores soon."""
        with self._condition:
            self._pending.update((store.key, store) for store in stores)
            self._condition.notify()

    def request_shared(self) -> None:
        """Look at the global store soon."""
        with self._condition:
            self._shared_requested = True
            self._condition.notify()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            try:
                self._finder.refresh(work)
                if not work[0].project:
                    self._finder.forget_missing()
            except Exception:
                log.exception("search_index_failed")

    def _next(self) -> list[DocumentSource] | None:
        """Wait for work. Return the sources of one store, so that a stop does not wait for all; None to stop."""
        if not self._wait(self._close_seconds):
            self._finder.close()  # syncs the disk, so not while the loop waits for the lock
            release_free_memory()
            self._wait(None)
        with self._condition:
            if self._stopped:
                return None
            if self._shared_requested:
                self._shared_requested = False
                return list(self._shared_sources())
            store = self._pending.pop(next(iter(self._pending)))
        return list(self._sources_of(store))

    def _wait(self, seconds: float | None) -> bool:
        """Wait for work or the stop, at most so long. Return whether there is any."""
        with self._condition:
            return bool(
                self._condition.wait_for(lambda: self._stopped or self._pending or self._shared_requested, seconds)
            )


STEP_BUDGET_BYTES = 128 * 1024
"""Bytes of new and changed files that one step reads, which keeps a step well below a second."""

QUIET_SECONDS, MAX_DELAY_SECONDS = 5.0, 60.0
"""A store that was scanned before is scanned again after it was quiet this long, and at the latest after a minute."""

STEP_SECONDS = 0.2
"""Pause between two steps."""


class SecretScanTask:
    """The stores that are still to be scanned, and since when secrets are known. Used by one thread."""

    def __init__(self, inspections: InspectionCache) -> None:
        self._scanner = SecretScanner(inspections)
        self._stores: dict[str, Store] = {}
        self._debounce: Debounce[str] = Debounce(QUIET_SECONDS, MAX_DELAY_SECONDS)
        self._pending: dict[str, Store] = {}
        self._found_since: dict[str, float] = {}

    def seconds_until_next_step(self, monotonic: float) -> float | None:
        """Return for how long another step would do nothing; None if no store is marked."""
        if self._pending:
            return STEP_SECONDS
        due = self._debounce.next_due()
        return None if due is None else due - monotonic

    def mark_changed(self, stores: Iterable[Store], monotonic: float) -> None:
        """Schedule a scan of stores that may have changed."""
        for store in stores:
            if store.key in self._stores:
                self._debounce.mark(store.key, monotonic)
            else:
                self._pending[store.key] = store
            self._stores[store.key] = store

    def run_step(self, now: float, monotonic: float) -> bool:
        """Scan a part of what is scheduled. Return whether the warnings have changed.

        Args:
            now: Unix seconds, reported as the time since when a secret is known.
            monotonic: seconds of the clock that `mark_changed` uses.
        """
        self._pending.update((key, self._stores[key]) for key in self._debounce.ready(monotonic))
        if not self._pending:
            return False
        key, store = next(iter(self._pending.items()))
        before = self._scanner.count(store)
        del self._pending[key]
        with isolated(key):
            if not self._scanner.scan(store, STEP_BUDGET_BYTES):
                self._pending[key] = store  # behind the others
        after = self._scanner.count(store)
        if after:
            self._found_since.setdefault(key, now)
        else:
            self._found_since.pop(key, None)
        return before != after

    def warnings(self, stores: Collection[Store]) -> tuple[StatusWarning, ...]:
        """Return the warnings about these stores."""
        return tuple(
            self._warning(store, self._found_since[store.key]) for store in stores if store.key in self._found_since
        )

    def _warning(self, store: Store, since: float) -> StatusWarning:
        count = self._scanner.count(store)
        places = "1 place" if count == 1 else f"{count} places"
        text = f"Text that looks like a secret is in {places} of {store.root}. Agents read it, and others may too."
        fix = f"Show the places and remove the secrets with: echod scrub {store.project}"
        return StatusWarning("secrets-on-disk", Severity.WARNING, since, text, fix)


class SessionSummaries:
    """The summaries in the state directory. Unless `enabled`, those from earlier are removed. Owned by one thread."""

    def __init__(self, state: Path, *, enabled: bool) -> None:
        self._directory = state / SUMMARY_DIRECTORY
        self._enabled = enabled
        self._versions: dict[Path, dict[Role, FileVersion]] = {}

    def update(self, stores: Iterable[Store]) -> None:
        """Write the summaries of the projects of these stores again, where a memory file has changed."""
        if not self._enabled:
            return
        for project in dict.fromkeys(store.project for store in stores):
            with isolated(str(project)):
                self._update_project(project)

    def remove_stale(self, projects: Iterable[Path]) -> None:
        """Remove the summaries of all projects except these."""
        current_names = {summary_name(str(project)) for project in projects} if self._enabled else set()
        try:
            for file in self._directory.iterdir():
                if file.name not in current_names:
                    file.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("stale_summaries_not_removed", error=error.strerror)

    def _update_project(self, project: Path) -> None:
        name = summary_name(str(project))
        roles = [role for store in layout.find_stores(project) for role in layout.find_roles(store)]
        found = {role: regular_file_version(role.memory, MAX_FILE_BYTES) for role in roles}
        versions = {role: version for role, version in found.items() if version is not None}
        if name is None or self._versions.get(project) == versions:
            return
        text = summarize_memories([(role.name, read_regular(role.memory, MAX_FILE_BYTES)) for role in versions])
        file = self._directory / name
        if text:
            self._directory.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
            output = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
            write_runtime_file(file, json.dumps(output, ensure_ascii=False))
        else:
            file.unlink(missing_ok=True)
        self._versions[project] = versions


_PRESSURES = ("none", "notice", "warning", "full")
_LEVEL_SUFFIX = ".level"


class PressureNotices:
    """The notices about a curated MEMORY.md that fills up, which the next session of its project gets.

    A notice is given once until the file is short again, and again when it becomes fuller by a level. The level that
    was last given is in a file, so a restart repeats nothing. Owned by one thread.
    """

    def __init__(self, state: Path) -> None:
        self._directory = state / NOTICE_DIRECTORY
        self._infos: tuple[SessionsInfo, ...] | None = None

    def update(self, infos: tuple[SessionsInfo, ...] | None) -> None:
        """Write the notices that are due, and remove those that no longer hold. None changes nothing."""
        if infos is None or infos == self._infos:
            return
        current: set[str] = set()
        for info in infos:
            name = summary_name(info.project)
            if name is not None and info.pressure != _PRESSURES[0]:
                current |= {name, f"{name}{_LEVEL_SUFFIX}"}
                self._give(info, self._directory / name)
        for file in self._directory.iterdir() if self._directory.is_dir() else ():
            if file.name not in current:
                file.unlink(missing_ok=True)
        self._infos = infos

    def _give(self, info: SessionsInfo, file: Path) -> None:
        level = file.with_name(f"{file.name}{_LEVEL_SUFFIX}")
        try:
            given = read_regular(level, MAX_FILE_BYTES).decode("utf-8", "replace").strip()
        except FileNotFoundError:
            given = ""
        if given in _PRESSURES and _PRESSURES.index(given) >= _PRESSURES.index(info.pressure):
            return
        self._directory.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
        write_runtime_file(file, json.dumps(_pressure_text(info), ensure_ascii=False)[1:-1])
        write_runtime_file(level, f"{info.pressure}\n")


def _pressure_text(info: SessionsInfo) -> str:
    more = " The user is asked about proposals: echod review." if info.pressure == "full" else ""
    return (
        f"From echod: the curated memory {info.root}/memory/MEMORY.md is {info.memory_percent} % full. Hosts load no "
        "more than 200 lines or 25,000 characters. Move details to topic files and remove what is no longer true. "
        f"Proposals: echod sessions distill.{more}"
    )

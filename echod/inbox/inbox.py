"""Assign the events of hooks to stores and roles, and drop the others, each with a reason.

An assigned observation waits here for the observe job of its role. Its file stays in the spool until the entry is in
the memory. Dropped events are counted by reason, so that the user can find out what happened to an observation.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from echod.clock import local_date
from echod.errors import GARBLED_ERRORS, EchodError, UsageError
from echod.files import read_regular
from echod.inbox.spool import Spool, SpooledEvent
from echod.lazy import lazy_pattern
from echod.log import get_logger
from echod.memory.observations import Observation, ObservationDropReason, observe_task, parse_learning, parse_task
from echod.paths import is_openable_path
from echod.projects.discovery import ProjectLocator, main_worktree_path
from echod.state.session_log import HookEventLog, SessionHint
from echod.store import layout
from echod.store.create import create_findings_file
from echod.store.errors import StoreError
from echod.store.layout import Role, Store

log = get_logger(__name__)

RECEIVED, REGISTERED, NOTED = "received", "the project was registered", "the session is archived"
LEARNED = "the learning became a finding"

_AGENT_ID = lazy_pattern(r"[A-Za-z0-9_-]{1,128}")
_DEFINITION_FIELDS = ("customAgentType", "spawnedAgentType")
_MAX_META_BYTES = 64 * 1024


class DropReason(StrEnum):
    """The reason why an event is dropped, as `echod claude status` shows it."""

    NO_DIRECTORY = "the event names no directory"
    NO_STORE = "there is no memory at or above the session's directory (echod init)"
    NOT_REGISTERED = "the project is not registered (echod add)"
    OPTED_OUT = "the project's settings disable observations"
    NO_ROLE = "the role has no memory file (echod init)"
    ALREADY_RECORDED = "the task was already recorded"
    RECORDED_ELSEWHERE = "another program has recorded the task"


class InboxSettings(NamedTuple):
    """The settings for events.

    Attributes:
        teams: patterns of the teams whose tasks are observed.
        projects: returns the resolved roots of the projects that are maintained now.
        register: registers a project when a session starts in it; None if the user did not enable that.
        observations_enabled: returns whether a project allows observations.
        locator: the rule by which a session's directory belongs to a project.
        session_hint: records that a session ended or is being compacted; false if no one needs that.
    """

    teams: Sequence[str]
    projects: Callable[[], Collection[Path]]
    register: Callable[[Path], None] | None
    observations_enabled: Callable[[Path], bool]
    locator: ProjectLocator
    session_hint: Callable[[Path, str, SessionHint], bool] = lambda *_: False


class PendingObservation(NamedTuple):
    """An observation in the spool, and its store."""

    spooled_event: SpooledEvent
    store: Store
    observation: Observation


class Inbox:
    """The pending observations of all stores. One for each process. Thread-safe."""

    def __init__(self, spool: Spool, event_log: HookEventLog, settings: InboxSettings) -> None:
        self._spool = spool
        self._event_log = event_log
        self._settings = settings
        self._pending: dict[str, PendingObservation] = {}
        self._extra_projects: set[Path] = set()
        self._stores_by_directory: dict[str, Store | DropReason] = {}
        self._hinted: set[str] = set()
        self._lock = threading.Lock()

    def refresh(self, now: float, extra_projects: Iterable[Path] = ()) -> frozenset[str]:
        """Read the new events of the spool, and return the keys of the stores with pending observations or sessions.

        `extra_projects` are maintained from now on even if they are not registered.
        """
        with self._lock:
            self._extra_projects.update(extra_projects)
            try:
                events = self._spool.list_events()
            except OSError as error:
                log.warning("spool_unreadable", error=error.strerror)
                return frozenset()
            self._spool.remove_unfinished(now)
            # Read again each time: an event of a project that was registered a moment ago must not be dropped.
            projects = {*self._extra_projects, *self._settings.projects()} if events else set()
            self._stores_by_directory.clear()
            self._hinted.clear()
            outcomes: dict[SpooledEvent, str] = {}
            all_pending: dict[str, PendingObservation] = {}
            for spooled in events:
                match self._pending.get(spooled.name) or self._route_isolated(spooled, projects):
                    case PendingObservation() as pending if pending.store.project in projects:
                        all_pending[spooled.name] = pending
                    case PendingObservation():
                        outcomes[spooled] = DropReason.NOT_REGISTERED
                    case str() as outcome:
                        outcomes[spooled] = outcome
            self._pending = all_pending
            self._remove_and_count(outcomes, now)
            return frozenset(pending.store.key for pending in all_pending.values()) | self._hinted

    def pending_for(self, store: Store) -> Mapping[str, tuple[PendingObservation, ...]]:
        """Return the pending observations of a store by role, in the order of the events."""
        by_role: dict[str, list[PendingObservation]] = {}
        with self._lock:
            for pending in self._pending.values():
                if pending.store == store:
                    by_role.setdefault(pending.observation.role, []).append(pending)
        return {role: tuple(all_pending) for role, all_pending in by_role.items()}

    def remove_recorded(self, all_pending: Iterable[PendingObservation]) -> None:
        """Remove observations whose entries are in the memory and were counted."""
        names = [pending.spooled_event.name for pending in all_pending]
        with self._lock:
            self._spool.remove(names)
            for name in names:
                self._pending.pop(name, None)

    def drop(self, all_pending: Mapping[PendingObservation, str], now: float) -> None:
        """Remove observations that do not become entries, and count their reasons."""
        with self._lock:
            self._remove_and_count({pending.spooled_event: reason for pending, reason in all_pending.items()}, now)
            for pending in all_pending:
                self._pending.pop(pending.spooled_event.name, None)

    def _remove_and_count(self, outcomes: Mapping[SpooledEvent, str], now: float) -> None:
        # Removed first: of two processes that read the same spool, only one counts an event.
        removed = self._spool.remove(spooled.name for spooled in outcomes)
        totals = Counter(
            (spooled.kind, str(outcome)) for spooled, outcome in outcomes.items() if spooled.name in removed
        )
        for (kind, outcome), number in totals.items():
            self._event_log.add_count(kind, outcome, number, now)

    def _route_isolated(self, spooled: SpooledEvent, projects: set[Path]) -> PendingObservation | str | None:
        """Return what `_route` returns. An event that cannot be handled costs no other event anything."""
        try:
            return self._route(spooled, projects)
        except (OSError, EchodError) as error:  # perhaps for a moment only, so the event waits
            log.warning("event_deferred", name=spooled.name, error=str(error))
            return None
        except Exception:
            log.exception("event_dropped", name=spooled.name)
            return ObservationDropReason.UNREADABLE

    def _route(self, spooled: SpooledEvent, projects: set[Path]) -> PendingObservation | str | None:
        """Return the observation of an event, or its outcome; None if it cannot be read now, or was taken."""
        try:
            event = self._spool.read(spooled)
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning("event_unreadable", name=spooled.name, error=error.strerror)
            return None
        if event is None:
            return ObservationDropReason.UNREADABLE
        match spooled.kind:
            case "task-completed":
                return self._handle_task(spooled, event, projects)
            case "session-start":
                return self._handle_session_start(event, projects)
            case "session-end":
                return self._handle_session(event, projects, SessionHint(ended_at=spooled.spooled_at))
            case "pre-compact":
                return self._handle_session(event, projects, SessionHint(compacting_at=spooled.spooled_at))
            case "learn":
                return _handle_learning(spooled, event)
            case _:
                return RECEIVED

    def _handle_session(self, event: Mapping[str, object], projects: set[Path], hint: SessionHint) -> str:
        """Pass on that a session ended or is being compacted. It is only a hint: sessions are found by looking."""
        session, store = event.get("session_id"), self._find_store(event)
        if not isinstance(session, str) or not _AGENT_ID.fullmatch(session) or not isinstance(store, Store):
            return RECEIVED
        if store.project in projects and self._settings.session_hint(store.project, session, hint):
            self._hinted.add(store.key)
            return NOTED
        return RECEIVED

    def _handle_session_start(self, event: Mapping[str, object], projects: set[Path]) -> str:
        store = self._find_store(event)
        if not isinstance(store, Store) or store.project in projects or self._settings.register is None:
            return RECEIVED
        try:
            self._settings.register(store.project)
        except UsageError as error:  # a path that the list of projects cannot contain
            log.warning("project_not_registered", error=str(error))
            return RECEIVED
        projects.add(store.project)
        return REGISTERED

    def _handle_task(
        self, spooled: SpooledEvent, event: Mapping[str, object], projects: set[Path]
    ) -> PendingObservation | str:
        task = parse_task(event)
        definition, day = _agent_definition(event) if task.teammate else "", local_date(spooled.spooled_at)
        observation = observe_task(task, definition=definition, teams=self._settings.teams, day=day)
        if isinstance(observation, ObservationDropReason):
            return observation
        store = self._find_store(event)
        if isinstance(store, DropReason):
            return store
        if store.project not in projects:
            return DropReason.NOT_REGISTERED
        if not self._settings.observations_enabled(store.project):
            return DropReason.OPTED_OUT
        if not has_memory_file(Role(store, observation.role)):
            return DropReason.NO_ROLE
        return PendingObservation(spooled, store, observation)

    def _find_store(self, event: Mapping[str, object]) -> Store | DropReason:
        """Return the nearest store at or above the session's directory. In a worktree, of the main worktree."""
        directory = event.get("cwd")
        if not isinstance(directory, str) or not is_openable_path(directory):
            return DropReason.NO_DIRECTORY
        if directory not in self._stores_by_directory:
            self._stores_by_directory[directory] = self._find_nearest_store(Path(directory))
        return self._stores_by_directory[directory]

    def _find_nearest_store(self, directory: Path) -> Store | DropReason:
        try:
            root = main_worktree_path(directory)
        except (OSError, ValueError):  # not a path: too long, or with invalid characters
            return DropReason.NO_DIRECTORY
        try:
            project = self._settings.locator.find_project(root)
            stores = () if project is None else self._settings.locator.find_stores(project)
        except OSError:
            return DropReason.NO_STORE
        return stores[0] if stores else DropReason.NO_STORE


def _handle_learning(spooled: SpooledEvent, event: Mapping[str, object]) -> str | None:
    """Write a reported learning to a findings file of its own. Return the outcome; None to try again later.

    The name of the file depends on the event, so that an event which is read twice is written once.
    """
    learning = parse_learning(event, local_date(spooled.spooled_at))
    if learning is None:
        return ObservationDropReason.UNREADABLE
    role = Role(layout.store_at(Path(learning.store)), learning.role)
    try:
        known = any(store.key == learning.store for store in layout.find_stores(role.store.project))
        if not known or not any(existing.name == role.name for existing in layout.find_roles(role.store)):
            return DropReason.NO_STORE if not known else DropReason.NO_ROLE
        name = f"mcp-{spooled.name.partition('.')[0]}-findings.md"
        create_findings_file(role, name, learning.data, os.getpid())
    except (OSError, StoreError) as error:  # perhaps for a moment only
        log.warning("learning_not_written", role=str(role.path), error=str(error))
        return None
    return LEARNED


def has_memory_file(role: Role) -> bool:
    """Return whether a role has a memory file. Observations do not create one."""
    try:
        return stat.S_ISDIR(role.path.lstat().st_mode) and stat.S_ISREG(role.memory.lstat().st_mode)
    except OSError:
        return False


def _agent_definition(event: Mapping[str, object]) -> str:
    """Return the definition of a team member. The event does not name it; Claude Code stores it at the transcript."""
    transcript, agent = event.get("transcript_path"), event.get("agent_id")
    if not isinstance(transcript, str) or not isinstance(agent, str):
        return ""
    if not is_openable_path(transcript) or not Path(transcript).name or not _AGENT_ID.fullmatch(agent):
        return ""
    meta = Path(transcript).with_suffix("") / "subagents" / f"agent-{agent}.meta.json"
    try:
        fields = json.loads(read_regular(meta, _MAX_META_BYTES, follow_symlinks=False))
    except (OSError, *GARBLED_ERRORS):
        return ""
    names = (fields.get(name) for name in _DEFINITION_FIELDS) if isinstance(fields, dict) else ()
    return next((name for name in names if isinstance(name, str) and name), "")

"""Sorts what hooks told: which completed task belongs to which store and role, and what is dropped for which reason.

Whatever is kept waits here for the observe job of its role; its file stays in the spool until the entry is in the
memory. What is dropped is counted, so that nobody has to wonder where an observation went.
"""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from echod.inbox.spool import Spool, Spooled
from echod.log import get_logger
from echod.memory.observations import Drop, Observation, observe, task_of
from echod.projects.worktrees import original
from echod.state.hook_events import ObservedLog
from echod.store import layout
from echod.store.layout import Role, Store

log = get_logger(__name__)

TASK, SESSION_START = "task-completed", "session-start"
HEARD, REGISTERED = "heard", "the project was registered"

_AGENT_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_DEFINITION_FIELDS = ("customAgentType", "spawnedAgentType")
_LARGEST_META_BYTES = 64 * 1024


class Elsewhere(StrEnum):
    """Why an event has no place to go to; the words are shown to the person who asks."""

    NO_DIRECTORY = "the event names no directory"
    NO_STORE = "there is no memory at or above the session's directory (echod init)"
    NOT_REGISTERED = "the project is not registered (echod add)"
    OPTED_OUT = "the project's settings do not want observations"
    NO_ROLE = "the role has no memory file (echod init)"
    KNOWN = "the task was told before"
    SIGNALLED = "another program has recorded the task"


class Rules(NamedTuple):
    """What the settings say about events.

    Attributes:
        teams: patterns of the teams that are listened to.
        projects: the resolved roots of the projects that are maintained at this moment.
        register: puts a project on the list at the start of a session in it; None where the person did not ask for it.
        wanted: whether a project wants observations.
        global_store: the store of the user, which belongs to no project.
    """

    teams: Sequence[str]
    projects: Callable[[], Collection[Path]]
    register: Callable[[Path], None] | None
    wanted: Callable[[Path], bool]
    global_store: Path


class Letter(NamedTuple):
    """An observation that waits in the spool, and where it belongs."""

    spooled: Spooled
    store: Store
    observation: Observation


class Inbox:
    """One for a process; may be asked by several threads."""

    def __init__(self, spool: Spool, observed: ObservedLog, rules: Rules) -> None:
        self._spool = spool
        self._observed = observed
        self._rules = rules
        self._letters: dict[str, Letter] = {}
        self._named: set[Path] = set()
        self._places: dict[str, Store | Elsewhere] = {}
        self._lock = threading.Lock()

    def sort(self, now: float, named: Iterable[Path] = ()) -> frozenset[str]:
        """Look at what is new in the spool; the keys of the stores that letters wait for.

        Args:
            now: Unix seconds.
            named: projects that are maintained here and from now on, whether or not they are registered.
        """
        with self._lock:
            self._named.update(named)
            try:
                waiting = self._spool.waiting()
            except OSError as error:
                log.warning("spool_not_readable", error=error.strerror)
                return frozenset()
            self._spool.sweep(now)
            # Asked anew: an event of a project that was registered a moment ago must not be dropped.
            known = {*self._named, *self._rules.projects()} if waiting else set()
            self._places.clear()
            outcomes: dict[Spooled, str] = {}
            letters: dict[str, Letter] = {}
            for spooled in waiting:
                match self._letters.get(spooled.name) or self._open(spooled, known):
                    case Letter() as letter if letter.store.project in known:
                        letters[spooled.name] = letter
                    case Letter():
                        outcomes[spooled] = Elsewhere.NOT_REGISTERED
                    case str() as outcome:
                        outcomes[spooled] = outcome
            self._letters = letters
            self._count(outcomes, now)
            return frozenset(letter.store.key for letter in letters.values())

    def letters(self, store: Store) -> Mapping[str, tuple[Letter, ...]]:
        """What waits for a store, by role, in the order in which it was told."""
        found: dict[str, list[Letter]] = {}
        with self._lock:
            for letter in self._letters.values():
                if letter.store == store:
                    found.setdefault(letter.observation.role, []).append(letter)
        return {role: tuple(letters) for role, letters in found.items()}

    def forget(self, letters: Iterable[Letter]) -> None:
        """These are done with: their entries are in the memory, and were counted."""
        names = [letter.spooled.name for letter in letters]
        with self._lock:
            self._spool.take(names)
            for name in names:
                self._letters.pop(name, None)

    def drop(self, letters: Mapping[Letter, str], now: float) -> None:
        """These become no entries, each for a reason."""
        with self._lock:
            self._count({letter.spooled: reason for letter, reason in letters.items()}, now)
            for letter in letters:
                self._letters.pop(letter.spooled.name, None)

    def _count(self, outcomes: Mapping[Spooled, str], now: float) -> None:
        # Taken first: of two processes that sort the same spool, one counts.
        taken = self._spool.take(spooled.name for spooled in outcomes)
        totals: dict[tuple[str, str], int] = {}
        for spooled, outcome in outcomes.items():
            if spooled.name in taken:
                totals[spooled.event, str(outcome)] = totals.get((spooled.event, str(outcome)), 0) + 1
        for (event, outcome), number in totals.items():
            self._observed.count(event, outcome, number, now)

    def _open(self, spooled: Spooled, known: set[Path]) -> Letter | str | None:
        """Where an event belongs, or what became of it; None if it cannot be read now, or is another process's."""
        try:
            event = self._spool.read(spooled)
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning("event_not_readable", name=spooled.name, error=error.strerror)
            return None
        if event is None:
            return Drop.UNREADABLE
        match spooled.event:
            case "task-completed":
                return self._task(spooled, event, known)
            case "session-start":
                return self._session(event, known)
            case _:
                return HEARD

    def _session(self, event: Mapping[str, object], known: set[Path]) -> str:
        store = self._store_of(event)
        if not isinstance(store, Store) or store.project in known or self._rules.register is None:
            return HEARD
        self._rules.register(store.project)
        known.add(store.project)
        return REGISTERED

    def _task(self, spooled: Spooled, event: Mapping[str, object], known: set[Path]) -> Letter | str:
        task = task_of(event)
        definition = _definition(event) if task.teammate else ""
        found = observe(task, definition=definition, teams=self._rules.teams, day=_day(spooled.at))
        if isinstance(found, Drop):
            return found
        store = self._store_of(event)
        if isinstance(store, Elsewhere):
            return store
        if store.project not in known:
            return Elsewhere.NOT_REGISTERED
        if not self._rules.wanted(store.project):
            return Elsewhere.OPTED_OUT
        if not has_memory(Role(store, found.role)):
            return Elsewhere.NO_ROLE
        return Letter(spooled, store, found)

    def _store_of(self, event: Mapping[str, object]) -> Store | Elsewhere:
        """The nearest store at or above the session's directory, of the project itself if that is in a copy."""
        directory = event.get("cwd")
        if not isinstance(directory, str) or not directory.startswith(os.sep) or "\0" in directory:
            return Elsewhere.NO_DIRECTORY
        if directory not in self._places:
            self._places[directory] = self._nearest(Path(directory))
        return self._places[directory]

    def _nearest(self, directory: Path) -> Store | Elsewhere:
        try:
            here = original(directory)
        except (OSError, ValueError):  # no path at all: too long, or of characters that no file system has
            return Elsewhere.NO_DIRECTORY
        for candidate in (here, *here.parents):
            try:
                stores = layout.stores_of(candidate)
            except OSError:
                continue
            if stores and stores[0].root != self._rules.global_store:
                return stores[0]
        return Elsewhere.NO_STORE


def has_memory(role: Role) -> bool:
    """Whether a role has a memory file; observations begin none."""
    try:
        return stat.S_ISDIR(role.path.lstat().st_mode) and stat.S_ISREG(role.memory.lstat().st_mode)
    except OSError:
        return False


def _day(at: float) -> date:
    return datetime.fromtimestamp(at).astimezone().date()


def _definition(event: Mapping[str, object]) -> str:
    """The definition of a team's member, which the event does not name; Claude Code keeps it beside the transcript."""
    transcript, agent = event.get("transcript_path"), event.get("agent_id")
    if not isinstance(transcript, str) or not isinstance(agent, str):
        return ""
    if not transcript.startswith(os.sep) or "\0" in transcript or not _AGENT_ID.fullmatch(agent):
        return ""
    meta = Path(transcript).with_suffix("") / "subagents" / f"agent-{agent}.meta.json"
    try:
        if not stat.S_ISREG(meta.lstat().st_mode):
            return ""
        with meta.open("rb") as file:
            fields = json.loads(file.read(_LARGEST_META_BYTES))
    except (OSError, ValueError, RecursionError):
        return ""
    named = (fields.get(name) for name in _DEFINITION_FIELDS) if isinstance(fields, dict) else ()
    return next((name for name in named if isinstance(name, str) and name), "")

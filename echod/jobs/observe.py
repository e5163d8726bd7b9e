"""The observe job: append an entry for each completed task that hooks told of, all of a role in one commit.

What becomes an entry is decided by `memory.observations` and `inbox.inbox`. An event leaves the spool only when
its entry is in the memory; wherever the process ends in between, no task is recorded twice.

The marks by which writers of observations tell each other what is recorded: `tmp/.rune-signals/.obs-{team}_{task}`.

They belong to the workflow plugins. echod reads them, adds its own, and never removes any.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from echod.inbox.inbox import Elsewhere, Inbox, Letter
from echod.jobs.base import Blocked, Deferred, Done, Outcome
from echod.log import get_logger
from echod.memory.observations import Unwritable, same_text, standing, with_observations
from echod.state.hook_events import Known, ObservedLog, Seen
from echod.store import layout
from echod.store.changes import ChangeSet, Committed, Gate, Write
from echod.store.session import RoleSession

log = get_logger(__name__)

_DIRECTORY = Path("tmp/.rune-signals")
_SHARED_FILE = 0o666  # less the umask: other programs of this user read it


def signalled(project: Path, signal: str) -> bool:
    """Whether somebody has marked this task as recorded."""
    return os.path.lexists(project / _DIRECTORY / signal)


def leave_signal(project: Path, signal: str) -> None:
    """Mark a task as recorded, where a plugin keeps such marks; a mark that cannot be left is only logged."""
    directory = project / _DIRECTORY
    try:
        if not all(stat.S_ISDIR(path.lstat().st_mode) for path in (directory.parent, directory)):
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(directory / signal, flags, _SHARED_FILE))
    except (FileNotFoundError, FileExistsError):
        return
    except OSError as error:
        log.info("signal_not_left", project=str(project), error=error.strerror)


RETRY_SECONDS = 10.0
_PLANS = 5


class Desk(NamedTuple):
    """Where the letters come from, and what is known of their tasks."""

    inbox: Inbox
    observed: ObservedLog


@dataclass(slots=True)
class _Sorted:
    """Letters by what there is to do with them; `done` are those whose entry a run that was killed has written."""

    new: list[Letter] = field(default_factory=list)
    done: list[Letter] = field(default_factory=list)
    dropped: dict[Letter, str] = field(default_factory=dict)


def run(job: int, session: RoleSession, desk: Desk, gate: Gate, clock: Callable[[], float], *, writes: bool) -> Outcome:
    """Record what waits for the role of `session`.

    Args:
        job: the job's number.
        session: the role, held.
        desk: see there.
        gate: asked before the point of no return.
        clock: Unix seconds.
        writes: whether anything may be written at all.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
        StateError: the database was lost.
    """
    role = session.role
    desk.inbox.sort(clock())  # another process may have queued this job, or done it
    letters = desk.inbox.letters(role.store).get(role.name, ())
    if not letters:
        return Done("nothing to do: the events are gone", changed=False)
    for _ in range(_PLANS):
        memory = session.read().memory
        if memory.data is None:
            if writes:
                desk.inbox.drop(dict.fromkeys(letters, str(Elsewhere.NO_ROLE)), clock())
            return Done(f"nothing recorded: {Elsewhere.NO_ROLE}", changed=False)
        seen = desk.observed.seen(letter.observation.key for letter in letters)
        found = _sort(letters, seen, memory.data, role.store.project)
        if not writes:
            return Done(f"report only: would do: {_summary(found)}", changed=False)
        if not found.new:
            _settle(desk, found, clock())
            return Done(_summary(found), changed=False)
        data = with_observations(memory.data, (letter.observation for letter in found.new))
        if isinstance(data, Unwritable):
            return Blocked(f"{layout.MEMORY} is left alone: {data.reason}")
        desk.observed.begin({letter.observation.key: letter.spooled.name for letter in found.new}, clock())
        changes = ChangeSet(
            kind="observe",
            role=role.name,
            summary=_summary(found),
            writes=(Write(PurePosixPath(role.name, layout.MEMORY), memory.digest, data),),
        )
        if isinstance(session.commit(job, changes, gate=gate), Committed):
            _settle(desk, found, clock())
            return Done(_summary(found), changed=True)
    return Deferred("other programs keep writing the same file", clock() + RETRY_SECONDS)


def _sort(letters: Sequence[Letter], seen: Mapping[str, Seen], memory: bytes, project: Path) -> _Sorted:
    found = _Sorted()
    texts = Counter(standing(memory)) if any(s.known is Known.BEGUN for s in seen.values()) else Counter[str]()
    met: set[str] = set()
    for letter in letters:
        key, signal = letter.observation.key, letter.observation.signal
        before = seen.get(key)
        if key in met:
            found.dropped[letter] = Elsewhere.KNOWN
        elif before is not None and before.known is Known.RECORDED:
            if before.event == letter.spooled.name:
                found.done.append(letter)
            else:
                found.dropped[letter] = Elsewhere.KNOWN
        elif before is not None and texts[same_text(letter.observation)] > 0:
            texts[same_text(letter.observation)] -= 1
            found.done.append(letter)
        elif signal is not None and signalled(project, signal):
            found.dropped[letter] = Elsewhere.SIGNALLED
        else:
            found.new.append(letter)
        met.add(key)
    return found


def _settle(desk: Desk, found: _Sorted, now: float) -> None:
    """The entries are in the memory: remember that, tell other writers, and only then take the events away."""
    written = [*found.new, *found.done]
    desk.observed.record([letter.observation.key for letter in written], now)
    for letter in written:
        if letter.observation.signal is not None:
            leave_signal(letter.store.project, letter.observation.signal)
    desk.inbox.forget(written)
    desk.inbox.drop(found.dropped, now)


def _summary(found: _Sorted) -> str:
    number = len(found.new)
    text = f"{number} {'observation' if number == 1 else 'observations'} recorded" if number else "nothing new"
    return f"{text}, {len(found.dropped)} known already" if found.dropped else text

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from echod.inbox.inbox import DropReason, Inbox, PendingObservation
from echod.jobs.base import JobBlocked, JobContext, JobDeferred, JobDone, JobOutcome
from echod.log import get_logger
from echod.memory.observations import UnwritableMemory, comparison_text, existing_texts, with_observations
from echod.state.hook_events import HookEventLog, TaskRecord, TaskState
from echod.store import layout
from echod.store.changes import ChangeSet, CommitResult, Write

log = get_logger(__name__)

_SIGNAL_DIRECTORY = Path("tmp/.rune-signals")
_SHARED_FILE_MODE = 0o666  # less the umask: other programs of this user read it


def has_task_signal(project: Path, signal: str) -> bool:
    """Whether somebody has marked this task as recorded."""
    return os.path.lexists(project / _SIGNAL_DIRECTORY / signal)


def write_task_signal(project: Path, signal: str) -> None:
    """Mark a task as recorded, where a plugin keeps such marks; a mark that cannot be left is only logged."""
    directory = project / _SIGNAL_DIRECTORY
    try:
        if not all(stat.S_ISDIR(path.lstat().st_mode) for path in (directory.parent, directory)):
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(directory / signal, flags, _SHARED_FILE_MODE))
    except (FileNotFoundError, FileExistsError):
        return
    except OSError as error:
        log.info("signal_not_written", project=str(project), error=error.strerror)


RETRY_SECONDS = 10.0
_MAX_PLANS = 5


class ObserveContext(NamedTuple):
    """Where the letters come from, and what is known of their tasks."""

    inbox: Inbox
    event_log: HookEventLog


@dataclass(slots=True)
class _Classified:
    """Letters by what there is to do with them; `recorded` are those whose entry a run that was killed has written."""

    new: list[PendingObservation] = field(default_factory=list)
    recorded: list[PendingObservation] = field(default_factory=list)
    dropped: dict[PendingObservation, str] = field(default_factory=dict)


def run(context: JobContext, sources: ObserveContext) -> JobOutcome:
    """Record what waits for the role of `session`.

    Args:
        context: the job, with the role locked.
        sources: see `ObserveContext`.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
        StateError: the database was lost.
    """
    role = context.session.role
    sources.inbox.refresh(context.clock())  # another process may have queued this job, or done it
    all_pending = sources.inbox.pending_for(role.store).get(role.name, ())
    if not all_pending:
        return JobDone("nothing to do: the events are gone", changed=False)
    for _ in range(_MAX_PLANS):
        memory = context.session.read().memory
        if memory.data is None:
            if context.allow_writes:
                sources.inbox.drop(dict.fromkeys(all_pending, str(DropReason.NO_ROLE)), context.clock())
            return JobDone(f"nothing recorded: {DropReason.NO_ROLE}", changed=False)
        tasks = sources.event_log.find_tasks(pending.observation.key for pending in all_pending)
        found = _classify(all_pending, tasks, memory.data, role.store.project)
        if not context.allow_writes:
            return JobDone(f"report only: would do: {_summary(found)}", changed=False)
        if not found.new:
            _finish_observations(sources, found, context.clock())
            return JobDone(_summary(found), changed=False)
        data = with_observations(memory.data, (pending.observation for pending in found.new))
        if isinstance(data, UnwritableMemory):
            return JobBlocked(f"{layout.MEMORY} is left alone: {data.reason}")
        sources.event_log.mark_started(
            {pending.observation.key: pending.spooled_event.name for pending in found.new}, context.clock()
        )
        changes = ChangeSet(
            kind="observe",
            role=role.name,
            summary=_summary(found),
            writes=(Write(PurePosixPath(role.name, layout.MEMORY), memory.digest, data),),
        )
        if isinstance(context.session.commit(context.job_id, changes, gate=context.gate), CommitResult):
            _finish_observations(sources, found, context.clock())
            return JobDone(_summary(found), changed=True)
    return JobDeferred("other programs keep writing the same file", context.clock() + RETRY_SECONDS)


def _classify(
    all_pending: Sequence[PendingObservation], tasks: Mapping[str, TaskRecord], memory: bytes, project: Path
) -> _Classified:
    found = _Classified()
    texts = (
        Counter(existing_texts(memory)) if any(s.state is TaskState.STARTED for s in tasks.values()) else Counter[str]()
    )
    keys: set[str] = set()
    for pending in all_pending:
        key, signal = pending.observation.key, pending.observation.signal
        before = tasks.get(key)
        if key in keys:
            found.dropped[pending] = DropReason.ALREADY_RECORDED
        elif before is not None and before.state is TaskState.RECORDED:
            if before.event_name == pending.spooled_event.name:
                found.recorded.append(pending)
            else:
                found.dropped[pending] = DropReason.ALREADY_RECORDED
        elif before is not None and texts[comparison_text(pending.observation)] > 0:
            texts[comparison_text(pending.observation)] -= 1
            found.recorded.append(pending)
        elif signal is not None and has_task_signal(project, signal):
            found.dropped[pending] = DropReason.RECORDED_ELSEWHERE
        else:
            found.new.append(pending)
        keys.add(key)
    return found


def _finish_observations(context: ObserveContext, classified: _Classified, now: float) -> None:
    """The entries are in the memory: remember that, tell other writers, and only then take the events away."""
    written = [*classified.new, *classified.recorded]
    context.event_log.mark_recorded([pending.observation.key for pending in written], now)
    for pending in written:
        if pending.observation.signal is not None:
            write_task_signal(pending.store.project, pending.observation.signal)
    context.inbox.remove_recorded(written)
    context.inbox.drop(classified.dropped, now)


def _summary(classified: _Classified) -> str:
    number = len(classified.new)
    text = f"{number} {'observation' if number == 1 else 'observations'} recorded" if number else "nothing new"
    return f"{text}, {len(classified.dropped)} known already" if classified.dropped else text

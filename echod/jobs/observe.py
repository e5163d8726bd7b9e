"""The observe job: record the completed tasks that hooks reported, all of a role in one commit.

A task that is the same as an entry raises its count, and its text goes to the archive. Each other one is an entry.

`echod.memory.observations` and `echod.inbox.inbox` decide which tasks become entries. An event is removed from the
spool only when its entry is in the memory file. Wherever a process ends in between, no task is recorded twice.

Programs that write observations mark recorded tasks with `tmp/.rune-signals/.obs-{team}_{task}`. The signals belong to
the workflow plugins. echod reads them, adds its own, and removes none.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import NamedTuple

from echod.inbox.inbox import DropReason, Inbox, PendingObservation
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    Proposal,
    append_pruned,
    change_set,
    list_archived_entries,
    plan_and_commit,
    report_only,
    write_memory,
)
from echod.log import get_logger
from echod.memory.archive import to_archived_entry
from echod.memory.document import parse_block
from echod.memory.identity import block_content, entry_ids
from echod.memory.model import Block, Document
from echod.memory.observations import UnwritableMemory, comparison_text, existing_texts, record_observations
from echod.memory.policy_model import Rule
from echod.state.jobs import JobKind
from echod.state.session_log import HookEventLog, TaskRecord, TaskState
from echod.store import layout
from echod.store.engine import RoleView
from echod.store.layout import Role

log = get_logger(__name__)

_SIGNAL_DIRECTORY = Path("tmp/.rune-signals")
_SHARED_FILE_MODE = 0o666  # less the umask: other programs of this user read it


class ObserveContext(NamedTuple):
    """The pending observations, and the log of recorded tasks."""

    inbox: Inbox
    event_log: HookEventLog


@dataclass(slots=True)
class _Classified:
    """Observations by treatment. `recorded`: a run that was killed has written the entry."""

    new: list[PendingObservation] = field(default_factory=list)
    recorded: list[PendingObservation] = field(default_factory=list)
    dropped: dict[PendingObservation, str] = field(default_factory=dict)


def run(context: JobContext, sources: ObserveContext) -> JobOutcome:
    """Record the pending observations of the role. Raises StateError if the database was lost."""
    role = context.session.role
    sources.inbox.refresh(context.clock())  # another process may have queued this job, or done it
    all_pending = sources.inbox.pending_for(role.store).get(role.name, ())
    if not all_pending:
        return JobDone("nothing to do: the events were removed", changed=False)

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        if view.memory.data is None:
            if context.allow_writes:
                sources.inbox.drop(dict.fromkeys(all_pending, str(DropReason.NO_ROLE)), context.clock())
            return JobDone(f"nothing recorded: {DropReason.NO_ROLE}", changed=False)
        tasks = sources.event_log.find_tasks(pending.observation.key for pending in all_pending)
        classified = _classify(all_pending, tasks, view.memory.data, role)
        if not context.allow_writes:
            return report_only(_summary(classified))

        def finish() -> None:
            _finish_observations(sources, classified, context.clock())

        if not classified.new:
            finish()
            return JobDone(_summary(classified), changed=False)
        observations = [pending.observation for pending in classified.new]
        pinned = context.entries.pinned_ids(role.store.key, today)
        recorded = record_observations(
            role.name, view.memory.data, observations, pinned, lambda: _counted_observations(role)
        )
        if isinstance(recorded, UnwritableMemory):
            return JobBlocked(f"{layout.MEMORY} is left alone: {recorded.reason}")
        blocks = [*recorded.replaced, *(parse_block(observation.text) for observation in recorded.counted)]
        ids = entry_ids(role.name, Document("", tuple(blocks)))
        archived = [
            to_archived_entry(block, identity or "", role.name, Rule.ROLLED_UP, today)
            for block, identity in zip(blocks, ids, strict=True)
        ]
        events = {pending.observation.key: pending.spooled_event.name for pending in classified.new}
        return Proposal(
            change_set(
                view,
                JobKind.OBSERVE,
                _summary(classified, len(recorded.counted)),
                [write_memory(view, recorded.data)],
                appends=append_pruned(role, today, archived, context.job_id),
            ),
            before_commit=lambda: sources.event_log.mark_started(events, context.clock()),
            after_commit=finish,
        )

    return plan_and_commit(context, planner)


def _classify(
    all_pending: Sequence[PendingObservation], tasks: Mapping[str, TaskRecord], memory: bytes, role: Role
) -> _Classified:
    classified = _Classified()
    has_started = any(task.state is TaskState.STARTED for task in tasks.values())
    texts = Counter[str]()
    if has_started:
        texts.update(existing_texts(memory))
        texts.update(map(block_content, _counted_observations(role)))
    keys: set[str] = set()
    for pending in all_pending:
        key, signal = pending.observation.key, pending.observation.signal
        task = tasks.get(key)
        if key in keys:
            classified.dropped[pending] = DropReason.ALREADY_RECORDED
        elif task is not None and task.state is TaskState.RECORDED:
            if task.event_name == pending.spooled_event.name:
                classified.recorded.append(pending)
            else:
                classified.dropped[pending] = DropReason.ALREADY_RECORDED
        elif task is not None and texts[comparison_text(pending.observation)] > 0:
            texts[comparison_text(pending.observation)] -= 1
            classified.recorded.append(pending)
        elif signal is not None and has_task_signal(role.store.project, signal):
            classified.dropped[pending] = DropReason.RECORDED_ELSEWHERE
        else:
            classified.new.append(pending)
        keys.add(key)
    return classified


def _counted_observations(role: Role) -> Iterator[Block]:
    """Yield the observations that only raised a count, and so are in the archive."""
    for copy in list_archived_entries(role):
        if copy.entry.rule == Rule.ROLLED_UP:
            yield parse_block(copy.entry.text)


def _finish_observations(sources: ObserveContext, classified: _Classified, now: float) -> None:
    """Record that the entries are in the memory, signal it to other writers, and only then remove the events."""
    written = [*classified.new, *classified.recorded]
    sources.event_log.mark_recorded([pending.observation.key for pending in written], now)
    for pending in written:
        if pending.observation.signal is not None:
            write_task_signal(pending.store.project, pending.observation.signal)
    sources.inbox.remove_recorded(written)
    sources.inbox.drop(classified.dropped, now)


def _summary(classified: _Classified, counted: int = 0) -> str:
    number = len(classified.new)
    text = f"{number} {'observation' if number == 1 else 'observations'} recorded" if number else "nothing new"
    text += f" ({counted} counted in entries that say the same)" if counted else ""
    return f"{text}, {len(classified.dropped)} already known" if classified.dropped else text


def has_task_signal(project: Path, signal: str) -> bool:
    """Return whether a program marked this task as recorded."""
    return os.path.lexists(project / _SIGNAL_DIRECTORY / signal)


def write_task_signal(project: Path, signal: str) -> None:
    """Mark a task as recorded if a plugin keeps such signals. A failure is only logged."""
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

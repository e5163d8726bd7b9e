"""The consolidate job: fold the findings of a role into its memory file.

What becomes of each finding is decided by `echod.memory.consolidation.plan`; this module reads, asks, and commits.

What findings files say, kept from the moment they were understood until they are folded in.

To understand a file takes time that grows with it. The writers' lock must not be held meanwhile, so a job reads ahead
of taking it; and a file that is taken up by parts is understood once, not for each part.

Folding in the findings that a person chose: what it would do, and doing it, by as many parts as it takes.

The same plans as of the consolidate job; a preview and the run agree finding by finding.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.inspection.entry_facts import note_entries
from echod.jobs.archives import backup_of, pruned
from echod.jobs.base import Blocked, Deferred, Done, Outcome
from echod.memory.consolidation.intake import Rejected, Taken, take_in
from echod.memory.consolidation.plan import Consolidation, FindingsFile, consolidate
from echod.memory.document import parse
from echod.memory.entry_matching import NOTHING
from echod.memory.model import Document, Unreadable
from echod.state.entries import EntryLog, Reference
from echod.state.review_answers import About
from echod.store import layout
from echod.store.changes import Append, Begin, ChangeSet, Committed, Consume, Gate, Write
from echod.store.engine import Engine
from echod.store.journal.notices import CLAIM, SUPERSEDES, Question
from echod.store.layout import Role, kept_at, set_aside_at
from echod.store.session import RoleSession, RoleView
from echod.store.snapshot import Snapshot, digest

_Question = tuple[str, str, str, date, date]


class Reading:
    """Remembers the files of the newest `ahead`; one for a worker."""

    def __init__(self) -> None:
        self._said: dict[_Question, Taken | Rejected] = {}

    def ahead(self, files: Iterable[FindingsFile], today: date) -> None:
        """Understand these files, and forget all others."""
        self._said = {_question(file, today): self.take_in(file, today) for file in files}

    def take_in(self, file: FindingsFile, today: date) -> Taken | Rejected:
        """What `echod.memory.consolidation.intake.take_in` says of a file, at once where it was read ahead."""
        said = self._said.get(_question(file, today))
        return take_in(file, today) if said is None else replace(said, file=file)


def _question(file: FindingsFile, today: date) -> _Question:
    return file.name, file.agent, digest(file.data), file.date, today


RETRY_SECONDS = 10.0
_PLANS = 5
"""The engine goes on by itself after a few overtaken plans; more than this never happens unless it is wrong."""

_MOST_FILES, _MOST_BYTES = 500, 512 << 10
"""What is folded in at once. Planning more would hold the writers' lock so long that others come first, for ever."""

_MOST_CHANGES = 1_000
"""Entries that are added or refreshed at once, for the same reason: a small file may hold very many small findings."""


class Terms(NamedTuple):
    """What holds for a run.

    Attributes:
        quiet_seconds: how long findings must be still.
        writes: whether anything may be written at all, or only reported.
        only: the findings files that a person chose, by digest; None for all but those that an undo gave back.
    """

    quiet_seconds: float
    writes: bool
    only: frozenset[str] | None = None


def read_ahead(session: RoleSession, reading: Reading, terms: Terms, clock: Callable[[], float]) -> None:
    """Understand the files that `run` will fold in; to be called before the writers' lock is taken.

    Raises:
        Busy, StoreFault: as `RoleSession.read` says.
    """
    view = session.read(still_seconds=terms.quiet_seconds)
    reading.ahead(_files(view, at_once(view, terms)), _day(clock()))


def run(
    job: int,
    session: RoleSession,
    entries: EntryLog,
    terms: Terms,
    reading: Reading,
    gate: Gate,
    clock: Callable[[], float],
) -> Outcome:
    """Consolidate the role of `session`. A finding that an entry holds already is counted as a reference to it.

    What is more than can be folded in at once is left to the next job: it is found by the next look at the store.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """
    for _ in range(_PLANS):
        view = session.read(still_seconds=terms.quiet_seconds)
        now = clock()
        ready = at_once(view, terms)
        if not ready:
            return _nothing_ready(view, now)
        _note_entries(entries, view, view.memory.data, _day(now))
        plan = plan_for(view, ready, entries.pinned(view.role.store.key, _day(now)), reading, _day(now))
        if isinstance(plan, Unreadable):
            return Blocked(f"{layout.MEMORY} is left alone: {plan.reason}")
        if not terms.writes:
            return Done(f"report only: would do: {plan.summary}", changed=False)
        questions = tuple(_questions(view.role.name, plan, now))
        session.ask(questions)
        about = [About(one.key, one.entry) for one in questions]
        entries.asked.note(view.role.store.key, about)  # now, so that no kill after the commit loses it
        if isinstance(session.commit(job, _changes(job, view, ready, plan, _day(now)), gate=gate), Committed):
            _note_entries(entries, view, plan.memory, _day(now), plan.renumbered)
            entries.asked.note(view.role.store.key, about)  # the ids that moved just now were those before the commit
            _count_references(entries, view, ready, plan, _day(now))
            return Done(plan.summary, changed=True)
    return Deferred("other programs keep writing the same files", clock() + RETRY_SECONDS)


def plan_for(
    view: RoleView, ready: Iterable[Snapshot], pinned: Container[str], reading: Reading, today: date
) -> Consolidation | Unreadable:
    """What becomes of these findings, as far as they are folded in at once.

    Args:
        view: the role.
        ready: findings files of it.
        pinned: ids of entries that no rule touches.
        reading: what the files say.
        today: the local day.
    """
    return consolidate(
        view.role.name,
        view.memory.data,
        _files(view, ready),
        today,
        known_keys=view.known_keys,
        pinned=pinned,
        most=_MOST_CHANGES,
        read=reading.take_in,
    )


def at_once(view: RoleView, terms: Terms) -> tuple[Snapshot, ...]:
    """The first of the wanted findings files, one at least; the next look at the store finds the rest."""
    chosen: list[Snapshot] = []
    size = 0
    for found in view.findings:
        if found.digest in view.undone if terms.only is None else found.digest not in terms.only:
            continue
        size += len(found.text)
        if chosen and (size > _MOST_BYTES or len(chosen) == _MOST_FILES):
            break
        chosen.append(found)
    return tuple(chosen)


def _nothing_ready(view: RoleView, now: float) -> Outcome:
    if young := [busy.until for busy in view.busy if busy.until is not None]:
        return Deferred("the findings are still being written", max(min(young), now + 0.1))
    if view.busy:
        return Deferred(view.busy[0].reason, now + RETRY_SECONDS)
    if view.findings:
        return Done("nothing to do: a person took back what the findings gave", changed=False)
    return Done("nothing to do: the findings are gone", changed=False)


def _files(view: RoleView, ready: Iterable[Snapshot]) -> tuple[FindingsFile, ...]:
    return tuple(
        FindingsFile(
            name=found.path.name,
            agent=layout.agent_of(found.path),
            data=found.text,
            date=_day(found.mtime_ns / 1e9),
            begun=found.digest in view.begun,
        )
        for found in ready
    )


def _changes(job: int, view: RoleView, ready: Iterable[Snapshot], plan: Consolidation, today: date) -> ChangeSet:
    role = PurePosixPath(view.role.name)
    before = {found.path.name: found.digest or "" for found in ready}
    consumed = tuple(
        Consume(
            path=role / file.name,
            before=before[file.name],
            archive=role / kept_at(file.name, today),
            kept=file.kept,
            keys=file.keys,
        )
        for file in plan.consumed
    )
    set_aside = tuple(
        Consume(
            path=role / file.name,
            before=before[file.name],
            archive=role / set_aside_at(file.name, today),
            kept=file.kept,
        )
        for file in plan.quarantined
    )
    writes = [] if plan.memory is None else [Write(role / layout.MEMORY, view.memory.digest, plan.memory)]
    archived = [one.archived for one in plan.superseded]
    if archived and (name := backup_of(view.role, view.memory.text, today)) is not None:
        writes.append(Write(role / name, None, view.memory.text))
    reasons = "".join(f"- {today:%Y-%m-%d} `{file.name}`: {file.reason}\n" for file in plan.quarantined)
    return ChangeSet(
        kind="consolidate",
        role=view.role.name,
        summary=plan.summary,
        writes=tuple(writes),
        appends=(
            *pruned(view.role, today, archived, job),
            *((Append(role / layout.QUARANTINE / layout.REASONS, reasons.encode()),) if reasons else ()),
        ),
        consumes=consumed + set_aside,
        begins=tuple(Begin(before[file.name], file.keys) for file in plan.begun),
    )


def _questions(role: str, plan: Consolidation, now: float) -> Iterator[Question]:
    """What of it only a person may do."""
    for claim, layer in plan.claims:
        yield Question(now, CLAIM, role, claim.key, claim.id, layer.value, "")
    for one in plan.undecided:
        yield Question(now, SUPERSEDES, role, one.key, one.id, one.target, one.doubt.value)


def _note_entries(
    entries: EntryLog, view: RoleView, memory: bytes | None, today: date, told: Mapping[str, str] = NOTHING
) -> None:
    document = None if memory is None else parse(memory)
    if isinstance(document, Document):
        note_entries(entries, view.role, document, today, told)


def _count_references(
    entries: EntryLog, view: RoleView, ready: Iterable[Snapshot], plan: Consolidation, today: date
) -> None:
    """A learning that agents found again was of use; once in the workflow that they found it in, if that is known."""
    store = view.role.store
    written = {found.path.name: found.mtime_ns / 1e9 for found in ready}
    found_at = {key: written[file.name] for file in plan.consumed for key in file.keys}
    found_at |= {key: written[file.name] for file in plan.begun for key in file.keys}
    references = []
    for duplicate in plan.duplicates:
        at = found_at.get(duplicate.key)
        workflow = None if at is None else entries.workflow_at(str(store.project), at)
        cause = f"finding:{duplicate.key}" if workflow is None else f"workflow:{workflow}"
        if duplicate.id:
            references.append(Reference(duplicate.id, cause, workflow))
    entries.refer(store.key, references, today)


def _day(at: float) -> date:
    return datetime.fromtimestamp(at).astimezone().date()


class Means(NamedTuple):
    """What it is done with: the job's number, the engine, what is known of entries, the gate and the clock."""

    job: int
    engine: Engine
    entries: EntryLog
    gate: Gate
    clock: Callable[[], float]


def foresee(
    view: RoleView, digests: frozenset[str], pinned: Container[str], today: date
) -> Iterator[Consolidation | Unreadable]:
    """What `fold_in` would do with these findings files of a role, one plan for each part; writes nothing."""
    terms, reading = _terms(digests), Reading()
    while ready := at_once(view, terms):
        plan = plan_for(view, ready, pinned, reading, today)
        yield plan
        if isinstance(plan, Unreadable):
            return
        view = _after(view, plan)


def fold_in(role: Role, digests: frozenset[str], means: Means) -> Outcome:
    """Fold in findings files, named by their digests, also those whose consolidation was taken back.

    The role is held for each part anew, so that others come in between.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; what was folded in before stays so.
    """
    terms, reading, said = _terms(digests), Reading(), list[str]()
    while True:
        with means.engine.only_look(role) as session:
            read_ahead(session, reading, terms, means.clock)
        with means.engine.open_role(role) as session:
            outcome = run(means.job, session, means.entries, terms, reading, means.gate, means.clock)
        if isinstance(outcome, Done) and outcome.changed:
            said.append(outcome.summary)
        else:
            return Done("; ".join(said), changed=True) if said else outcome


def _terms(digests: frozenset[str]) -> Terms:
    return Terms(quiet_seconds=0.0, writes=True, only=digests)


def _after(view: RoleView, plan: Consolidation) -> RoleView:
    """The role as it would be after a part."""
    gone = {file.name for file in plan.consumed} | {file.name for file in plan.quarantined}
    begun = {file.name for file in plan.begun}
    keys = {key for done in plan.consumed for key in done.keys} | {key for part in plan.begun for key in part.keys}
    memory = view.memory if plan.memory is None else replace(view.memory, data=plan.memory)
    return replace(
        view,
        memory=memory,
        findings=tuple(found for found in view.findings if found.path.name not in gone),
        known_keys=frozenset(view.known_keys) | keys,
        begun=view.begun | {found.digest or "" for found in view.findings if found.path.name in begun},
    )

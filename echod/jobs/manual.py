"""The jobs of the user's decisions: remember, raise, forget, restore, reset, elevate, scrub.

`echod.memory.policy.manual` and `echod.memory.compose` plan the changes. The jobs' errors are in `echod.jobs`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.inspection.inspect import record_entries
from echod.inspection.secrets import ScanCandidate
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    Proposal,
    append_removed,
    append_short_form,
    backup_name,
    change_set,
    knowledge_unavailable,
    plan_and_commit,
    plan_memory_and_commit,
    replan_and_commit,
    role_path,
    write_memory,
)
from echod.memory.archive import ArchivedEntry
from echod.memory.compose import AlreadyNoted, Note, UnwritableNote, find_same_note, with_note
from echod.memory.document import new_memory_file, parse
from echod.memory.identity import entry_ids
from echod.memory.knowledge.blocks import new_knowledge_file
from echod.memory.model import Block, Document, Layer, Unreadable
from echod.memory.packs.elevation import (
    GLOBAL_ROLE,
    AlreadyElevated,
    ElevationRequest,
    ElevationResult,
    NotEligible,
    elevate_entry,
)
from echod.memory.policy.manual import (
    AlreadyRestored,
    EditRefusal,
    ResetPlan,
    Restoration,
    change_layer,
    change_verified,
    plan_reset,
    remove_entries,
    restore_entry,
)
from echod.memory.policy_model import Rule
from echod.memory.redact import locate_secrets, redact_entry, strip_secrets
from echod.state.jobs import JobKind
from echod.store import layout
from echod.store.changes import Append, ChangeSet, Origin, Write
from echod.store.create import append_to_memory
from echod.store.engine import RoleView
from echod.store.errors import BusyError, RefusedError
from echod.store.fs import Snapshot
from echod.store.layout import MEMORY, Role

NOTES_ROLE = "notes"
"""The role for the notes of `echod remember`."""


def _refuse(refusal: UnwritableNote | EditRefusal | NotEligible, already_so: type) -> JobOutcome:
    """Return the outcome without a change: it is done if everything is already as the user wants it."""
    if isinstance(refusal, already_so):
        return JobDone(refusal.reason, changed=False)
    return JobBlocked(refusal.reason)


def remember(context: JobContext, note: Note) -> JobOutcome:
    """Append a note to the memory file, which is created if it is missing."""

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        after = plan_note(view, note, today)
        if isinstance(after, UnwritableNote):
            return _refuse(after, AlreadyNoted)
        summary = f"remembered as {last_entry_id(view.role.name, after)}"
        return Proposal(change_set(view, JobKind.REMEMBER, summary, [write_memory(view, after.render())]))

    return plan_and_commit(context, planner)


def append_note(role: Role, note: Note, today: date) -> str:
    """Append a note as agents do, because other programs keep the role busy. Return the result, in a phrase.

    Raises:
        RefusedError: the memory file cannot be read as memory.
        StoreError: the file system failed.
    """
    summary = ""

    def addition(present: bytes) -> bytes:
        nonlocal summary
        after = _document_with_note(role.name, present, note, today)
        if isinstance(after, AlreadyNoted):
            summary = after.reason
            return b""
        if isinstance(after, UnwritableNote):
            raise RefusedError(f"Nothing was changed: {after.reason}.")
        summary = f"remembered as {last_entry_id(role.name, after)}, without waiting for the program that is writing"
        written = after.render()
        return written.removeprefix(present) if written.startswith(present) else f"\n\n{after.blocks[-1].text}".encode()

    append_to_memory(role, addition)
    return summary


def plan_note(view: RoleView, note: Note, today: date) -> Document | UnwritableNote:
    """Return the memory file with the note, or the reason why it cannot be added, without a full stop."""
    return _document_with_note(view.role.name, view.memory.text, note, today)


def _document_with_note(role: str, memory: bytes, note: Note, today: date) -> Document | UnwritableNote:
    document = parse(memory or new_memory_file(role))
    if isinstance(document, Unreadable):
        return UnwritableNote(f"{layout.MEMORY} of the role {role} is left alone: {document.reason.rstrip('.')}")
    if (existing := find_same_note(document, note)) is not None:
        return AlreadyNoted(f"this is remembered already, as {entry_ids(role, document)[existing]}")
    return with_note(document, note, today)


def last_entry_id(role: str, document: Document) -> str:
    """Return the id of the last entry of a document that ends in an entry."""
    return entry_ids(role, document)[-1] or ""


def set_layer(context: JobContext, entry: str, layer: Layer) -> JobOutcome:
    """Move an entry of the memory file, given by its full id, to a layer. Nothing else of it changes, nor its id."""

    def planner(view: RoleView, document: Document, _: date) -> Proposal | JobOutcome:
        after = change_layer(view.role.name, document, entry, layer)
        if after is document:
            return JobDone(f"{entry} is {layer.value} already", changed=False)
        return _propose_edit(view, JobKind.RAISE, entry, after, f"{entry} is now {layer.value}")

    return plan_memory_and_commit(context, planner)


def verify(context: JobContext, entry: str) -> JobOutcome:
    """Set the day on which an entry of the memory file, given by its full id, was last verified to today."""

    def planner(view: RoleView, document: Document, today: date) -> Proposal | JobOutcome:
        after = change_verified(view.role.name, document, entry, today)
        if after is document:
            return JobDone(f"{entry} was verified today already", changed=False)
        return _propose_edit(view, JobKind.VERIFY, entry, after, f"{entry} was verified on {today}")

    return plan_memory_and_commit(context, planner)


def _propose_edit(
    view: RoleView, kind: JobKind, entry: str, after: Document | EditRefusal, summary: str
) -> Proposal | JobOutcome:
    """Propose the memory file with one edited entry, or block the job for the reason of the refusal."""
    if isinstance(after, EditRefusal):
        return JobBlocked(f"{entry} stays as it is: {after.reason}")
    return Proposal(change_set(view, kind, summary, [write_memory(view, after.render())]))


def forget(context: JobContext, entries: Collection[str], *, rule: Rule) -> JobOutcome:
    """Move entries of the memory file, given by their full ids, to `archive/removed-{year}.md`.

    `rule` is the reason that the archive records.
    """

    def planner(view: RoleView, document: Document, today: date) -> Proposal | JobOutcome:
        removal = remove_entries(view.role.name, document, entries, rule, today)
        if isinstance(removal, EditRefusal):
            return JobBlocked(f"{layout.MEMORY} stays as it is: {removal.reason}")
        if not removal.archived:
            return JobDone("there was nothing to remove", changed=False)
        first, *others = sorted(entries)
        summary = f"{first} and {len(others)} more {rule.value}" if others else f"{first} {rule.value}"
        writes = [write_memory(view, removal.document.render())]
        appends = append_removed(view.role, today, removal.archived, context.job_id)
        return Proposal(change_set(view, JobKind.FORGET, summary, writes, appends=appends))

    return plan_memory_and_commit(context, planner)


def restore(context: JobContext, archived: Sequence[ArchivedEntry]) -> JobOutcome:
    """Append archived entries to the file that they were removed from, word for word. All are of one file.

    Entries of the memory file are pinned for some days.
    """
    target = archived[0].file

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        file = read_target_file(view, archived[0])
        if file is None:
            return knowledge_unavailable(view, context.clock()) or JobBlocked(f"{target} cannot be read")
        current, done, appends = file, list[Restoration](), list[Append]()
        for entry in archived:
            restoration = plan_restoration(view, current, entry)
            if isinstance(restoration, AlreadyRestored) and len(archived) > 1:
                continue
            if isinstance(restoration, EditRefusal):
                return _refuse(restoration, AlreadyRestored)
            # The archive's record of the restoration, so that the entry does not count as forgotten any more.
            marker = replace(
                entry, rule=Rule.RESTORED.value, day=today, text="", score=None, terms=None, redacted=False
            )
            appends += append_short_form(view.role, restoration.condensed_text, today)
            appends += append_removed(view.role, today, [marker], context.job_id)
            done.append(restoration)
            current = current._replace(data=restoration.document.render())
        if not done:
            return JobDone("all of them are in the memory already", changed=False)
        document, ids = done[-1].document, [restoration.id for restoration in done]

        def record() -> None:
            if target == layout.MEMORY:
                record_entries(context.entries, view.role, document, today)
                until = today + timedelta(days=context.policy.pin_days)
                context.entries.pin(view.role.store.key, ids, until)

        writes = [Write(role_path(view, target), file.digest, document.render())]
        summary = f"{' and '.join(ids)} restored from the archive"
        return Proposal(change_set(view, JobKind.RESTORE, summary, writes, appends=appends), after_commit=record)

    return plan_and_commit(context, planner)


def read_target_file(view: RoleView, archived: ArchivedEntry) -> Snapshot | None:
    """Return the present content of the entry's file; None while another program writes it."""
    return view.knowledge if archived.file == layout.KNOWLEDGE else view.memory


def plan_restoration(view: RoleView, file: Snapshot, archived: ArchivedEntry) -> Restoration | EditRefusal:
    """Return the file with the entry, or the reason why it cannot be restored, without a full stop."""
    # An archive that another program wrote may contain anything.
    archived = replace(archived, text=redact_entry(archived.text).text)
    new = new_knowledge_file if archived.file == layout.KNOWLEDGE else new_memory_file
    document = parse(new(view.role.name) if file.data is None else file.text)
    if isinstance(document, Unreadable):
        return EditRefusal(f"{archived.file} is left alone: {document.reason.rstrip('.')}")
    return restore_entry(view.role.name, document, archived)


class RoleResetPlan(NamedTuple):
    """The files of a role that a reset empties, each with its plan, and a sentence for each that is left alone."""

    files: tuple[tuple[Snapshot, ResetPlan], ...]
    skipped: tuple[str, ...]

    @property
    def entries(self) -> int:
        """The number of removed entries."""
        return sum(plan.entry_count for _, plan in self.files)

    @property
    def summary(self) -> str:
        """The result, in a phrase."""
        names = " and ".join(file.path.name for file, _ in self.files)
        return f"{names} emptied, {self.entries} {'entry' if self.entries == 1 else 'entries'} archived"


def reset(context: JobContext) -> JobOutcome:
    """Empty the memory and knowledge file of the role, and move their entries to the archive.

    Findings files and the archive are kept. The memory file is copied unchanged before anything is removed from it.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        if (unavailable := knowledge_unavailable(view, context.clock())) is not None:
            return unavailable
        plan = plan_role_reset(view, today)
        if not plan.files:
            return JobBlocked(plan.skipped[0]) if plan.skipped else JobDone("there was nothing in it", changed=False)
        memory = view.memory.data
        writes = [Write(role_path(view, file.path.name), file.digest, one.data) for file, one in plan.files]
        if memory is not None and (name := backup_name(view.role, memory, today)) is not None:
            writes.append(Write(role_path(view, name), None, memory))
        archived = [entry for _, one in plan.files for entry in one.archived]
        appends = append_removed(view.role, today, archived, context.job_id)
        return Proposal(change_set(view, JobKind.RESET, plan.summary, writes, appends=appends))

    return plan_and_commit(context, planner)


def plan_role_reset(view: RoleView, today: date) -> RoleResetPlan:
    """Return the effect of a reset of a role on the local day `today`."""
    role = view.role.name
    files: list[tuple[Snapshot, ResetPlan]] = []
    skipped: list[str] = []
    for file, new in ((view.memory, new_memory_file(role)), (view.knowledge, new_knowledge_file(role))):
        if file is None or file.data is None:
            continue
        document = parse(file.data)
        if isinstance(document, Unreadable):
            skipped.append(f"{file.path.name} is left alone: {document.reason}")
        elif (plan := plan_reset(role, document, new, today, file=file.path.name)) is not None:
            files.append((file, plan))
    return RoleResetPlan(tuple(files), tuple(skipped))


def elevate(context: JobContext, block: Block, source: Role, domain: str) -> JobOutcome:
    """Copy an entry of the role `source` to a domain of the global memory, which is created if it is missing.

    `context` has the global memory's role locked.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        after = plan_elevation(view.memory.data, block, source, domain, today)
        if isinstance(after, NotEligible):
            return _refuse(after, AlreadyElevated)
        summary = f"elevated from {source.name} of {source.store.project.name} as {after.id}"
        return Proposal(change_set(view, JobKind.ELEVATE, summary, [write_memory(view, after.document.render())]))

    return plan_and_commit(context, planner)


def plan_elevation(
    memory: bytes | None, block: Block, source: Role, domain: str, today: date
) -> ElevationResult | NotEligible:
    """Return the global memory with the entry, or the reason why it is not eligible, without a full stop."""
    document = parse(new_memory_file(GLOBAL_ROLE) if memory is None else memory)
    if isinstance(document, Unreadable):
        return NotEligible(f"the global memory is left alone: {document.reason.rstrip('.')}")
    return elevate_entry(document, ElevationRequest(block, source.store.project.name, source.name, domain, today))


MAX_SCRUBBED_FILES = 50
"""The number of files of a role that one commit changes."""


def scrub(context: JobContext, files: Iterable[ScanCandidate], *, include_protected: bool) -> JobOutcome:
    """Remove the secrets from at most `MAX_SCRUBBED_FILES` files of the role.

    Etched entries and notes are changed only with `include_protected`.
    """
    session, candidates = context.session, tuple(files)

    def plan() -> Proposal | JobOutcome:
        writes: list[Write] = []
        skipped: list[str] = []
        removed = 0
        for file in candidates:
            name = file.path.relative_to(session.role.path)
            try:
                # `read` also restores entries that another program overwrote in the memory file.
                snapshot = session.read().memory if str(name) == MEMORY else session.read_file(str(name))
            except BusyError as error:
                skipped.append(str(error))
                continue
            document = parse(snapshot.text)
            if isinstance(document, Unreadable):
                skipped.append(f"{file.path} is left alone. {document.reason}")
                continue
            after = strip_secrets(snapshot.text, include_protected=include_protected)
            if after != snapshot.text:
                removed += len(locate_secrets(snapshot.text)) - len(locate_secrets(after))
                writes.append(Write(PurePosixPath(session.role.name) / name, snapshot.digest, after))
        summary = f"{removed} {'secret' if removed == 1 else 'secrets'} taken out"
        if not writes:
            return JobDone(summary, changed=False, skipped=tuple(skipped))
        changes = ChangeSet(JobKind.SCRUB.value, session.role.name, summary, tuple(writes), origin=Origin.USER)
        return Proposal(changes, skipped=tuple(skipped))

    return replan_and_commit(context, plan)

"""The jobs that bring memory up to date: new names in metadata, and the layout of the directories.

`memory.renames` has the names. New names change the ids of entries and the hashes that solutions refer to, so the same
job carries references and pins along and corrects the solutions.

A role moves in two commits: its content is added to the new store, and then the files of the old store are moved to its
archive. A crash between them leaves entries in both stores, and the same command continues: what is in the new store
already is not added again. Archives stay where they are, where `echod restore` and `echod undo` find them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from echod.inspection.inspect import record_entries
from echod.jobs.base import (
    RETRY_SECONDS,
    JobBlocked,
    JobContext,
    JobDeferred,
    JobDone,
    JobOutcome,
    JobResources,
    Proposal,
    change_set,
    free_backup_name,
    knowledge_unavailable,
    parse_memory,
    plan_and_commit,
    plan_memory_and_commit,
    role_path,
)
from echod.memory import KNOWLEDGE_FILE, MEMORY_FILE
from echod.memory.document import parse, round_trips
from echod.memory.entry_matching import RenamedDocument, rename_document
from echod.memory.merge import MergeFailure, merge
from echod.memory.model import Document, Unreadable
from echod.memory.redact import redact_bytes
from echod.memory.solutions.promotion import EntryReference, entry_digest
from echod.memory.text import pluralize
from echod.projects.discovery import main_worktree_path
from echod.remembrance.library import read_library
from echod.state.jobs import JobKind
from echod.store.changes import Append, ConsumeFindings, Write
from echod.store.create import ensure_directory
from echod.store.engine import RoleView
from echod.store.errors import BusyError, as_store_error
from echod.store.fs import Snapshot
from echod.store.layout import (
    ARCHIVE,
    STORE_DIRS,
    Role,
    Store,
    findings_archive_path,
    restored_findings_name,
    solutions_store,
)

_NEW_LAYOUT = STORE_DIRS[0]


def is_in_new_layout(role: Role) -> bool:
    """Return whether a role is in a store of the present layout."""
    return role.store.root == role.store.project / _NEW_LAYOUT


def plan_names(role: Role, document: Document) -> RenamedDocument:
    """Return the memory or knowledge file of a role with the present names."""
    return rename_document(role.name, document, in_new_layout=is_in_new_layout(role))


def migrate_names(resources: JobResources, role: Role) -> JobOutcome:
    """Give the metadata of a role the present names, and correct the solutions that refer to its entries.

    The solutions are first. After a crash between the commits the same command finds the entries still to be changed.
    """
    # One role at a time: a category may have the name of the role, and then both have one lock.
    with resources.open_role(role) as memory:
        document = parse_memory(memory.session.read())
    if isinstance(document, JobBlocked):
        return document
    references = _changed_references(role, plan_names(role, document))
    library = read_library(role.store.project) if references else None
    affected = [one.path for one in library.solutions if one.document.echo_ref in references] if library else []
    for category in sorted({PurePosixPath(path).parent.name for path in affected}):
        names = [PurePosixPath(path).name for path in affected if PurePosixPath(path).parent.name == category]
        with resources.open_role(Role(solutions_store(role.store.project), category)) as solutions:
            corrected = _correct_references(solutions, names, references)
        if not isinstance(corrected, JobDone):
            return corrected
    with resources.open_role(role) as memory:
        return _rename_memory(memory)


def _rename_memory(context: JobContext) -> JobOutcome:
    def planner(view: RoleView, document: Document, today: date) -> Proposal | JobOutcome:
        if isinstance(unavailable := knowledge_unavailable(view, context.clock()), JobDeferred):
            return unavailable
        plan = plan_names(view.role, document)
        writes = _rename_writes(view, view.memory, plan, today)
        count = len(plan.entries)
        if (knowledge := plan_knowledge_names(view)) is not None:
            writes += _rename_writes(view, view.knowledge, knowledge, today)
            count += len(knowledge.entries)
        if not writes:
            return JobDone("all names are current", changed=False)
        ids = {entry.old_id: entry.new_id for entry in plan.entries if entry.old_id != entry.new_id}
        summary = f"new names in {pluralize(count, 'entry', 'entries')}"
        return Proposal(
            change_set(view, JobKind.MIGRATE, summary, writes),
            # References and pins must be known under the old ids in order to follow.
            before_commit=lambda: record_entries(context.entries, view.role, document, today),
            after_commit=lambda: record_entries(context.entries, view.role, plan.document, today, ids),
        )

    return plan_memory_and_commit(context, planner)


def plan_knowledge_names(view: RoleView) -> RenamedDocument | None:
    """Return the knowledge file of a role with the present names; None if there is none that can be read."""
    if view.knowledge is None or view.knowledge.data is None:
        return None
    document = parse(view.knowledge.text)
    return None if isinstance(document, Unreadable) else plan_names(view.role, document)


def _rename_writes(view: RoleView, file: Snapshot | None, plan: RenamedDocument, today: date) -> list[Write]:
    if file is None or not plan.entries or not round_trips(plan.document):
        return []
    name = file.path.name
    after = redact_bytes(plan.document.render())
    backup = Write(role_path(view, free_backup_name(view.role, today, name)), None, redact_bytes(file.text))
    return [Write(role_path(view, name), file.digest, after), backup]


def _changed_references(role: Role, plan: RenamedDocument) -> Mapping[str, str]:
    """Return old reference -> new reference, for every path that a solution may have."""
    tail = f"{role.name}/{role.memory.name}"
    paths = (*(f"{below}/{tail}" for below in STORE_DIRS), f"echoes/{tail}")
    present = str(role.memory.relative_to(role.store.project))
    return {
        str(EntryReference(path, entry.old_id, entry_digest(entry.before))): str(
            EntryReference(present, entry.new_id, entry_digest(entry.after))
        )
        for entry in plan.entries
        for path in paths
    }


def _correct_references(context: JobContext, names: Sequence[str], references: Mapping[str, str]) -> JobOutcome:
    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        writes: list[Write] = []
        appends: list[Append] = []
        for name in names:
            file = context.session.read_file(name)
            if file.data is None:
                continue
            after = _with_new_references(file.text, references)
            if after == file.text:
                continue
            writes.append(Write(role_path(view, name), file.digest, after))
            archive = role_path(view, f"{ARCHIVE}/replaced-{today.year}.md")
            header = f"<!-- {name}, as it was until {today.isoformat()} -->\n".encode()
            appends.append(Append(archive, header + file.text.rstrip(b"\n") + b"\n\n"))
        if not writes:
            return JobDone("no solution refers to them", changed=False)
        summary = f"new references in {pluralize(len(writes), 'solution')}"
        return Proposal(change_set(view, JobKind.MIGRATE, summary, writes, appends=appends))

    return plan_and_commit(context, planner)


def _with_new_references(data: bytes, references: Mapping[str, str]) -> bytes:
    """Replace whole references in one pass: the path of an earlier layout is also the end of a present one."""
    old = "|".join(re.escape(reference) for reference in sorted(references, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w./-])(?:{old})".encode())
    return pattern.sub(lambda match: references[match[0].decode()].encode(), data)


NEW_LAYOUT: Final = STORE_DIRS[0]
OLD_LAYOUT: Final = STORE_DIRS[1]

_MIGRATION_LOCK: Final = ".migration-lock"
"""The directory in `.rune` by which the workflow plugin keeps two migrations apart."""
_STALE_LOCK_SECONDS: Final = 300.0
_MAX_ATTEMPTS: Final = 5
_EMPTY: Final = Document("", ())


class MergedFile(NamedTuple):
    """A file of the new store with the content of the old one, and the number of texts that lost against it."""

    data: bytes
    overridden: int


class MovePlan(NamedTuple):
    """The files of a role that move.

    Attributes:
        files: file name -> content in the old store.
        problem: why the role cannot move now, without a full stop; None if it can.
    """

    files: Mapping[str, Snapshot]
    problem: str | None = None


def old_store(project: Path) -> Store:
    """Return the store of the former layout, which need not exist."""
    return Store(project, project / OLD_LAYOUT)


def new_store(project: Path) -> Store:
    """Return the store of the present layout, which need not exist."""
    return Store(project, project / NEW_LAYOUT)


def find_move_problem(project: Path) -> str | None:
    """Return why the memory of a project must not be moved, as a sentence; None if it may be."""
    main = main_worktree_path(project)
    if main != project:
        return f"{project} is a copy of {main}, which is deleted after use. Migrate that project instead."
    for part in (NEW_LAYOUT.parts[0], str(NEW_LAYOUT)):
        if (project / part).is_symlink():
            return f"{project / part} is a symbolic link, and echod follows none inside a project."
    return None


def plan_move(view: RoleView) -> MovePlan:
    """Return the files of a role that would move."""
    files = {view.memory.path.name: view.memory, **{file.path.name: file for file in view.findings}}
    if view.knowledge is not None:
        files[view.knowledge.path.name] = view.knowledge
    present = {name: file for name, file in files.items() if file.data is not None}
    for name in (MEMORY_FILE, KNOWLEDGE_FILE):
        if name in present and isinstance(document := parse(present[name].text), Unreadable):
            return MovePlan({}, f"{name} is left alone: {document.reason.rstrip('.')}")
    if view.unavailable_findings:
        return MovePlan({}, view.unavailable_findings[0].reason.rstrip("."))
    return MovePlan(present)


def create_new_store(project: Path) -> None:
    """Create the new store, under the lock by which the workflow plugin keeps two migrations apart.

    The plugin moves a directory only where none is, so the lock is released as soon as the new store exists. A lock
    that a killed program left is not removed.

    Raises:
        BusyError: another migration runs.
        StoreError: a directory cannot be created.
    """
    lock = project / NEW_LAYOUT.parts[0] / _MIGRATION_LOCK
    with as_store_error("create", new_store(project).root):
        ensure_directory(project, lock.parent).close()
        try:
            lock.mkdir(0o700)
        except FileExistsError:
            if not lock.is_dir() or time.time() - lock.lstat().st_mtime < _STALE_LOCK_SECONDS:
                raise BusyError(
                    f"Another migration holds {lock}. Nothing was changed. Try again when it has ended."
                ) from None
            ensure_directory(project, new_store(project).root).close()
            return
        try:
            ensure_directory(project, new_store(project).root).close()
        finally:
            lock.rmdir()


def move_role(resources: JobResources, role: Role) -> JobOutcome:
    """Move a role of the old store to the new one."""
    target = Role(new_store(role.store.project), role.name)
    moved = False
    for _ in range(_MAX_ATTEMPTS):
        # The two roles have one lock, so they are opened one after the other.
        with resources.open_role(role) as context:
            view = context.session.read()
            waiting = knowledge_unavailable(view, resources.clock())
            plan = plan_move(view)
        if waiting is not None:
            return waiting
        if plan.problem is not None:
            return JobBlocked(f"{role.name}: {plan.problem}")
        if not plan.files:
            return JobDone("nothing is left to move", changed=moved)
        with as_store_error("create", target.path):
            ensure_directory(target.store.project, target.path).close()
        with resources.open_role(target) as context:
            added = _add_to_target(context, plan)
        if not isinstance(added, JobDone):
            return added
        moved = True
        with resources.open_role(role) as context:
            removed = _archive_moved(context, plan)
        if isinstance(removed, JobDone):
            return JobDone(added.summary, changed=True)
        if not isinstance(removed, JobDeferred):
            return removed
    return JobDeferred("other programs keep writing the same files", resources.clock() + RETRY_SECONDS)


def _add_to_target(context: JobContext, plan: MovePlan) -> JobOutcome:
    """Add the content of the moved files to the role in the new store."""

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        if (unavailable := knowledge_unavailable(view, context.clock())) is not None:
            return unavailable
        writes: list[Write] = []
        overridden = 0
        for name, present in ((MEMORY_FILE, view.memory), (KNOWLEDGE_FILE, view.knowledge)):
            if name in plan.files and present is not None:
                merged = merge_file(present.data, plan.files[name].text)
                if isinstance(merged, str):
                    return JobBlocked(f"{name} of {view.role.name} cannot be merged: {merged.rstrip('.')}")
                overridden += merged.overridden
                if merged.data != present.data:
                    writes.append(Write(role_path(view, name), present.digest, merged.data))
        writes += _findings_writes(view, plan)
        count = pluralize(len(plan.files), "file")
        lost = f", {pluralize(overridden, 'text')} of the old one only in its archive" if overridden else ""
        summary = f"{count} moved from {OLD_LAYOUT} to {NEW_LAYOUT}{lost}"
        if not writes:
            return JobDone(summary, changed=False)

        def record() -> None:
            memory = next((write for write in writes if write.path.name == MEMORY_FILE), None)
            if memory is not None and isinstance(document := parse(memory.after), Document):
                record_entries(context.entries, view.role, document, today)

        return Proposal(change_set(view, JobKind.MIGRATE, summary, writes), after_commit=record)

    return plan_and_commit(context, planner)


def merge_file(present: bytes | None, moved: bytes) -> MergedFile | str:
    """Return a file with all blocks of both versions, or the reason why they cannot be merged.

    Where both changed one entry, the present version stays in the file. The other one is in the archive.
    """
    moved = redact_bytes(moved)
    if not (present or b"").strip():
        return MergedFile(moved, 0)
    one, other = parse(present or b""), parse(moved)
    for document in (one, other):
        if isinstance(document, Unreadable):
            return document.reason
    assert isinstance(one, Document)  # noqa: S101  checked above
    assert isinstance(other, Document)  # noqa: S101  checked above
    result = merge(_EMPTY, one, other)
    if isinstance(result, MergeFailure):
        return result.reason
    return MergedFile(redact_bytes(result.data), len(result.overridden))


def _findings_writes(view: RoleView, plan: MovePlan) -> Iterator[Write]:
    present = {file.path.name: file.text for file in view.findings}
    for name, file in plan.files.items():
        if name in (MEMORY_FILE, KNOWLEDGE_FILE):
            continue
        text = redact_bytes(file.text)
        if text in present.values():
            continue
        free, number = name, 0
        while free in present or os.path.lexists(view.role.path / free):
            number += 1
            free = restored_findings_name(name, number)
        present[free] = text
        yield Write(role_path(view, free), None, text)


def _archive_moved(context: JobContext, plan: MovePlan) -> JobOutcome:
    """Move the files in the old store to its archive, if they are still as they were moved."""

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        current = plan_move(view)
        if {name: file.digest for name, file in current.files.items()} != {
            name: file.digest for name, file in plan.files.items()
        }:
            return JobDeferred("a file was changed meanwhile", context.clock())
        consumes = [
            ConsumeFindings(
                path=role_path(view, name),
                before=file.digest or "",
                archive=role_path(view, _archive_name(view.role, name, today)),
                archived_text=redact_bytes(file.text),
            )
            for name, file in plan.files.items()
        ]
        summary = f"{pluralize(len(consumes), 'file')} moved to {NEW_LAYOUT}"
        return Proposal(change_set(view, JobKind.MIGRATE, summary, consumes=consumes))

    return plan_and_commit(context, planner)


def _archive_name(role: Role, name: str, today: date) -> str:
    if name in (MEMORY_FILE, KNOWLEDGE_FILE):
        return free_backup_name(role, today, name)
    return str(findings_archive_path(name, today))

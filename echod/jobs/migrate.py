"""The jobs that bring memory up to date: new names in metadata, and the layout of the directories.

`memory.renames` has the names. New names change the ids of entries and the hashes that solutions refer to, so the same
job carries references and pins along and corrects the solutions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import PurePosixPath

from echod.inspection.entry_facts import record_entries
from echod.jobs.archives import free_backup_name
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    JobResources,
    Proposal,
    change_set,
    parse_memory,
    plan_and_commit,
    plan_memory_and_commit,
    role_path,
    write_memory,
)
from echod.memory.merge import round_trips
from echod.memory.model import Document
from echod.memory.redact import redact_bytes
from echod.memory.renames import RenamedDocument, rename_document
from echod.memory.solutions.promotion import EntryReference, entry_digest
from echod.memory.text import pluralize
from echod.remembrance.library import read_library
from echod.state.job import JobKind
from echod.store.changes import Append, Write
from echod.store.layout import ARCHIVE, STORE_DIRS, Role, solutions_store
from echod.store.session import RoleView

_NEW_LAYOUT = STORE_DIRS[0]


def is_in_new_layout(role: Role) -> bool:
    """Return whether a role is in a store of the present layout."""
    return role.store.root == role.store.project / _NEW_LAYOUT


def plan_names(role: Role, document: Document) -> RenamedDocument:
    """Return the memory file of a role with the present names."""
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
        plan = plan_names(view.role, document)
        if not plan.entries or not round_trips(plan.document):
            return JobDone("all names are current", changed=False)
        ids = {entry.old_id: entry.new_id for entry in plan.entries if entry.old_id != entry.new_id}
        backup = Write(role_path(view, free_backup_name(view.role, today)), None, redact_bytes(view.memory.text))
        summary = f"new names in {pluralize(len(plan.entries), 'entry', 'entries')}"
        writes = [write_memory(view, redact_bytes(plan.document.render())), backup]
        return Proposal(
            change_set(view, JobKind.MIGRATE, summary, writes),
            # References and pins must be known under the old ids in order to follow.
            before_commit=lambda: record_entries(context.entries, view.role, document, today),
            after_commit=lambda: record_entries(context.entries, view.role, plan.document, today, ids),
        )

    return plan_memory_and_commit(context, planner)


def _changed_references(role: Role, plan: RenamedDocument) -> Mapping[str, str]:
    """Return old reference -> new reference, for every path that a solution may have."""
    tail = f"{role.name}/{role.memory.name}"
    paths = {*(f"{below}/{tail}" for below in STORE_DIRS), f"echoes/{tail}"}
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

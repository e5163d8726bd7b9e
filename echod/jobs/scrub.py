"""Takes secrets out of files in which they already stand. Only because a person asked for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from echod.inspection.secrets import ScanCandidate
from echod.jobs.base import JobContext, JobDone, JobOutcome
from echod.memory.document import parse
from echod.memory.exposed_secrets import locate_secrets, strip_secrets
from echod.memory.model import Unreadable
from echod.store.changes import ChangeSet, CommitResult, Origin, Write
from echod.store.errors import BusyError
from echod.store.layout import MEMORY
from echod.store.session import RoleSession
from echod.store.snapshot import Snapshot

_MAX_PLANS = 5
MAX_FILES = 50
"""Of a role's files so many are changed in one commit."""


def run(context: JobContext, files: Iterable[ScanCandidate], *, include_protected: bool) -> JobOutcome:
    """Strip these files of the role of `session`.

    Args:
        context: the job, with the role locked.
        files: at most `MAX_FILES` of the role.
        include_protected: whether etched entries and notes lose their secrets too.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """
    session, chosen = context.session, tuple(files)
    for _ in range(_MAX_PLANS):
        writes: list[Write] = []
        skipped: list[str] = []
        removed = 0
        for file in chosen:
            name = file.path.relative_to(session.role.path)
            try:
                found = _read(session, str(name))
            except BusyError as error:
                skipped.append(str(error))
                continue
            document = parse(found.text)
            if isinstance(document, Unreadable):
                skipped.append(f"{file.path} is left alone. {document.reason}")
                continue
            after = strip_secrets(found.text, include_protected=include_protected)
            if after != found.text:
                removed += len(locate_secrets(found.text)) - len(locate_secrets(after))
                writes.append(Write(PurePosixPath(session.role.name) / name, found.digest, after))
        summary = f"{removed} {'secret' if removed == 1 else 'secrets'} taken out"
        changes = ChangeSet("scrub", session.role.name, summary, tuple(writes), origin=Origin.USER)
        if changes.is_empty or isinstance(session.commit(context.job_id, changes, gate=context.gate), CommitResult):
            return JobDone(summary, changed=not changes.is_empty, skipped=tuple(skipped))
    raise BusyError("Other programs keep writing the same files; try again in a moment.")


def _read(session: RoleSession, name: str) -> Snapshot:
    # What another program overwrote in the memory file is put right first.
    return session.read().memory if name == MEMORY else session.read_file(name)

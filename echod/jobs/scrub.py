"""The scrub job: remove secrets from files on the disk at the user's request."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from echod.inspection.secrets import ScanCandidate
from echod.jobs.base import JobContext, JobDone, JobOutcome, Proposal, replan_and_commit
from echod.memory.document import parse
from echod.memory.exposed_secrets import locate_secrets, strip_secrets
from echod.memory.model import Unreadable
from echod.state.job import JobKind
from echod.store.changes import ChangeSet, Origin, Write
from echod.store.errors import BusyError
from echod.store.layout import MEMORY

MAX_FILES = 50
"""The number of files of a role that one commit changes."""


def run(context: JobContext, files: Iterable[ScanCandidate], *, include_protected: bool) -> JobOutcome:
    """Remove the secrets from at most `MAX_FILES` files of the role; from etched entries and notes only on request."""
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

"""Takes secrets out of files in which they already stand. Only because a person asked for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.inspection.secrets import ScanCandidate
from echod.memory.document import parse
from echod.memory.exposed_secrets import locate_secrets, strip_secrets
from echod.memory.model import Unreadable
from echod.store.changes import ChangeSet, CommitGate, CommitResult, Origin, Write
from echod.store.errors import BusyError
from echod.store.layout import MEMORY
from echod.store.session import RoleSession
from echod.store.snapshot import Snapshot

_MAX_PLANS = 5
MAX_FILES = 50
"""Of a role's files so many are changed in one commit."""


class ScrubResult(NamedTuple):
    """What was done in a role: how many secrets are gone, and why which file was left alone."""

    removed: int
    skipped: tuple[str, ...]

    @property
    def summary(self) -> str:
        """A sentence for the list of jobs."""
        return f"{self.removed} {'secret' if self.removed == 1 else 'secrets'} taken out"


def run(
    job_id: int, session: RoleSession, files: Iterable[ScanCandidate], *, include_protected: bool, gate: CommitGate
) -> ScrubResult:
    """Strip these files of the role of `session`.

    Args:
        job_id: the number under which it is done.
        session: the role, held.
        files: at most `MAX_FILES` of the role.
        include_protected: whether etched entries and notes lose their secrets too.
        gate: asked before anything is changed.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`; nothing was changed.
    """
    chosen = tuple(files)
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
        result = ScrubResult(removed, tuple(skipped))
        changes = ChangeSet("scrub", session.role.name, result.summary, tuple(writes), origin=Origin.USER)
        if changes.is_empty or isinstance(session.commit(job_id, changes, gate=gate), CommitResult):
            return result
    raise BusyError("Other programs keep writing the same files; try again in a moment.")


def _read(session: RoleSession, name: str) -> Snapshot:
    # What another program overwrote in the memory file is put right first.
    return session.read().memory if name == MEMORY else session.read_file(name)

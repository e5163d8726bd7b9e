"""Findings that wait for a person: their consolidation was undone, and the same is not done again unasked."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from echod.errors import EchodError
from echod.logger import get_logger
from echod.state.job import JobKind
from echod.store.journal.notices import Notes
from echod.store.layout import Role
from echod.store.reader import Reader

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KeptBack:
    """A findings file that was given back.

    Attributes:
        since: when it was given back (Unix seconds).
        digest: its content.
        by: the job that undid its consolidation; None where several did so in this role, or it is forgotten.
    """

    role: Role
    path: Path
    since: float
    digest: str
    by: int | None

    @property
    def reason(self) -> str:
        """Why it waits, in a sentence."""
        return f"{self.path.name} is not folded in again: a person took back what it gave."

    @property
    def remedy(self) -> str:
        """What a person can do about it."""
        project = shlex.quote(str(self.role.store.project))
        command = f"consolidate {project} --role {self.role.name}" if self.by is None else f"undo {self.by}"
        return f"Change or delete the file; or fold it in as it is with: echod {command}"


def kept_back(reader: Reader, notes: Notes) -> tuple[KeptBack, ...]:
    """The findings of a store that wait for a person, by role and name. `notes` are the store's. Writes nothing.

    A role that cannot be read now is left out; that it cannot is told elsewhere.
    """
    found: list[KeptBack] = []
    for role in notes.gave_back:
        try:
            found += _of_role(reader, role)
        except EchodError as error:
            log.info("role_not_readable_now", role=str(role.path), reason=str(error))
    return tuple(found)


def _of_role(reader: Reader, role: Role) -> list[KeptBack]:
    if not os.path.lexists(role.path):
        return []
    view = reader.peek(role)
    left = [findings for findings in view.findings if findings.digest in view.undone]
    if not left:
        return []
    done = [d for d in reader.history([role.store]) if d.role == role and d.kind == JobKind.UNDO]
    undos = {d.job for d in done if d.undone_by is None}
    by = undos.pop() if len(undos) == 1 else None
    return [
        KeptBack(role, role.path / findings.path.name, findings.mtime_ns / 1e9, findings.digest or "", by)
        for findings in left
    ]

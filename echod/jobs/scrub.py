"""Takes secrets out of files in which they already stand. Only because a person asked for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.inspection.secrets import Candidate
from echod.memory.document import parse
from echod.memory.exposed_secrets import find_places, strip
from echod.memory.model import Unreadable
from echod.store.changes import ChangeSet, Committed, Gate, Origin, Write
from echod.store.errors import Busy
from echod.store.layout import MEMORY
from echod.store.session import RoleSession
from echod.store.snapshot import Snapshot

_PLANS = 5
MOST_FILES = 50
"""Of a role's files so many are changed in one commit."""


class Scrubbed(NamedTuple):
    """What was done in a role: how many secrets are gone, and why which file was left alone."""

    places: int
    skipped: tuple[str, ...]

    @property
    def summary(self) -> str:
        """A sentence for the list of jobs."""
        return f"{self.places} {'secret' if self.places == 1 else 'secrets'} taken out"


def run(job: int, session: RoleSession, files: Iterable[Candidate], *, confirmed: bool, gate: Gate) -> Scrubbed:
    """Strip these files of the role of `session`.

    Args:
        job: the number under which it is done.
        session: the role, held.
        files: at most `MOST_FILES` of the role.
        confirmed: whether etched entries and notes lose their secrets too.
        gate: asked before anything is changed.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """
    chosen = tuple(files)
    for _ in range(_PLANS):
        writes: list[Write] = []
        skipped: list[str] = []
        places = 0
        for file in chosen:
            name = file.path.relative_to(session.role.path)
            try:
                found = _read(session, str(name))
            except Busy as error:
                skipped.append(str(error))
                continue
            read_as = parse(found.text)
            if isinstance(read_as, Unreadable):
                skipped.append(f"{file.path} is left alone. {read_as.reason}")
                continue
            after = strip(found.text, confirmed=confirmed)
            if after != found.text:
                places += len(find_places(found.text)) - len(find_places(after))
                writes.append(Write(PurePosixPath(session.role.name) / name, found.digest, after))
        done = Scrubbed(places, tuple(skipped))
        changes = ChangeSet("scrub", session.role.name, done.summary, tuple(writes), origin=Origin.PERSON)
        if changes.empty or isinstance(session.commit(job, changes, gate=gate), Committed):
            return done
    raise Busy("Other programs keep writing the same files; try again in a moment.")


def _read(session: RoleSession, name: str) -> Snapshot:
    # What another program overwrote in the memory file is put right first.
    return session.read().memory if name == MEMORY else session.file(name)

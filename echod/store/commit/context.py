"""Everything a commit in one role works with: its open directories, its journal, the numbers, the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from echod.memory.document import parse
from echod.memory.lineage import Shape, shape
from echod.memory.model import Document, Unreadable
from echod.store.capabilities import Probes
from echod.store.commit.steps import Tracer
from echod.store.errors import told
from echod.store.journal.blobs import ImageMissing
from echod.store.journal.journal import RoleJournal
from echod.store.limits import EngineLimits
from echod.store.role_directory import Ground
from echod.store.role_lock import RoleLock
from echod.store.snapshot import NotSettled, Snapshot, digest, read


@dataclass(slots=True)
class Readings:
    """How contents were read before, by digest; a bounded memo, not a source of truth.

    It holds `limit` contents and `limit_bytes` of text (a document takes ten times as much), or a single larger one.
    """

    limit: int = 256
    limit_bytes: int = 8 << 20
    _bytes: int = 0
    _known: dict[str, tuple[int, Document | Unreadable]] = field(default_factory=dict)
    _shapes: dict[str, Shape] = field(default_factory=dict)

    def document(self, journal: RoleJournal, image: str) -> Document | None:
        """The document of an image of the journal; None where it is lost or cannot be read."""
        if image in self._known:
            known = self._known[image][1]
        else:
            try:
                known = self.read(journal.images.get(image))
            except ImageMissing:
                return None
        return known if isinstance(known, Document) else None

    def remember(self, data: bytes) -> Document | None:
        """The document of a content; None where it cannot be read."""
        known = self.read(data)
        return known if isinstance(known, Document) else None

    def read(self, data: bytes) -> Document | Unreadable:
        """Parse a content, or recall how it was parsed."""
        name = digest(data)
        if name not in self._known:
            while self._known and (len(self._known) >= self.limit or self._bytes + len(data) > self.limit_bytes):
                oldest = next(iter(self._known))
                self._bytes -= self._known.pop(oldest)[0]
                self._shapes.pop(oldest, None)
            self._known[name] = (len(data), parse(data))
            self._bytes += len(data)
        return self._known[name][1]

    def shape(self, image: str, document: Document) -> Shape:
        """What lineage sees of a document; `image` is its digest."""
        if image not in self._shapes:
            if len(self._shapes) >= self.limit:
                self._shapes.pop(next(iter(self._shapes)))
            self._shapes[image] = shape(document)
        return self._shapes[image]


class Desk(NamedTuple):
    """What a commit in one role works with."""

    ground: Ground
    journal: RoleJournal
    limits: EngineLimits
    clock: Callable[[], float]
    trace: Tracer
    lock: RoleLock
    readings: Readings
    probes: Probes

    def read(self, path: str) -> Snapshot:
        """A file of the role as of one moment.

        Raises:
            NotSettled: someone is writing it.
            StoreFault: it cannot be read.
        """
        with told("read", self.ground.role.store.root / path):
            directory, name = self.ground.place(path)
            found = read(directory, name, now=self.clock(), settle_seconds=self.limits.settle_seconds)
        if isinstance(found, Snapshot):
            return found
        raise NotSettled(found)

    def moment(self) -> float:
        """Now, but later than anything this role has recorded: the clock may go back, history may not."""
        state, records = self.journal.newest_state(), self.journal.open_records()
        last = max(0.0 if state is None else state.since, *(record.at for record in records[-1:]), 0.0)
        return max(self.clock(), last + 1e-4)

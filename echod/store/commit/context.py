"""The context of a commit in one role (directories, journal, limits, clock, parse cache), and the named steps.

At each step a test may kill the commit, look, or let another program write, and the daemon's progress tracer records
it. Production code that is not traced uses `no_trace`, which does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from echod.files import content_digest
from echod.lazy import lazy_imports
from echod.memory.model import Document, Unreadable
from echod.store.errors import EngineLimits, as_store_error
from echod.store.fs import CapabilityCache, FileUnavailableError, Snapshot, read_snapshot
from echod.store.journal.files import BlobMissingError
from echod.store.journal.journal import RoleJournal
from echod.store.journal.records import SHORTEST_INTERVAL
from echod.store.layout import MEMORY, Role
from echod.store.role import RoleDirectory, RoleLock

with lazy_imports(__name__):
    from echod.memory import document as document_module
    from echod.memory import identity

if TYPE_CHECKING:
    from echod.memory.identity import BlockTexts


class CommitStep(StrEnum):
    """The steps in the order in which a commit passes them."""

    BEGIN = "begin"
    STAGED = "staged"
    BLOBS_STORED = "blobs-stored"
    COMPARED = "compared"
    INTENT_WRITTEN = "intent-written"
    ARCHIVED = "archived"
    LEASED = "leased"
    EXCHANGED = "exchanged"
    TOUCHED = "touched"
    RELEASED = "released"
    PUBLISHED = "published"
    CREATED = "created"
    LINKED = "linked"
    CLAIMED = "claimed"
    CLAIMS_SYNCED = "claims-synced"
    LATE_MERGE_RECORDED = "late-merge-recorded"
    APPLIED = "applied"
    SWEPT = "swept"
    REDOING = "redoing"
    CLOSING = "closing"
    DISPLACED_REMOVED = "displaced-removed"
    CLOSED = "closed"


Tracer = Callable[[CommitStep], None]
"""Called with each step as it is passed."""


def no_trace(step: CommitStep) -> None:
    """Do nothing."""


@dataclass(slots=True)
class ParseCache:
    """Parsed contents by digest. A bounded cache, not a source of truth.

    It holds `limit` contents and `limit_bytes` of text (a document takes ten times as much), or a single larger one.
    """

    limit: int = 256
    limit_bytes: int = 8 << 20
    _cached_bytes: int = 0
    _documents: dict[str, tuple[int, Document | Unreadable]] = field(default_factory=dict)
    _shapes: dict[str, BlockTexts] = field(default_factory=dict)

    def parse_blob(self, journal: RoleJournal, digest: str) -> Document | None:
        """Return the document of a blob of the journal, or None if it is lost or unreadable."""
        if digest in self._documents:
            parsed = self._documents[digest][1]
            return parsed if isinstance(parsed, Document) else None
        try:
            return self.parse_document(journal.blobs.get(digest))
        except BlobMissingError:
            return None

    def parse_before(self, journal: RoleJournal, digest: str | None) -> Document | None:
        """Return the document of a blob, which is empty if the file did not exist (`digest` is None)."""
        return self.parse_blob(journal, digest) if digest else Document("", ())

    def parse_document(self, data: bytes) -> Document | None:
        """Return the document of a content, or None if it is unreadable."""
        parsed = self.parse(data)
        return parsed if isinstance(parsed, Document) else None

    def parse(self, data: bytes) -> Document | Unreadable:
        """Parse a content, or return the cached result."""
        key = content_digest(data)
        if key not in self._documents:
            while self._documents and (
                len(self._documents) >= self.limit or self._cached_bytes + len(data) > self.limit_bytes
            ):
                oldest = next(iter(self._documents))
                self._cached_bytes -= self._documents.pop(oldest)[0]
                self._shapes.pop(oldest, None)
            self._documents[key] = (len(data), document_module.parse(data))
            self._cached_bytes += len(data)
        return self._documents[key][1]

    def shape(self, digest: str, document: Document) -> BlockTexts:
        """Return the block texts of a document, which lineage compares. `digest` is that of the document's content."""
        if digest not in self._shapes:
            if len(self._shapes) >= self.limit:
                self._shapes.pop(next(iter(self._shapes)))
            self._shapes[digest] = identity.block_texts(document)
        return self._shapes[digest]


class CommitContext(NamedTuple):
    """The collaborators of a commit in one role."""

    directory: RoleDirectory
    journal: RoleJournal
    limits: EngineLimits
    clock: Callable[[], float]
    trace: Tracer
    lock: RoleLock
    cache: ParseCache
    capabilities: CapabilityCache

    @property
    def role(self) -> Role:
        """The role that is read or changed."""
        return self.directory.role

    @property
    def memory_path(self) -> str:
        """The path of the role's memory file, relative to the store."""
        return self.directory.path_of(MEMORY)

    def read(self, path: str) -> Snapshot:
        """Read a file of the role as of one moment. `FileUnavailableError` if another program is writing it."""
        with as_store_error("read", self.role.store.root / path):
            directory, name = self.directory.resolve(path)
            snapshot = read_snapshot(directory, name, now=self.clock(), settle_seconds=self.limits.settle_seconds)
        if isinstance(snapshot, Snapshot):
            return snapshot
        raise FileUnavailableError(snapshot)

    def next_timestamp(self) -> float:
        """Return the current time, or a later one than any recorded in this role: history never goes back."""
        state, records = self.journal.newest_state(), self.journal.open_records()
        last_timestamp = max(0.0 if state is None else state.since, *(record.at for record in records[-1:]), 0.0)
        return max(self.clock(), last_timestamp + SHORTEST_INTERVAL)

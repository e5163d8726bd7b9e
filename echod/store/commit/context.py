"""Everything a commit in one role works with: its open directories, its journal, the numbers, the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from echod.memory.model import Document, Unreadable
from echod.store.capabilities import CapabilityCache
from echod.store.commit.steps import Tracer
from echod.store.errors import as_store_error
from echod.store.journal.blobs import BlobMissingError
from echod.store.journal.journal import RoleJournal
from echod.store.limits import EngineLimits
from echod.store.role_directory import RoleDirectory
from echod.store.role_lock import RoleLock
from echod.store.snapshot import FileUnavailableError, Snapshot, content_digest, read_snapshot

if TYPE_CHECKING:
    from echod.memory.lineage import BlockTexts


@dataclass(slots=True)
class ParseCache:
    """How contents were read before, by digest; a bounded memo, not a source of truth.

    It holds `limit` contents and `limit_bytes` of text (a document takes ten times as much), or a single larger one.
    """

    limit: int = 256
    limit_bytes: int = 8 << 20
    _cached_bytes: int = 0
    _documents: dict[str, tuple[int, Document | Unreadable]] = field(default_factory=dict)
    _shapes: dict[str, BlockTexts] = field(default_factory=dict)

    def parse_blob(self, journal: RoleJournal, digest: str) -> Document | None:
        """The document of an image of the journal; None where it is lost or cannot be read."""
        if digest in self._documents:
            parsed = self._documents[digest][1]
        else:
            try:
                parsed = self.parse(journal.blobs.get(digest))
            except BlobMissingError:
                return None
        return parsed if isinstance(parsed, Document) else None

    def parse_document(self, data: bytes) -> Document | None:
        """The document of a content; None where it cannot be read."""
        parsed = self.parse(data)
        return parsed if isinstance(parsed, Document) else None

    def parse(self, data: bytes) -> Document | Unreadable:
        """Parse a content, or recall how it was parsed."""
        key = content_digest(data)
        if key not in self._documents:
            from echod.memory.document import parse  # noqa: PLC0415  `echod status` parses nothing, and starts sooner

            while self._documents and (
                len(self._documents) >= self.limit or self._cached_bytes + len(data) > self.limit_bytes
            ):
                oldest = next(iter(self._documents))
                self._cached_bytes -= self._documents.pop(oldest)[0]
                self._shapes.pop(oldest, None)
            self._documents[key] = (len(data), parse(data))
            self._cached_bytes += len(data)
        return self._documents[key][1]

    def shape(self, digest: str, document: Document) -> BlockTexts:
        """What lineage sees of a document, whose content has the digest `digest`."""
        if digest not in self._shapes:
            from echod.memory.lineage import block_texts  # noqa: PLC0415  `echod status` needs no lineage

            if len(self._shapes) >= self.limit:
                self._shapes.pop(next(iter(self._shapes)))
            self._shapes[digest] = block_texts(document)
        return self._shapes[digest]


class CommitContext(NamedTuple):
    """What a commit in one role works with."""

    directory: RoleDirectory
    journal: RoleJournal
    limits: EngineLimits
    clock: Callable[[], float]
    trace: Tracer
    lock: RoleLock
    cache: ParseCache
    capabilities: CapabilityCache

    def read(self, path: str) -> Snapshot:
        """A file of the role as of one moment.

        Raises:
            FileUnavailableError: someone is writing it.
            StoreError: it cannot be read.
        """
        with as_store_error("read", self.directory.role.store.root / path):
            directory, name = self.directory.resolve(path)
            found = read_snapshot(directory, name, now=self.clock(), settle_seconds=self.limits.settle_seconds)
        if isinstance(found, Snapshot):
            return found
        raise FileUnavailableError(found)

    def next_timestamp(self) -> float:
        """Now, but later than anything this role has recorded: the clock may go back, history may not."""
        state, records = self.journal.newest_state(), self.journal.open_records()
        last_timestamp = max(0.0 if state is None else state.since, *(record.at for record in records[-1:]), 0.0)
        return max(self.clock(), last_timestamp + 1e-4)

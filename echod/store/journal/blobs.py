"""Store contents in the journal, named by their digest.

They are exact, private (0600), written once, and durable after `sync`.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from echod.store.errors import StoreError
from echod.store.journal.files import fsync_directory, read_if_exists, write_synced
from echod.store.snapshot import content_digest


class BlobMissingError(StoreError):
    """A blob is missing or damaged. The caller must do without it."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"The journal has lost {path}. The operation that needs it is no longer possible.")


class BlobStore(NamedTuple):
    """A directory of contents."""

    root: Path

    def put(self, data: bytes) -> str:
        """Store a content and return its name. It is durable after the next `sync`."""
        name = content_digest(data)
        path = self.root / name
        if not path.exists():
            write_synced(path, data)
        return name

    def get(self, name: str) -> bytes:
        """Return the content of that name.

        Raises:
            BlobMissingError: it is missing, or its bytes no longer match its name.
        """
        data = read_if_exists(self.root / name)
        if data is None or content_digest(data) != name:
            raise BlobMissingError(self.root / name)
        return data

    def size(self, name: str) -> int:
        """Return the number of bytes of a content; 0 if it is missing."""
        try:
            return (self.root / name).stat().st_size
        except FileNotFoundError:
            return 0

    def sync(self) -> None:
        """Make every stored blob durable."""
        if self.root.exists():
            fsync_directory(self.root)

    def delete_unreferenced(self, referenced: Collection[str]) -> int:
        """Remove unreferenced contents (and files that a crash left half-written) and return the freed bytes."""
        if not self.root.exists():
            return 0
        freed = 0
        for path in self.root.iterdir():
            if path.name not in referenced:
                freed += path.stat().st_size
                path.unlink()
        return freed

"""Contents kept by the journal, named by their digest: exact, private (0600), written once, durable when told."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from echod.paths import PRIVATE_DIR_MODE, PRIVATE_FILE_MODE
from echod.store.errors import StoreError
from echod.store.fs import full_fsync, write_all
from echod.store.snapshot import content_digest


class BlobMissingError(StoreError):
    """An image is gone or damaged; whoever needs it must do without."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"The journal has lost {path}; what it was kept for can no longer be done.")


class BlobStore(NamedTuple):
    """A directory of contents."""

    root: Path

    def put(self, data: bytes) -> str:
        """Keep a content and name it. Durable after the next `sync`."""
        name = content_digest(data)
        path = self.root / name
        if path.exists():
            return name
        if not self.root.exists():
            self.root.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
        temporary = self.root / f"{name}.part"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE_MODE)
        try:
            write_all(fd, data)
            full_fsync(fd)
        finally:
            os.close(fd)
        temporary.rename(path)
        return name

    def get(self, name: str) -> bytes:
        """The content of that name.

        Raises:
            BlobMissingError: it is gone, or its bytes no longer match its name.
        """
        try:
            data = (self.root / name).read_bytes()
        except FileNotFoundError as error:
            raise BlobMissingError(self.root / name) from error
        if content_digest(data) != name:
            raise BlobMissingError(self.root / name)
        return data

    def size(self, name: str) -> int:
        """Bytes of a content; 0 where it is gone."""
        try:
            return (self.root / name).stat().st_size
        except FileNotFoundError:
            return 0

    def sync(self) -> None:
        """Make every kept image durable."""
        if not self.root.exists():
            return
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            full_fsync(fd)
        finally:
            os.close(fd)

    def delete_unreferenced(self, referenced: Collection[str]) -> int:
        """Remove what nobody wants any more (and what a crash left half-written); how many bytes that freed."""
        if not self.root.exists():
            return 0
        freed = 0
        for path in self.root.iterdir():
            if path.name not in referenced:
                freed += path.stat().st_size
                path.unlink()
        return freed

"""Where a topic works: a scratch directory on the disk and one in memory, gone afterwards."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

IN_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Workspace:
    """Two empty directories; `memory` is on the disk too where the system has no place in memory."""

    disk: Path
    memory: Path

    def directory(self, name: str) -> Path:
        """A new directory on the disk."""
        path = self.disk / name
        path.mkdir(parents=True)
        return path

    def below(self, name: str) -> Workspace:
        """A workspace of its own inside this one."""
        memory = self.memory / name
        memory.mkdir()
        return Workspace(self.directory(name), memory)


@contextmanager
def workspace() -> Iterator[Workspace]:
    """Two directories for the length of a topic."""
    usable = IN_MEMORY.is_dir() and os.access(IN_MEMORY, os.W_OK)
    disk = Path(tempfile.mkdtemp(prefix="echod-bench-"))
    memory = Path(tempfile.mkdtemp(prefix="echod-bench-", dir=IN_MEMORY if usable else None))
    try:
        yield Workspace(disk, memory)
    finally:
        shutil.rmtree(disk, ignore_errors=True)
        shutil.rmtree(memory, ignore_errors=True)

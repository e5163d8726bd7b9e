"""The files of a project as they are now: where a citation leads, and which files may be a renamed one."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from echod.files import FileVersion, file_version, read_regular
from echod.memory.evidence.fingerprint import TokenizedFile, read_content, sketch_of

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
MAX_FILES: Final = 30_000
"""Files of a project that are listed when a cited one is looked for."""

_MAX_CACHED: Final = 256
_MAX_CANDIDATES: Final = 60
_MAX_SIZE_FACTOR: Final = 3
_PASSED_OVER: Final = frozenset({
    "node_modules", "__pycache__", "venv", "target", "dist", "build", "site-packages", "vendor",
})  # fmt: skip


class UnreadableEvidenceError(Exception):
    """A cited file cannot be read, so nothing is known about it."""


class OutsideError(Exception):
    """A citation leads out of the project."""


class ProjectFile(NamedTuple):
    """A file of a project: its path relative to the project, its size, and when its status last changed."""

    path: str
    size: int
    changed_ns: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


class ProjectFiles:
    """Reads the files of one project, each once for every version. For one thread."""

    def __init__(self, project: Path) -> None:
        self.project = Path(os.path.realpath(project))
        self._contents: OrderedDict[str, tuple[FileVersion, TokenizedFile]] = OrderedDict()
        self._sketches: dict[str, tuple[FileVersion, bytes]] = {}
        self._listed: tuple[ProjectFile, ...] | None = None

    def relative_path(self, path: str) -> str:
        """Return a cited path relative to the project, whether or not it exists.

        Raises:
            OutsideError: it leads out of the project.
        """
        if path.startswith("~"):
            raise OutsideError(path)
        whole = os.path.normpath(self.project / path)
        try:
            inside = PurePosixPath(whole).relative_to(self.project)
            PurePosixPath(os.path.realpath(whole)).relative_to(self.project)
        except (ValueError, OSError) as error:
            raise OutsideError(path) from error
        return str(inside)

    def exists(self, path: str) -> bool:
        """Return whether a path leads to a file or directory.

        Raises:
            UnreadableEvidenceError: that cannot be decided.
        """
        try:
            (self.project / path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError) as error:
            raise UnreadableEvidenceError(path) from error
        return True

    def read(self, path: str) -> TokenizedFile:
        """Return the content of a file, which exists.

        Raises:
            UnreadableEvidenceError: it is no regular file, too large, or cannot be read.
        """
        file = self.project / path
        try:
            version = file_version(file.stat())
            known = self._contents.get(path)
            if known is None or known[0] != version:
                known = (version, read_content(read_regular(file, MAX_FILE_BYTES)))
                self._contents[path] = known
                if len(self._contents) > _MAX_CACHED:
                    self._contents.popitem(last=False)
        except (OSError, ValueError) as error:
            raise UnreadableEvidenceError(path) from error
        return known[1]

    def sketch(self, path: str) -> bytes:
        """Return the sketch of a file; empty if it cannot be read."""
        file = self.project / path
        try:
            version = file_version(file.stat())
            known = self._sketches.get(path)
            if known is None or known[0] != version:
                known = self._sketches[path] = (version, sketch_of(read_regular(file, MAX_FILE_BYTES)))
        except (OSError, ValueError):
            return b""
        return known[1]

    def list_files(self) -> tuple[ProjectFile, ...]:
        """List the files of the project, without hidden ones and those that programs make. At most `MAX_FILES`."""
        if self._listed is None:
            self._listed = tuple(self._iter_files())
        return self._listed

    def _iter_files(self) -> Iterator[ProjectFile]:
        count = 0
        pending = [""]
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(self.project / folder) as entries:
                    for entry in sorted(entries, key=lambda e: e.name):
                        path = f"{folder}{entry.name}"
                        if entry.is_symlink() or not path.isprintable():
                            continue
                        if entry.is_dir():
                            if not entry.name.startswith(".") and entry.name not in _PASSED_OVER:
                                pending.append(f"{path}/")
                            continue
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            yield ProjectFile(path, status.st_size, status.st_ctime_ns)
                            count += 1
                            if count >= MAX_FILES:
                                return
            except OSError:
                continue

    def ending_with(self, path: str) -> tuple[str, ...]:
        """Return the files whose path ends with a cited path, since entries cite paths relative to some directory."""
        return tuple(file.path for file in self.list_files() if file.path.endswith(f"/{path}"))

    def rename_candidates(self, path: str, size: int, since_ns: int) -> tuple[ProjectFile, ...]:
        """Return the files that a missing file may have become, the most likely first."""
        name = path.rpartition("/")[2]
        ending = name.rpartition(".")[2] if "." in name else ""
        found = []
        for file in self.list_files():
            if file.path == path:
                continue
            same_name = file.name == name
            same_ending = (file.name.rpartition(".")[2] if "." in file.name else "") == ending
            similar_size = file.size <= max(_MAX_SIZE_FACTOR * size, 200) and size <= max(
                _MAX_SIZE_FACTOR * file.size, 200
            )
            # A rename changes the status of a file, so an older file cannot be the renamed one.
            if (same_name or (same_ending and similar_size)) and file.changed_ns >= since_ns:
                found.append((file.size != size, not same_name, abs(file.size - size), file))
        return tuple(item[-1] for item in sorted(found)[:_MAX_CANDIDATES])

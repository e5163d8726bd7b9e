"""Keep the list of registered projects and their pauses in two text files that users may edit too.

Each file has one item a line. It is only ever replaced as a whole, so readers need no lock. The files count whether or
not the daemon runs. A project is its root directory: of its content only the presence of a store is looked at, and only
for the globs of the settings.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import GARBLED_ERRORS, ConfigurationError, StateError, UsageError, os_reason
from echod.files import read_regular, write_private_durable
from echod.lazy import lazy_imports
from echod.log import get_logger
from echod.paths import (
    PRIVATE_FILE_MODE,
    is_openable_path,
    is_utf8,
    make_private_directory,
    not_absolute_reason,
    not_utf8_message,
)
from echod.store.layout import STORE_DIRS

with lazy_imports(__name__):
    import filelock

LOCK_SECONDS: Final = 10.0
MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""A list of ten thousand projects has a quarter of it."""

_ALL_PROJECTS: Final = "*"
_MAX_GLOB_DEPTH: Final = 64

log = get_logger(__name__)


class RegisteredProject(NamedTuple):
    """A registered project. `missing` is true if its directory cannot be seen (deleted, not mounted, no permission)."""

    root: Path
    missing: bool


class ProjectList(NamedTuple):
    """The registered projects in the order of the file, and a warning for each line that names none."""

    projects: tuple[RegisteredProject, ...]
    warnings: tuple[str, ...]


class PausedProjects(NamedTuple):
    """The paused projects: all, or those at `roots`. `since` (Unix seconds) is known if there is only one pause."""

    all_projects: bool
    roots: tuple[Path, ...]
    since: float | None = None

    def covers(self, root: Path) -> bool:
        """Return whether jobs of the project at `root` are held."""
        return self.all_projects or self.lists(root)

    def lists(self, root: Path) -> bool:
        """Return whether the project at `root` has a pause of its own, besides one for all projects."""
        return any(_is_same_directory(root, paused) for paused in self.roots)


class LineFile:
    """A small private text file as a tuple of lines without line ends. A line may have any bytes that a path may have.

    A change waits `lock_seconds` for another process that changes the same file.
    """

    def __init__(self, path: Path, *, lock_seconds: float = LOCK_SECONDS) -> None:
        self.path = path
        self._lock_seconds = lock_seconds

    def read(self) -> tuple[str, ...]:
        """Return every line in order; none if there is no file.

        Raises:
            StateError: the file exists and cannot be read, which is not the same as empty.
        """
        try:
            text = os.fsdecode(read_regular(self.path, MAX_FILE_BYTES))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise _state_error(self.path, "read", error) from error
        return tuple(line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")) if text else ()

    def modified_at(self) -> float | None:
        """Return when the file was last written (Unix seconds); None if its status cannot be read."""
        try:
            return self.path.stat().st_mtime
        except OSError:
            return None

    @contextlib.contextmanager
    def edit(self) -> Iterator[list[str]]:
        """Yield the lines, to be changed in place, and write them if they differ when the block ends normally.

        Raises:
            StateError: the file cannot be read or written, or another process keeps it locked.
        """
        lock_file = self.path.with_name(f"{self.path.name}.lock")
        try:
            make_private_directory(self.path.parent)
            with filelock.FileLock(lock_file, timeout=self._lock_seconds, mode=PRIVATE_FILE_MODE):
                before = self.read()
                lines = list(before)
                yield lines
                if tuple(lines) != before:
                    target = Path(os.path.realpath(self.path))  # a user's own link stays a link
                    write_private_durable(target, os.fsencode("".join(f"{line}\n" for line in lines)))
        except filelock.Timeout as error:
            raise StateError(f"{self.path} is being changed by another process; try again in a moment.") from error
        except OSError as error:
            raise _state_error(self.path, "written", error) from error


def _state_error(path: Path, action: str, error: OSError) -> StateError:
    return StateError(f"{path} cannot be {action}: {os_reason(error)}; check its permissions and the disk.")


class ProjectRegistry:
    """The list of projects at `path`, and the pauses in a file beside it. Nothing is cached.

    Every method raises a `StateError` if a file cannot be read or changed. An unreadable file does not mean that no
    project is listed or paused.
    """

    def __init__(self, path: Path) -> None:
        self._list_file = LineFile(path)
        self._pauses_file = LineFile(path.with_name("paused"))
        self.files: Final = frozenset({self._list_file.path, self._pauses_file.path})

    def list_projects(self) -> ProjectList:
        """Return the registered projects, each once. A project that has vanished stays registered."""
        by_identity: dict[tuple[int, int] | Path, RegisteredProject] = {}
        warnings: list[str] = []
        for number, line in enumerate(self._list_file.read(), start=1):
            root = _parse_root(line)
            if root is not None:
                # One status each: comparing each of a hundred projects with each other would take thousands.
                identity = _directory_identity(root)
                by_identity.setdefault(identity or root, RegisteredProject(root, missing=identity is None))
            elif line.strip() and not line.lstrip().startswith("#"):
                location = f"{self._list_file.path}:{number}"
                warnings.append(f"{location}: this is not an absolute path in UTF-8; correct or remove the line.")
        return ProjectList(tuple(by_identity.values()), tuple(warnings))

    def roots(self) -> tuple[Path, ...]:
        """Return the resolved roots of the registered projects, including the missing ones."""
        return tuple(project.root for project in self.list_projects().projects)

    def add(self, path: Path) -> bool:
        """Register the project at `path`. Return False if it was registered already.

        Raises:
            UsageError: it is not a directory, or its path cannot be written on a line.
        """
        root = _resolve(path)
        _check_single_line(root)
        if _directory_identity(root) is None:
            raise UsageError(f"{root} is not a directory; name the root of a project.")
        with self._list_file.edit() as lines:
            return _add_root(lines, root)

    def remove(self, path: Path) -> bool:
        """Remove the project at `path` from the list, and its pause. Return False if it was not registered."""
        root = _resolve(path)
        with self._list_file.edit() as lines:
            removed = _remove_root(lines, root)
        self.resume(root)
        return removed

    def move(self, old: Path, new: Path) -> None:
        """Replace a project's path in the list and in the pauses, if it is there."""
        for file in (self._list_file, self._pauses_file):
            if any(_parse_root(line) == old for line in file.read()):
                with file.edit() as lines:
                    _remove_root(lines, old)
                    _add_root(lines, new)

    def pauses(self) -> PausedProjects:
        """Return the projects that are paused now."""
        lines = self._pauses_file.read()
        roots = tuple(root for line in lines if (root := _parse_root(line)) is not None)
        all_projects = any(line.strip() == _ALL_PROJECTS for line in lines)
        since = self._pauses_file.modified_at() if len(roots) + all_projects == 1 else None
        return PausedProjects(all_projects, roots, since)

    def is_paused(self, root: Path) -> bool:
        """Return whether jobs of the project at `root` are held now."""
        return self.pauses().covers(root)

    def pause(self, path: Path | None) -> bool:
        """Hold the jobs of one project, or of all (None), until `resume`. Return False if they were held already.

        Raises:
            UsageError: the path cannot be written on a line.
        """
        with self._pauses_file.edit() as lines:
            if path is None:
                already_paused = any(line.strip() == _ALL_PROJECTS for line in lines)
                lines.extend([] if already_paused else [_ALL_PROJECTS])
                return not already_paused
            root = _resolve(path)
            _check_single_line(root)
            return _add_root(lines, root)

    def resume(self, path: Path | None) -> bool:
        """End the pause of one project, or the pause for all (None). Return False if there was none."""
        if not self._pauses_file.read():
            return False
        with self._pauses_file.edit() as lines:
            before = len(lines)
            if path is not None:
                return _remove_root(lines, _resolve(path))
            lines[:] = [line for line in lines if line.strip() != _ALL_PROJECTS]
            return len(lines) < before


def expand_globs(patterns: Iterable[str]) -> tuple[Path, ...]:
    """Return the projects that globs such as `~/src/*` match now: directories with a store, resolved, each once.

    A project whose path is not UTF-8 is skipped and logged.

    Raises:
        ConfigurationError: a pattern is not absolute.
    """
    roots: dict[Path, None] = {}
    for pattern in patterns:
        if (reason := not_absolute_reason(pattern)) is not None:
            raise ConfigurationError(f"projects: {reason}.")
        absolute = os.path.expanduser(pattern)  # noqa: PTH111  a pattern is not a path
        for match in sorted(set(_expand(os.sep, Path(absolute).parts[1:]))):
            if any(os.path.isdir(os.path.join(match, store)) for store in STORE_DIRS):  # noqa: PTH112, PTH118
                roots[_resolve(Path(match))] = None
    for root in [root for root in roots if not is_utf8(root)]:
        log.warning("project_skipped", path=ascii(str(root)), reason="its path is not UTF-8")
        del roots[root]
    return tuple(roots)


def _expand(directory: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield the paths below `directory` that the parts of a glob match, as the shell does.

    Not by the library's `glob`, whose `**` follows links: two links to the directory that contains them would take
    longer than the age of the universe.
    """
    if not parts:
        yield directory
        return
    part, rest = parts[0], parts[1:]
    if part == "**":
        if directory.count(os.sep) > _MAX_GLOB_DEPTH:
            return
        yield from _expand(directory, rest)
        for name in _subdirectories(directory, follow_links=False):
            yield from _expand(os.path.join(directory, name), parts)  # noqa: PTH118
    elif glob.has_magic(part):
        matches = re.compile(fnmatch.translate(part)).match
        for name in _subdirectories(directory, follow_links=True):
            if matches(name) and (part.startswith(".") or not name.startswith(".")):
                yield from _expand(os.path.join(directory, name), rest)  # noqa: PTH118
    else:
        yield from _expand(os.path.join(directory, part), rest)  # noqa: PTH118


def _subdirectories(directory: str, *, follow_links: bool) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries if _is_directory(entry, follow_links=follow_links)]
    except OSError:
        return []  # a directory that cannot be listed has no visible projects
    return [name for name in names if follow_links or not name.startswith(".")]


def _is_directory(entry: os.DirEntry[str], *, follow_links: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow_links)
    except OSError:
        return False  # a link to itself


def _add_root(lines: list[str], root: Path) -> bool:
    if any(_is_same_directory(root, other) for line in lines if (other := _parse_root(line)) is not None):
        return False
    lines.append(str(root))
    return True


def _remove_root(lines: list[str], root: Path) -> bool:
    before = len(lines)
    lines[:] = [line for line in lines if (other := _parse_root(line)) is None or not _is_same_directory(root, other)]
    return len(lines) < before


def _parse_root(line: str) -> Path | None:
    """Return the project that a line names. Blanks before a path are indentation, blanks after it part of the name."""
    text = line.lstrip()
    if text.startswith("~"):
        text = os.path.expanduser(text)  # noqa: PTH111  an unknown user stays text, where Path would raise
    if not is_openable_path(text):
        return None
    try:
        root = _resolve(Path(text))
    except (OSError, *GARBLED_ERRORS):
        root = Path(text)  # it counts as missing
    return root if is_utf8(root) else None


def _resolve(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_same_directory(one: Path, other: Path) -> bool:
    if one == other:
        return True
    try:
        return one.samefile(other)
    except (OSError, *GARBLED_ERRORS):
        return False  # at least one is missing, and their names differ


def _directory_identity(root: Path) -> tuple[int, int] | None:
    """Return the device and inode of a directory; None if there is no directory, or it cannot be seen."""
    try:
        status = root.stat()
    except (OSError, *GARBLED_ERRORS):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _check_single_line(root: Path) -> None:
    if any(character in str(root) for character in "\n\r\0"):
        raise UsageError(f"{str(root)!r} has a line break in its name; echod writes one path a line. Rename it first.")
    if not is_utf8(root):
        raise UsageError(not_utf8_message(root))

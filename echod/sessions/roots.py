"""The directories of archives: where one is, what is in it, and how it is made.

    {root}/memory/MEMORY.md                      curated by the agent
    {root}/memory/EPHEMERAL.md                   the summaries of the last sessions
    {root}/memory/ARCHIVE.md                     a table of all archives
    {root}/memory/conversations/conversation-NNN.md
    {root}/memory/.recall-echo.toml              may set how many summaries EPHEMERAL.md keeps
    {root}/memory/.echod/                        receipts, and what undo needs; private

Directories are 0700 and files 0600, since conversations are more private than code. Everything that echod reads here
may have been written by another program.

The user switches archiving on for all registered projects (`sessions.enabled`) or for one (`echod init --sessions`). A
project may only opt out, or ask for a directory of its own.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from echod.errors import ConfigurationError, EchodError, os_reason
from echod.files import read_regular, write_private_durable
from echod.lazy import lazy_imports
from echod.memory.conversation.index import DEFAULT_ENTRIES, INDEX_START, MAX_ENTRIES, MIN_ENTRIES, row_numbers
from echod.memory.conversation.model import archive_name, archive_number
from echod.paths import PRIVATE_DIR_MODE, Paths, conversations_name
from echod.projects.registry import LineFile
from echod.projects.settings import ProjectSettings
from echod.settings.schema import SessionSettings

with lazy_imports(__name__):
    import tomllib

    import filelock

MEMORY_DIRECTORY = "memory"
CONVERSATIONS = "conversations"
CURATED, EPHEMERAL, INDEX = "MEMORY.md", "EPHEMERAL.md", "ARCHIVE.md"
CONFIG = ".recall-echo.toml"
PRIVATE = ".echod"
LAST_NUMBER = f"{PRIVATE}/last-number"

EXPIRY_WARNING_DAYS = 3
"""A session that is not archived is reported for so many days before its host deletes it."""

MAX_TEXT_BYTES = 10 * 1024 * 1024
"""Larger files beside the archives are not read. Archives themselves have no limit."""

CURATED_START = (
    "# Memory\n\n"
    "<!-- recall-echo: Curated memory. Distilled facts, preferences, patterns. -->\n"
    "<!-- Keep under 200 lines. Only write confirmed, stable information. -->\n"
)

_LOCK_SECONDS = 30.0
_MAX_CONFIG_BYTES = 64 * 1024


class SessionError(EchodError):
    """The archives, or a transcript, cannot be used. The text is the reason, with what to do."""


class RootBusyError(SessionError):
    """Another process has been writing archives in the same directory for too long."""


class RootConfig(NamedTuple):
    """The settings of one directory of archives. `problem` is why its file is ignored; "" if it is not."""

    entries: int = DEFAULT_ENTRIES
    problem: str = ""


class SessionRoot:
    """One directory of archives. Its paths need not exist."""

    def __init__(self, entity: Path, *, in_project: bool = False) -> None:
        """Use the directory `entity`. `in_project`: it is part of a project, whose git must not take it."""
        self.entity = entity
        self.in_project = in_project
        self.memory = entity / MEMORY_DIRECTORY
        self.conversations = self.memory / CONVERSATIONS
        self.private = self.memory / PRIVATE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SessionRoot) and self.memory == other.memory

    def __hash__(self) -> int:
        return hash(self.memory)

    @property
    def key(self) -> str:
        """The name of the directory in the database: its absolute path."""
        return str(self.memory)

    @cached_property
    def curated(self) -> Path:
        """The curated memory."""
        return self.memory / CURATED

    @property
    def exists(self) -> bool:
        """Whether the directory was made."""
        return self.memory.is_dir()

    def archive_path(self, number: int) -> Path:
        """Return the path of an archive."""
        return self.conversations / archive_name(number)

    def archives(self) -> dict[int, Path]:
        """Return the archives by number, in order. A missing directory has none.

        Raises:
            SessionError: the directory cannot be listed.
        """
        found: dict[int, Path] = {}
        try:
            with os.scandir(self.conversations) as entries:
                for entry in entries:
                    number = archive_number(entry.name)
                    if number is not None and entry.is_file(follow_symlinks=False):
                        found.setdefault(number, Path(entry.path))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SessionError(f"{self.conversations} cannot be listed: {os_reason(error)}.") from error
        return dict(sorted(found.items()))

    def read_text(self, name: str) -> str:
        """Return the text of a file in the directory; "" if it does not exist.

        Raises:
            SessionError: it cannot be read, is too large, or is not UTF-8.
        """
        return self.read_bytes(name).decode("utf-8-sig")

    def read_bytes(self, name: str) -> bytes:
        """Return the bytes of a file in the directory, which must be UTF-8; "" if it does not exist.

        Raises:
            SessionError: it cannot be read, is too large, or is not UTF-8.
        """
        path = self.memory / name
        try:
            data = read_regular(path, MAX_TEXT_BYTES, follow_symlinks=False)
            data.decode("utf-8")
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise SessionError(f"{path} cannot be read: {os_reason(error)}. Check the file.") from error
        except UnicodeDecodeError as error:
            raise SessionError(f"{path} is not UTF-8, so echod leaves it alone. Repair or move it.") from error
        return data

    def highest_number(self) -> int:
        """Return the highest number of an archive that exists or existed, or 0.

        Raises:
            SessionError: the archives or their index cannot be read.
        """
        used = self.read_text(LAST_NUMBER).strip()
        numbers = [
            int(used) if used.isdecimal() else 0,
            *self.archives(),
            *row_numbers(self.read_text(INDEX)),
            *_numbers_below(self.private / "receipts"),
        ]
        return max(number for number in numbers if number < 1 << 32)

    def keep_number(self) -> None:
        """Record the highest number, so that it is not given again after its archive is gone."""
        write_private_durable(self.memory / LAST_NUMBER, f"{self.highest_number()}\n".encode())

    def config(self) -> RootConfig:
        """Return the settings of the directory. A file that cannot be used gives the defaults and the problem."""
        if not os.path.lexists(self.memory / CONFIG):
            return RootConfig()

        try:
            data = read_regular(self.memory / CONFIG, _MAX_CONFIG_BYTES, follow_symlinks=False)
            table = tomllib.loads(data.decode("utf-8-sig")).get("ephemeral", {})
        except FileNotFoundError:
            return RootConfig()
        except OSError as error:
            return RootConfig(problem=f"{CONFIG} cannot be read: {os_reason(error)}")
        except ValueError:
            return RootConfig(problem=f"{CONFIG} is not TOML")
        value = table.get("max_entries", DEFAULT_ENTRIES) if isinstance(table, dict) else None
        if not isinstance(value, int) or isinstance(value, bool) or not MIN_ENTRIES <= value <= MAX_ENTRIES:
            allowed = f"a whole number from {MIN_ENTRIES} to {MAX_ENTRIES}"
            return RootConfig(problem=f"max_entries in {CONFIG} is not {allowed}")
        return RootConfig(value)

    def create(self) -> tuple[str, ...]:
        """Make what is missing of the directory, and return the names of it. Existing files are kept.

        Raises:
            SessionError: it cannot be made, or a part of it is a symbolic link.
        """
        made: list[str] = []
        try:
            for directory in (self.entity, self.memory, self.conversations, self.private):
                made += [f"{directory.name}/"] if self._make_directory(directory) else []
            files = {CURATED: CURATED_START, EPHEMERAL: "", INDEX: INDEX_START}
            if self.in_project:
                files[".gitignore"] = "*\n"
            for name, text in files.items():
                path = self.memory / name
                if not os.path.lexists(path):
                    write_private_durable(path, text.encode())
                    made.append(f"{MEMORY_DIRECTORY}/{name}")
        except OSError as error:
            raise SessionError(f"{self.memory} cannot be made: {os_reason(error)}. Check the path.") from error
        return tuple(made)

    def _make_directory(self, directory: Path) -> bool:
        try:
            directory.mkdir(mode=PRIVATE_DIR_MODE, parents=directory == self.entity)
        except FileExistsError:
            self._require_directory(directory)
            return False
        return True

    def _require_directory(self, directory: Path) -> None:
        mode = directory.lstat().st_mode
        if directory == self.entity and stat.S_ISLNK(mode) and not self.in_project:
            mode = directory.stat().st_mode
        if not stat.S_ISDIR(mode):
            raise SessionError(f"{directory} is not a directory of its own, so echod writes nothing there. Move it.")

    def require(self) -> None:
        """Check that the directory was made and no part of it leads elsewhere.

        Raises:
            SessionError: it was not made, or a part of it is a symbolic link.
        """
        for directory in (self.memory, self.conversations):
            try:
                self._require_directory(directory)
            except FileNotFoundError as error:
                raise SessionError(f"{directory} does not exist. Create it with: echod sessions init") from error
            except OSError as error:
                raise SessionError(f"{directory} cannot be used: {os_reason(error)}.") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory for one change. No other process numbers an archive meanwhile.

        Raises:
            RootBusyError: another process held it for too long.
            SessionError: the lock cannot be used.
        """
        try:
            self._make_directory(self.private)
            lock = filelock.FileLock(self.private / "lock", mode=0o600, timeout=_LOCK_SECONDS, preserve_lock_file=True)
            with lock:
                yield
        except filelock.Timeout as error:
            raise RootBusyError(f"Another process is writing archives in {self.memory}. Try again.") from error
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise SessionError(f"{self.memory} cannot be written: the disk is full. Free some space.") from error
            reason = os_reason(error)
            raise SessionError(f"{self.memory} cannot be written: {reason}. Check its permissions.") from error


def _numbers_below(directory: Path) -> Iterator[int]:
    try:
        names = [path.name for path in directory.iterdir()]
    except FileNotFoundError:
        return
    for name in names:
        number = archive_number(name.removesuffix(".json") + ".md")
        if number is not None:
            yield number


def project_root_for(base: Path, project: Path, *, in_project: bool) -> SessionRoot:
    """Return the directory of a project's archives: below `base`, or `.rune` in the project."""
    if in_project:
        return SessionRoot(project / ".rune", in_project=True)
    return SessionRoot(base / conversations_name(project))


class SessionChoice(NamedTuple):
    """Whether the conversations of a project are archived. `reason` is why not, as half a sentence."""

    enabled: bool
    reason: str = ""


class SessionProjects:
    """The choice of each project, and its directory of archives. Nothing is cached."""

    def __init__(
        self, paths: Paths, settings: SessionSettings, project_settings: Callable[[Path], ProjectSettings]
    ) -> None:
        self._settings = settings
        self._project_settings = project_settings
        self._file = LineFile(paths.session_projects)
        self._base = _base_directory(paths, settings)

    def choice(self, project: Path) -> SessionChoice:
        """Return whether the conversations of a project are archived."""
        if not self._settings.enabled and str(project) not in self._file.read():
            return SessionChoice(
                enabled=False,
                reason=f"it is switched off; switch it on with: echod init --sessions {project}",
            )
        if not self._project_settings(project).sessions:
            return SessionChoice(enabled=False, reason="the project's own settings contain sessions: false")
        return SessionChoice(enabled=True)

    @property
    def any_chosen(self) -> bool:
        """Whether the conversations of any project may be archived."""
        return self._settings.enabled or bool(self._file.read())

    def enabled(self, projects: Iterable[Path]) -> tuple[Path, ...]:
        """Return those of these projects whose conversations are archived."""
        chosen = set() if self._settings.enabled else set(self._file.read())
        if not self._settings.enabled and not chosen:
            return ()
        return tuple(
            project
            for project in projects
            if (self._settings.enabled or str(project) in chosen) and self._project_settings(project).sessions
        )

    def root(self, project: Path) -> SessionRoot:
        """Return the directory of a project's archives, which need not exist."""
        return project_root_for(self._base, project, in_project=self._project_settings(project).sessions_in_project)

    def roots(self, project: Path) -> tuple[SessionRoot, ...]:
        """Return every directory that a project's archives may be in."""
        return tuple(project_root_for(self._base, project, in_project=below) for below in (False, True))

    def switch_on(self, project: Path) -> bool:
        """Archive the conversations of a project from now on. Returns false if that was so already."""
        with self._file.edit() as lines:
            if str(project) in lines:
                return False
            lines.append(str(project))
            return True

    def switch_off(self, project: Path) -> bool:
        """Stop archiving the conversations of a project. Returns false if it was not switched on."""
        with self._file.edit() as lines:
            if str(project) not in lines:
                return False
            lines.remove(str(project))
            return True


def _base_directory(paths: Paths, settings: SessionSettings) -> Path:
    if not settings.root:
        return paths.sessions
    base = Path(settings.root).expanduser()
    if not base.is_absolute():
        raise ConfigurationError(f"sessions.root must be an absolute path, not {settings.root!r}; change or remove it.")
    return base

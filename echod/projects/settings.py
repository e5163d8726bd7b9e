"""Read a project's own settings, and decide which maintenance jobs it allows.

The file comes with the repository, so it is treated as hostile: it is read with limits (`echod.projects.section`), and
it may only make echod do less.

A module of its own because it needs job kinds and git's files, which readers of project settings do not load.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from echod.files import FileVersion, VersionedCache, file_version, read_regular
from echod.lazy import lazy_imports
from echod.memory.policy_model import PolicySettings
from echod.state.jobs import JobKind
from echod.store.layout import Role
from echod.workflows.markers.activity import may_track

with lazy_imports(__name__):
    from echod.projects import section as section_module

SETTINGS_FILES: Final = (
    (".rune", "talisman.yml"),
    (".claude", "talisman.yml"),
    (".claude", "rune-config.yml"),
)
MAX_SETTINGS_BYTES: Final = 256 * 1024

_REFUSALS: Final = {
    errno.ELOOP: "it is a symbolic link",
    errno.EINVAL: "it is not a plain file",
    errno.EFBIG: f"it is larger than {MAX_SETTINGS_BYTES // 1024} KiB",
}

_Versions: TypeAlias = tuple[FileVersion | int | None, ...]
_NO_FILES: Final[_Versions] = (None,) * len(SETTINGS_FILES)


class ProjectSettings(NamedTuple):
    """The settings of a project: what echod may do there. The defaults are those without a settings file.

    Attributes:
        observe: whether completed tasks become observations.
        recall: whether hooks may show entries to agents.
        maintain_tracked: whether prune and compress also run without a request where git tracks the files.
        memory_line_limit: the line limit of a memory file that the project requests; None for the user's own.
        version_controlled: whether git is to track the store; None if the project does not set it.
        staleness_days: the days after which a doc pack is stale; None for the user's own setting.
        sessions: false if conversations about the project must not be archived.
        sessions_in_project: whether their archive is to be in the project (`.rune/memory`).
    """

    consolidate: bool = True
    observe: bool = True
    prune: bool = True
    compress: bool = True
    recall: bool = True
    maintain_tracked: bool = False
    memory_line_limit: int | None = None
    version_controlled: bool | None = None
    staleness_days: int | None = None
    sessions: bool = True
    sessions_in_project: bool = False

    def effective_line_limit(self, user_limit: int) -> int:
        """Return the line limit in force: a project may raise the user's limit, never lower it."""
        return max(user_limit, self.memory_line_limit or user_limit)


class LoadedProjectSettings(NamedTuple):
    """The settings, the file that they are from (None without one), and a warning for each part that is ignored."""

    settings: ProjectSettings
    file: Path | None
    warnings: tuple[str, ...]


_NO_SETTINGS: Final = LoadedProjectSettings(ProjectSettings(), None, ())


def read_project_settings(project: Path) -> LoadedProjectSettings:
    """Read the settings of the project at `project` from the first of `SETTINGS_FILES` that exists.

    Nothing that a project may contain makes this fail. A file that cannot be used gives the defaults and a warning.
    """
    for directory, name in SETTINGS_FILES:
        file = project / directory / name
        try:
            data = _read_settings_file(project / directory, name)
        except OSError as error:
            return _not_read(file, _REFUSALS.get(error.errno or 0, str(error.strerror)))
        except _LinkedDirectoryError:
            return _not_read(file, f"{file.parent} is a symbolic link")
        if data is not None:
            return _parse_settings(data, file)
    return _NO_SETTINGS


class _LinkedDirectoryError(Exception):
    """The directory of a settings file is a symbolic link, which could lead out of the project."""


def _read_settings_file(directory: Path, name: str) -> bytes | None:
    """Return the content of a settings file without following a link below the project; None if there is no file."""
    if directory.is_symlink() and os.path.lexists(directory / name):
        raise _LinkedDirectoryError
    try:
        parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return read_regular(Path(name), MAX_SETTINGS_BYTES, follow_symlinks=False, dir_fd=parent)
    except FileNotFoundError:
        return None
    finally:
        os.close(parent)


def _parse_settings(data: bytes, file: Path) -> LoadedProjectSettings:
    try:
        section = section_module.read_section(data, file)
    except section_module.SectionError as error:
        return _not_read(file, str(error))
    settings = ProjectSettings(
        consolidate=section.boolean("consolidate") is not False,
        # Two names for one setting: that of the other switches here, and that of the tools that share this file.
        observe=section.boolean("observe") is not False and section.boolean("auto_observation") is not False,
        prune=section.boolean("prune") is not False,
        compress=section.boolean("compress") is not False,
        recall=section.boolean("recall") is not False and section.boolean("hooks.recall") is not False,
        maintain_tracked=section.boolean("maintain_tracked") is True,
        memory_line_limit=section.integer("memory_line_limit", minimum=100),
        version_controlled=section.boolean("version_controlled"),
        staleness_days=section.integer("global.staleness_days", minimum=1),
        sessions=section.boolean("sessions") is not False,
        sessions_in_project=section.boolean("sessions_in_project") is True,
    )
    return LoadedProjectSettings(settings, file, tuple(section.warnings))


def _not_read(file: Path, reason: str) -> LoadedProjectSettings:
    return LoadedProjectSettings(ProjectSettings(), file, (f"{file} is not read: {reason}. Correct or remove it.",))


class ProjectSettingsCache:
    """Reads the settings of projects repeatedly, and parses a file only when it has changed. For several threads.

    Parsing takes some 12 ms for a file of 14 kB, and comparing its version a thousandth of that. An idle service with a
    hundred projects can afford only the latter.
    """

    def __init__(self) -> None:
        self._cache: VersionedCache[LoadedProjectSettings] = VersionedCache()

    def read(self, project: Path) -> LoadedProjectSettings:
        """Return what `read_project_settings` returns."""
        # The versions are taken before the file is read, so that a change in between is noticed the next time.
        versions = tuple(_version(f"{project}/{directory}/{name}") for directory, name in SETTINGS_FILES)
        if versions == _NO_FILES:  # most projects; looking for the files again would double the price
            return _NO_SETTINGS
        return self._cache.get_or_compute(project, versions, lambda: read_project_settings(project))


def _version(file: str) -> FileVersion | int | None:
    """Return the version of a file, None if it does not exist, or the error's number if its status cannot be read."""
    try:
        return file_version(os.lstat(file))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return error.errno or 0


class MaintenancePolicy(NamedTuple):
    """The numbers and rules for prune, promote and compress in one project, which may forbid `prune` and `compress`.

    `maintain_tracked` is whether both also run without a request where git tracks the files.
    """

    policy: PolicySettings
    prune: bool
    compress: bool
    maintain_tracked: bool

    def disabled_reason(self, kind: JobKind) -> str | None:
        """Return why the project forbids such a job, even on request; None if it does not."""
        enabled = {JobKind.PRUNE: self.prune, JobKind.COMPRESS: self.compress}.get(kind, True)
        return None if enabled else f"the project's own settings contain {kind.value}: false"


def request_only_reason(kind: JobKind, role: Role, maintenance: MaintenancePolicy) -> str | None:
    """Return why such a job runs only on request; None if it may run without one.

    Changes to files that git tracks are reviewed line by line, and concern everyone who shares the repository.
    """
    if maintenance.maintain_tracked or kind not in (JobKind.PRUNE, JobKind.COMPRESS):
        return None
    file = role.memory if kind is JobKind.PRUNE else role.knowledge
    if not may_track(role.store.root):
        return None
    return (
        f"git tracks {file.name}, so this runs only on request (echod {kind.value}), "
        "or if the project's settings contain maintain_tracked: true"
    )

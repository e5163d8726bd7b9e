"""What a project's own settings file asks of echod: a few keys below `echoes` in a file that belongs to other tools.

The file comes with the repository, so it is hostile until shown otherwise: it is read with limits, nothing in it is
constructed but plain scalars, and it may only make echod do less.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from types import ModuleType

    from yaml.nodes import Node

SETTINGS_FILES: Final = (
    (".rune", "talisman.yml"),
    (".claude", "talisman.yml"),
    (".claude", "rune-config.yml"),
)
MAX_SETTINGS_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 64
MIN_LINE_LIMIT: Final = 100
_SECTION_KEY: Final = "echoes"
_MAX_SHOWN_CHARACTERS: Final = 80
_TOO_LARGE: Final = f"it is larger than {MAX_SETTINGS_BYTES // 1024} KiB"
# The words of YAML 1.1, which the tools that share this file go by.
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "yes", "on", "y"), True),
    **dict.fromkeys(("false", "no", "off", "n"), False),
}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,9}")


class ProjectSettings(NamedTuple):
    """What the project asks for; the defaults are those of a project that says nothing.

    Attributes:
        consolidate: whether findings are folded into the memory.
        observe: whether completed tasks are remembered.
        prune: whether entries may leave the memory files.
        compress: whether the knowledge file may be compressed.
        maintain_tracked: whether both may also be done unasked where git tracks the files.
        memory_line_limit: the wished length of a memory file; None: the user's own setting.
        version_controlled: whether git is to track the store; None: not said.
        staleness_days: after how many days a doc pack is stale; None: the user's own setting.
    """

    consolidate: bool = True
    observe: bool = True
    prune: bool = True
    compress: bool = True
    maintain_tracked: bool = False
    memory_line_limit: int | None = None
    version_controlled: bool | None = None
    staleness_days: int | None = None

    def effective_line_limit(self, user_limit: int) -> int:
        """The length that counts: a project may raise the user's limit, never lower it."""
        return max(user_limit, self.memory_line_limit or user_limit)


class LoadedProjectSettings(NamedTuple):
    """The settings, the file they are from (None: there is none), and a sentence for all that was not understood."""

    settings: ProjectSettings
    file: Path | None
    warnings: tuple[str, ...]


_NO_SETTINGS = LoadedProjectSettings(ProjectSettings(), None, ())

_FileVersions: TypeAlias = tuple[tuple[int, ...] | None, ...]
_NO_FILES: _FileVersions = (None,) * len(SETTINGS_FILES)


class _SettingsRejectedError(Exception):
    """Why the file as a whole is not read."""


def read_project_settings(project: Path) -> LoadedProjectSettings:
    """The settings of the project at `project`: the first of `SETTINGS_FILES` that exists, alone, decides.

    Never raises for what a project may hold: a file that cannot be used gives the defaults and a warning.
    """
    for directory, name in SETTINGS_FILES:
        file = project / directory / name
        try:
            data = _read_settings_file(project / directory, name)
        except (_SettingsRejectedError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            return LoadedProjectSettings(
                ProjectSettings(), file, (f"{file} is not read: {reason}; mend or remove it.",)
            )
        if data is not None:
            return _parse_settings(data, file)
    return _NO_SETTINGS


class ProjectSettingsCache:
    """Reads the settings of projects again and again, and parses a file only when it has changed.

    Parsing takes some 12 ms for a file of 14 kB, looking whether it changed a thousandth of that: an idle service with
    a hundred projects can afford only the latter. May be used by several threads.
    """

    def __init__(self) -> None:
        self._cache: dict[Path, tuple[_FileVersions, LoadedProjectSettings]] = {}

    def read(self, project: Path) -> LoadedProjectSettings:
        """As `read_project_settings`."""
        # Looked at before it is read: a change in between is then seen the next time.
        versions = tuple(_file_version(f"{project}/{directory}/{name}") for directory, name in SETTINGS_FILES)
        cached = self._cache.get(project)
        if cached is not None and cached[0] == versions:
            return cached[1]
        # Most projects have none, and to look a second time would be half of the price.
        loaded = _NO_SETTINGS if versions == _NO_FILES else read_project_settings(project)
        self._cache[project] = (versions, loaded)
        return loaded


def _file_version(file: str) -> tuple[int, ...] | None:
    """What tells that a file changed; None where there is none, the error's number where that cannot be told."""
    try:
        status = os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return (error.errno or 0,)
    # The change time too: no tool can set it back.
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _parse_settings(data: bytes, file: Path) -> LoadedProjectSettings:
    try:
        section = _SettingsSection(_read_section(data), file)
    except _SettingsRejectedError as error:
        return LoadedProjectSettings(ProjectSettings(), file, (f"{file} is not read: {error}; mend or remove it.",))
    settings = ProjectSettings(
        consolidate=section.boolean("consolidate") is not False,
        # Two names for one thing: that of the other switches here, and that of the tools that share this file.
        observe=section.boolean("observe") is not False and section.boolean("auto_observation") is not False,
        prune=section.boolean("prune") is not False,
        compress=section.boolean("compress") is not False,
        maintain_tracked=section.boolean("maintain_tracked") is True,
        memory_line_limit=section.integer("memory_line_limit", MIN_LINE_LIMIT),
        version_controlled=section.boolean("version_controlled"),
        staleness_days=section.integer("global.staleness_days", 1),
    )
    return LoadedProjectSettings(settings, file, tuple(section.warnings))


class _NonScalar:
    """A value that is a list or a mapping where one word is expected."""


class _SettingsSection:
    """The values below `echoes`, taken one by one; what is odd becomes a warning and counts as not said."""

    def __init__(self, values: dict[str, str | _NonScalar], file: Path) -> None:
        self.warnings: list[str] = []
        self._values = values
        self._file = file
        if "<<" in values:
            self._warn("<<", "echod does not merge; write the keys out")

    def boolean(self, key: str) -> bool | None:
        """A yes or no; None if it is not said."""
        value = self._scalar(key)
        # Quoted, it is a string to YAML, and still what the person meant.
        parsed = _BOOLEANS.get(value.lower()) if value is not None else None
        if value is not None and parsed is None:
            self._warn(key, f"{value!r} is neither true nor false")
        return parsed

    def integer(self, key: str, minimum: int) -> int | None:
        """A whole number; None if it is not said, or too low to be followed."""
        value = self._scalar(key)
        if value is None:
            return None
        if not _INTEGER.fullmatch(value):
            self._warn(key, f"{value!r} is not a whole number")
            return None
        if int(value) < minimum:
            self._warn(key, f"{value} is below {minimum}, the least a project may ask for")
            return None
        return int(value)

    def _scalar(self, key: str) -> str | None:
        value = self._values.get(key)
        if isinstance(value, _NonScalar):
            self._warn(key, "a single value is expected")
            return None
        return value

    def _warn(self, key: str, message: str) -> None:
        from echod.memory.redact import redact  # noqa: PLC0415  slow to load, and most projects say nothing odd

        message = redact(message).text
        shown = message if len(message) <= _MAX_SHOWN_CHARACTERS else f"{message[:_MAX_SHOWN_CHARACTERS]}..."
        self.warnings.append(f"{self._file}: {_SECTION_KEY}.{key} is ignored: {shown}.")


def _read_section(data: bytes) -> dict[str, str | _NonScalar]:
    """The words below `echoes`, and one level deeper (`global.staleness_days`), without those that say null.

    Raises:
        _RefusedError: it is no YAML, or something else stands where the section should.
    """
    import yaml  # noqa: PLC0415  slow to load, and most projects have no such file

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_depth(yaml, loader, data)
        # Composed, not constructed: a node tree in which an alias is the same node again. Nothing is expanded,
        # nothing is instantiated, so neither a bomb of aliases nor a tag has anything to act upon.
        root = yaml.compose(data, Loader=loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _SettingsRejectedError(f"it is not YAML ({_describe_yaml_error(error)})") from error
    section = _mapping_entries(yaml, root, "it").get(_SECTION_KEY)
    values: dict[str, str | _NonScalar] = {}
    for key, value in _mapping_entries(yaml, section, _SECTION_KEY).items():
        _add_value(yaml, values, key, value)
        if isinstance(value, yaml.MappingNode):
            for subkey, inner in _mapping_entries(yaml, value, key).items():
                _add_value(yaml, values, f"{key}.{subkey}", inner)
    return values


def _add_value(yaml: ModuleType, values: dict[str, str | _NonScalar], key: str, value: Node) -> None:
    if not isinstance(value, yaml.ScalarNode):
        values[key] = _NonScalar()
    elif not value.tag.endswith(":null"):
        values[key] = str(value.value).strip()


def _mapping_entries(yaml: ModuleType, node: Node | None, subject: str) -> dict[str, Node]:
    """The entries of a mapping that have plain keys; of two equal keys the last one counts, as everywhere in YAML."""
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise _SettingsRejectedError(f"{subject} is not a mapping")
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _check_depth(yaml: ModuleType, loader: type, data: bytes) -> None:
    # Composing recurses, in C without a limit; events do not.
    depth = 0
    for event in yaml.parse(data, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _SettingsRejectedError(f"it is nested more than {MAX_DEPTH} levels deep")


def _describe_yaml_error(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or type(error).__name__
    return f"line {mark.line + 1}: {problem}" if mark else str(problem)


def _read_settings_file(directory: Path, name: str) -> bytes | None:
    """The bytes of a plain file; None if there is none.

    Raises:
        _RefusedError: it is something else, or too large.
        OSError: it cannot be read.
    """
    if directory.is_symlink() and os.path.lexists(directory / name):
        raise _SettingsRejectedError(f"{directory} is a symbolic link")
    with contextlib.ExitStack() as stack:
        try:
            # Step by step and without following: a link could lead anywhere outside the project.
            parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            stack.callback(os.close, parent)
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            _check_regular_file(status)
            # Not blocking: should a FIFO have taken its place just now, nobody may ever write to it.
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
            stack.callback(os.close, descriptor)
        except (FileNotFoundError, NotADirectoryError):
            return None
        _check_regular_file(os.fstat(descriptor))
        with os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(MAX_SETTINGS_BYTES + 1)
    if len(data) > MAX_SETTINGS_BYTES:
        raise _SettingsRejectedError(_TOO_LARGE)
    return data


def _check_regular_file(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise _SettingsRejectedError("it is a symbolic link")
    if not stat.S_ISREG(status.st_mode):
        raise _SettingsRejectedError("it is not a plain file")
    if status.st_size > MAX_SETTINGS_BYTES:
        raise _SettingsRejectedError(_TOO_LARGE)

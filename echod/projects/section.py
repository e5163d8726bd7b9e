"""Parse the `echoes` section of a project's settings file, whose YAML is treated as hostile.

The document is composed, not constructed: the result is a tree of nodes in which an alias is the same node again.
Nothing is expanded or instantiated, so neither a bomb of aliases nor a tag has any effect. Only plain scalars are used.

A module of its own because it loads yaml, which most projects do not need.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from echod.lazy import lazy_imports, lazy_pattern

with lazy_imports(__name__):
    from echod.memory import redact

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 20_000
"""Composing takes a kilobyte for each, and a file of 256 KiB can have a hundred thousand of them."""
_SECTION_KEY: Final = "echoes"
_MAX_SHOWN_CHARACTERS: Final = 80
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER: Final = lazy_pattern(r"[+-]?[0-9]{1,9}")
# The words of YAML 1.1, which the tools that share this file use.
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "yes", "on", "y"), True),
    **dict.fromkeys(("false", "no", "off", "n"), False),
}


class SectionError(Exception):
    """The file as a whole cannot be used. The message is half a sentence."""


class _NonScalar:
    """A list or a mapping where a single value is expected."""


class Section:
    """The values below `echoes`. A value that cannot be used counts as absent and adds a warning."""

    def __init__(self, values: dict[str, str | _NonScalar], file: Path) -> None:
        self.warnings: list[str] = []
        self._values = values
        self._file = file
        if "<<" in values:
            self._warn("<<", "echod does not merge; write the keys out")

    def boolean(self, key: str) -> bool | None:
        """Return a yes or no; None if it is absent."""
        value = self._scalar(key)
        # Quoted, it is a string to YAML, and still what the author meant.
        parsed = _BOOLEANS.get(value.lower()) if value is not None else None
        if value is not None and parsed is None:
            self._warn(key, f"{value!r} is neither true nor false")
        return parsed

    def integer(self, key: str, minimum: int) -> int | None:
        """Return a whole number; None if it is absent or below `minimum`."""
        value = self._scalar(key)
        if value is None:
            return None
        if not _INTEGER.fullmatch(value):
            self._warn(key, f"{value!r} is not a whole number")
            return None
        if int(value) < minimum:
            self._warn(key, f"{value} is below {minimum}, the minimum for a project")
            return None
        return int(value)

    def _scalar(self, key: str) -> str | None:
        value = self._values.get(key)
        if isinstance(value, _NonScalar):
            self._warn(key, "a single value is expected")
            return None
        return value

    def _warn(self, key: str, message: str) -> None:
        message = redact.redact(message).text
        shown = message if len(message) <= _MAX_SHOWN_CHARACTERS else f"{message[:_MAX_SHOWN_CHARACTERS]}..."
        self.warnings.append(f"{self._file}: {_SECTION_KEY}.{key} is ignored: {shown}.")


def read_section(data: bytes, file: Path) -> Section:
    """Return the values below `echoes`, and those one level deeper (`global.staleness_days`), without nulls.

    Raises:
        SectionError: the file is not YAML, or the section is not a mapping.
    """
    try:
        _check_depth(data)
        root = yaml.compose(data, Loader=_LOADER)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SectionError(f"it is not YAML ({_describe_yaml_error(error)})") from error
    section = _mapping_entries(root, "it").get(_SECTION_KEY)
    values: dict[str, str | _NonScalar] = {}
    for key, value in _mapping_entries(section, _SECTION_KEY).items():
        _add_value(values, key, value)
        if isinstance(value, MappingNode):
            for subkey, inner in _mapping_entries(value, key).items():
                _add_value(values, f"{key}.{subkey}", inner)
    return Section(values, file)


def _check_depth(data: bytes) -> None:
    # Composing recurses, in C without a limit; events do not.
    depth = 0
    for number, event in enumerate(yaml.parse(data, Loader=_LOADER)):
        if number > MAX_VALUES:
            raise SectionError(f"it has more than {MAX_VALUES:,} values")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise SectionError(f"it is nested more than {MAX_DEPTH} levels deep")


def _mapping_entries(node: Node | None, subject: str) -> dict[str, Node]:
    """Return the entries of a mapping that have plain keys. The last of two equal keys counts, as always in YAML."""
    if node is None or (isinstance(node, ScalarNode) and node.tag.endswith(":null")):
        return {}
    if not isinstance(node, MappingNode):
        raise SectionError(f"{subject} is not a mapping")
    return {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}


def _add_value(values: dict[str, str | _NonScalar], key: str, value: Node) -> None:
    if not isinstance(value, ScalarNode):
        values[key] = _NonScalar()
    elif not value.tag.endswith(":null"):
        values[key] = str(value.value).strip()


def _describe_yaml_error(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or type(error).__name__
    return f"line {mark.line + 1}: {problem}" if mark else str(problem)

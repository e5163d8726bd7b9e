"""Evaluate the declarations of the settings, and convert settings to plain JSON values and back.

Loads neither pydantic nor a TOML parser: this is all that a process needs whose settings were checked before.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from echod.memory.policy_model import Range
from echod.paths import ENV_PREFIX, PATH_VARIABLES
from echod.settings.values import Each, Settings


class Declaration(NamedTuple):
    """One setting as it is declared. `keys` is its name, after the name of its table if it is in one.

    `type` is its type without the limits, which are `Range` and `Each` values.
    """

    keys: tuple[str, ...]
    type: Any
    default: Any
    limits: tuple[Any, ...]
    description: str

    @property
    def dotted(self) -> str:
        """The name as in messages: `gate.sessions`."""
        return ".".join(self.keys)

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return ENV_PREFIX + "__".join(self.keys).upper()


@functools.cache
def declarations() -> tuple[Declaration, ...]:
    """Return every setting in the order of the declarations: those of no table first, then table by table."""
    found: list[Declaration] = []
    hints = get_type_hints(Settings, include_extras=True)
    shared = {name for name, hint in hints.items() if not is_table(hint)}
    for name, hint in hints.items():
        default = Settings._field_defaults[name]
        if not is_table(hint):
            found.append(_declaration((name,), hint, default))
            continue
        for inner, inner_hint in get_type_hints(hint, include_extras=True).items():
            # A line limit is a number of the policies too, and declared as a setting beside them.
            if inner not in shared:
                found.append(_declaration((name, inner), inner_hint, getattr(default, inner)))
    return tuple(found)


def is_table(hint: Any) -> bool:
    """Return whether a field of `Settings` has this type because it is a table of settings."""
    return isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields"))


def _declaration(keys: tuple[str, ...], hint: Any, default: Any) -> Declaration:
    assert get_origin(hint) is Annotated, f"{keys} has no description"  # noqa: S101  a mistake in `values`
    plain_type, *limits, description = get_args(hint)
    return Declaration(keys, plain_type, default, tuple(limits), description)


def tables() -> tuple[str, ...]:
    """Return the names of the tables."""
    return tuple(dict.fromkeys(declared.keys[0] for declared in declarations() if len(declared.keys) > 1))


@functools.cache
def known_variables() -> frozenset[str]:
    """Return the variables that set something: one for each setting, and one for each table as JSON."""
    of_tables = {ENV_PREFIX + table.upper() for table in tables()}
    return frozenset({declared.variable for declared in declarations()} | of_tables)


def set_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the environment that set something."""
    names = {name for name in environ if name.startswith(ENV_PREFIX)} - PATH_VARIABLES
    return {name: environ[name] for name in sorted(names & known_variables())} if names else {}


def to_plain(settings: Settings) -> dict[str, Any]:
    """Return the settings as JSON has them, with the keys and tables of the settings file."""
    plain: dict[str, Any] = {}
    for declared in declarations():
        *table, name = declared.keys
        target = plain.setdefault(table[0], {}) if table else plain
        target[name] = plain_value(settings, declared)
    return plain


def plain_value(settings: Settings, declared: Declaration) -> Any:
    """Return the value of one setting as JSON has it."""
    value = functools.reduce(getattr, declared.keys, settings)
    return list(value) if isinstance(value, tuple) else value


def from_plain(plain: Mapping[str, Any]) -> Settings:
    """Return the settings that `to_plain` made this of.

    Raises:
        ValueError: a value is missing, has another type, or is outside of its range.
    """
    values: dict[str, Any] = {}
    table_values: dict[str, dict[str, Any]] = {}
    for declared in declarations():
        try:
            value = functools.reduce(lambda mapping, key: mapping[key], declared.keys, plain)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{declared.dotted} is missing") from error
        *table, name = declared.keys
        target = table_values.setdefault(table[0], {}) if table else values
        target[name] = _checked(declared, value)
    return build_settings(values, table_values)


def build_settings(values: Mapping[str, Any], table_values: Mapping[str, Mapping[str, Any]]) -> Settings:
    """Build the settings from the values of no table and those of each table."""
    built = {}
    for name, inner in table_values.items():
        kind = type(Settings._field_defaults[name])
        shared = {key: values[key] for key in kind.__match_args__ if key in values}
        built[name] = kind(**shared, **inner)
    return Settings(**values, **built)


def _checked(declared: Declaration, value: Any) -> Any:
    if not _has_type(declared.type, value):
        raise ValueError(f"{declared.dotted} has another type")
    for limit in declared.limits:
        if isinstance(limit, Range) and not limit.contains(value):
            raise ValueError(f"{declared.dotted} is out of range")
        if isinstance(limit, Each) and any(limit.error(item) for item in value):
            raise ValueError(f"{declared.dotted} has an unusable item")
    return tuple(value) if isinstance(value, list) else value


def _has_type(kind: Any, value: Any) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) is tuple:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return type(value) is kind

"""Convert the values of the contract to JSON, and a status back. The only encoder of everything `--json` prints."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from enum import StrEnum
from typing import Any, TypeVar

SCHEMA = 1

Report = TypeVar("Report")


def to_json(report: Any) -> str:
    """Return one JSON object with `schema` first, indented, because users read it too."""
    values = _plain(report)
    ordered = {"schema": values.pop("schema"), **values} if "schema" in values else values
    return json.dumps(ordered, ensure_ascii=False, indent=2)


def _plain(value: Any) -> Any:
    """Return a value as `json.dumps` takes it. Named tuples and dataclasses become objects."""
    if isinstance(value, tuple):
        names: tuple[str, ...] | None = getattr(value, "_fields", None)
        if names is None:
            return [_plain(item) for item in value]
        return {name: _plain(item) for name, item in zip(names, value, strict=True)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def from_json(kind: type[Report], text: str) -> Report:
    """Return the report of this type that `to_json` made this text of. Unknown fields are newer and ignored.

    Raises:
        ValueError: it is not such a report of this schema (another version wrote it, or it is damaged).
    """
    try:
        values = json.loads(text)
        if values["schema"] != SCHEMA:
            raise ValueError(f"schema {values['schema']} is not {SCHEMA}")
        report = _decode(kind, values)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is not a {kind.__name__}") from error
    assert isinstance(report, kind)  # noqa: S101  for the type checker
    return report


def _decode(hint: Any, value: Any) -> Any:
    """Build a value of the contract of what `json.loads` returns for it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if value is None:
        return None
    if origin is types.UnionType:
        return _decode(next(kind for kind in arguments if kind is not types.NoneType), value)
    if origin is tuple:
        return tuple(_decode(arguments[0], item) for item in value)
    if origin is dict:
        return {key: _decode(arguments[1], item) for key, item in value.items()}
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")):
        return hint(**{name: _decode(kind, value[name]) for name, kind in _field_types(hint).items() if name in value})
    return hint(value) if isinstance(hint, type) and issubclass(hint, StrEnum) else value


@functools.cache
def _field_types(kind: type) -> dict[str, Any]:
    """Return the types of the fields, evaluated once, since a status has a thousand values."""
    return typing.get_type_hints(kind)

"""The only encoder of everything that `--json` prints, and the decoder of what the daemon keeps ready.

Apart from `status`, because `echod search` must answer before the values of the status are imported.
"""

from __future__ import annotations

import functools
import math
import types
import typing
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from types import ModuleType
from typing import Annotated, Any, TypeAlias, TypeVar

from echod.lazy import lazy_imports

with lazy_imports(__name__):
    import json

SCHEMA = 1

Timestamp = Annotated[float, "time"]
"""A moment: Unix seconds in Python, ISO 8601 in JSON. Only a field of this type is printed as a time."""

Report = TypeVar("Report")

_DATACLASS = "__dataclass_fields__"  # importing dataclasses takes as long as a search


def to_json(report: Any) -> str:
    """Return one JSON object with `schema` first, indented, because users read it too.

    A `Timestamp` is printed as ISO 8601 in UTC with milliseconds: `2026-11-28T09:30:00.000Z`.
    """
    values = _plain(report)
    ordered = {"schema": values.pop("schema"), **values} if "schema" in values else values
    text: str = _json().dumps(ordered, ensure_ascii=False, indent=2)
    return text


def _json() -> ModuleType:
    return json


def _plain(value: Any) -> Any:
    """Return a value as `json.dumps` takes it. Named tuples and dataclasses become objects."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return [_plain(item) for item in value]
    if isinstance(value, tuple) or hasattr(value, _DATACLASS):
        kind: Any = type(value)
        times = _time_fields(kind)
        fields = ((name, getattr(value, name)) for name in _field_types(kind))
        return {name: _iso_time(field) if name in times else _plain(field) for name, field in fields}
    return value


def _iso_time(moment: float | None) -> str | None:
    """Return a moment as ISO 8601 in UTC. A moment beyond the calendar becomes its first or last one."""
    if moment is None:
        return None
    bounded = min(max(moment, _FIRST_MOMENT), _LAST_MOMENT)
    return datetime.fromtimestamp(bounded, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_FIRST_MOMENT = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def from_json(kind: type[Report], text: str) -> Report:
    """Return the report of this type that `to_json` made this text of. Unknown fields are newer and ignored.

    Raises:
        ValueError: it is not such a report of this schema (another version wrote it, or it is damaged).
    """
    try:
        values = _json().loads(text)
        if values["schema"] != SCHEMA:
            raise ValueError(f"schema {values['schema']} is not {SCHEMA}")
        report = _record_decoder(kind)(values)
    except (KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise ValueError(f"this is not a {kind.__name__}") from error
    assert isinstance(report, kind)  # noqa: S101  for the type checker
    return report


Decoder: TypeAlias = Callable[[Any], Any]
"""A function that builds a value of the contract of what `json.loads` returns for it. None stays None."""


@functools.cache
def _decoder(hint: Any) -> Decoder:
    """Return the decoder of a type, found once, since a status has thousands of values."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint == Timestamp:
        return lambda value: None if value is None else datetime.fromisoformat(value).timestamp()
    if origin in _UNIONS:
        return _decoder(next(kind for kind in arguments if kind is not types.NoneType))
    if origin is tuple:
        item = _decoder(arguments[0])
        return lambda value: None if value is None else tuple([item(each) for each in value])
    if origin is dict:
        item = _decoder(arguments[1])
        return lambda value: None if value is None else {key: item(each) for key, each in value.items()}
    if isinstance(hint, type) and (hasattr(hint, _DATACLASS) or hasattr(hint, "_fields")):
        return _record_decoder(hint)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return lambda value: None if value is None else hint(value)
    return functools.partial(_checked_scalar, hint) if hint in _SCALARS else lambda value: value


def _record_decoder(kind: Callable[..., Any]) -> Decoder:
    """Return the decoder of a named tuple or dataclass."""
    fields = [(name, _decoder(hint)) for name, hint in _field_types(kind).items()]

    def decode(value: Any) -> Any:
        if value is None:
            return None
        return kind(**{name: decoder(value[name]) for name, decoder in fields if name in value})

    return decode


def _checked_scalar(hint: type, value: Any) -> Any:
    is_number = hint is float and (type(value) is int or (type(value) is float and math.isfinite(value)))
    if value is None or is_number or (hint is not float and type(value) is hint):
        return value
    raise ValueError(f"{value!r:.40} is not of the type {hint.__name__}")


_SCALARS = (str, int, float, bool)
_UNIONS = (types.UnionType, typing.Union)


@functools.cache
def _field_types(kind: Any) -> dict[str, Any]:
    """Return the types of the fields, evaluated once, since a status has a thousand values."""
    return typing.get_type_hints(kind, include_extras=True)


@functools.cache
def _time_fields(kind: type) -> frozenset[str]:
    """Return the names of the fields that are a `Timestamp`, or None."""
    types_of_fields = _field_types(kind).items()
    return frozenset(name for name, hint in types_of_fields if Timestamp in (hint, *typing.get_args(hint)))

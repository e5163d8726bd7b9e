"""The values of `echod status --json`, and the only encoder of everything that `--json` prints.

The daemon keeps a status ready in a file, which is decoded here. Apart from `commands`, because `echod status` must
answer before the values of all other commands are imported.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, TypeVar

SCHEMA = 1

Timestamp = Annotated[float, "time"]
"""A moment: Unix seconds in Python, ISO 8601 in JSON. Only a field of this type is printed as a time."""

Report = TypeVar("Report")


def to_json(report: Any) -> str:
    """Return one JSON object with `schema` first, indented, because users read it too.

    A `Timestamp` is printed as ISO 8601 in UTC with milliseconds: `2026-11-28T09:30:00.000Z`.
    """
    values = _plain(report)
    ordered = {"schema": values.pop("schema"), **values} if "schema" in values else values
    return json.dumps(ordered, ensure_ascii=False, indent=2)


def _plain(value: Any) -> Any:
    """Return a value as `json.dumps` takes it. Named tuples and dataclasses become objects."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return [_plain(item) for item in value]
    if isinstance(value, tuple) or dataclasses.is_dataclass(value):
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
        values = json.loads(text)
        if values["schema"] != SCHEMA:
            raise ValueError(f"schema {values['schema']} is not {SCHEMA}")
        report = _decode(kind, values)
    except (KeyError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise ValueError(f"this is not a {kind.__name__}") from error
    assert isinstance(report, kind)  # noqa: S101  for the type checker
    return report


def _decode(hint: Any, value: Any) -> Any:
    """Build a value of the contract of what `json.loads` returns for it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if value is None:
        return None
    if hint == Timestamp:
        return datetime.fromisoformat(value).timestamp()
    if origin in _UNIONS:
        return _decode(next(kind for kind in arguments if kind is not types.NoneType), value)
    if origin is tuple:
        return tuple(_decode(arguments[0], item) for item in value)
    if origin is dict:
        return {key: _decode(arguments[1], item) for key, item in value.items()}
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")):
        return hint(**{name: _decode(kind, value[name]) for name, kind in _field_types(hint).items() if name in value})
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    if hint in _SCALARS and not _is_scalar(hint, value):
        raise ValueError(f"{value!r:.40} is not of the type {hint.__name__}")
    return value


_SCALARS = (str, int, float, bool)


def _is_scalar(hint: type, value: Any) -> bool:
    if hint is float:
        return type(value) is int or (type(value) is float and math.isfinite(value))
    return type(value) is hint


_UNIONS = (types.UnionType, typing.Union)


@functools.cache
def _field_types(kind: type) -> dict[str, Any]:
    """Return the types of the fields, evaluated once, since a status has a thousand values."""
    return typing.get_type_hints(kind, include_extras=True)


@functools.cache
def _time_fields(kind: type) -> frozenset[str]:
    """Return the names of the fields that are a `Timestamp`, or None."""
    types_of_fields = _field_types(kind).items()
    return frozenset(name for name, hint in types_of_fields if Timestamp in (hint, *typing.get_args(hint)))


MAX_COUNTED_FINDINGS = 10_000
"""Findings files of a role are counted up to here. A larger number helps no user, and counting takes time."""


class Health(StrEnum):
    """`healthy`: work is done. `degraded`: something needs attention. `down`: no daemon runs, or it does not answer."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"


class Severity(StrEnum):
    """`notice` only informs, `warning` makes the health degraded, `error` means that work is not done."""

    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class StatusWarning:
    """A warning: a stable code, the time of its beginning, a description, and what to do about it."""

    code: str
    severity: Severity
    since: Timestamp
    text: str
    fix: str


class DaemonInfo(NamedTuple):
    """The running daemon."""

    pid: int
    version: str
    uptime_seconds: float


class QueueInfo(NamedTuple):
    """The number of jobs in each state. `oldest_due_seconds` is the time that the oldest due job has been waiting."""

    queued: int = 0
    deferred: int = 0
    running: int = 0
    dead: int = 0
    oldest_due_seconds: float | None = None


class JobKindInfo(NamedTuple):
    """The times of the last success and failure of a kind of job."""

    last_success: Timestamp | None = None
    last_failure: Timestamp | None = None


class GateReason(NamedTuple):
    """A marker that was found, and what follows from it. `holds` is true if it keeps jobs from writing."""

    marker: str
    text: str
    holds: bool = True
    since: Timestamp | None = None
    until: Timestamp | None = None
    pid: int | None = None


class GateReport(NamedTuple):
    """`echod gate PATH`: whether a job may write the project's memory now; if not, why and until when."""

    state: str
    reasons: tuple[GateReason, ...] = ()
    until: Timestamp | None = None
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class RoleInfo:
    """A role's memory file and its limit. `lines` is None if the file is unreadable; `problem` contains the reason."""

    name: str
    lines: int | None
    limit: int
    entries: dict[str, int] = field(default_factory=dict)
    findings: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """A store. `paused` is true if the user holds its jobs, and None if the list of pauses cannot be read."""

    path: str
    roles: tuple[RoleInfo, ...] = ()
    gate: GateReport | None = None
    quarantined: int = 0
    review: int = 0
    problem: str | None = None
    paused: bool | None = False


class WaitingJob(NamedTuple):
    """A job that is not done. `reason` describes what it waits for."""

    job: int
    kind: str
    store: str
    role: str
    state: str
    reason: str
    due: Timestamp


@dataclass(frozen=True, slots=True)
class HookEventCount:
    """The number of events reported by agents' hooks with one outcome; `last` is None if unknown."""

    event: str
    outcome: str
    count: int
    last: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class RecallInfo:
    """How often hooks showed entries to agents: offers, different entries, and sessions. `last` is None without any."""

    offers: int = 0
    entries: int = 0
    sessions: int = 0
    last: Timestamp | None = None


class PackInfo(NamedTuple):
    """A doc pack, installed or only in a registry. Unknown values are None.

    `version` is the installed one, else that of the registry, which `available` always contains. `offer` describes what
    the registries have for an installed pack: `version` (a newer one), `text` (another text of the same version),
    `nothing`, `older`, `absent` or `unknown`. Ages are whole days.
    """

    name: str
    title: str
    version: str
    installed: bool
    stale: bool | None
    edited: bool | None
    available: str | None
    offer: str | None
    registry: str | None
    domains: tuple[str, ...] = ()
    installed_at: str | None = None
    last_updated: str | None = None
    installed_days: int | None = None
    updated_days: int | None = None
    problem: str | None = None


class SessionsInfo(NamedTuple):
    """The conversations of a project, if they are archived.

    `waiting` sessions have something that is not archived yet; `expiring` of them are within three days of the deletion
    by the host, which keeps transcripts for `host_days` days. `pressure` is `none`, `notice`, `warning` or `full`.
    """

    project: str
    root: str
    archives: int
    waiting: int
    expiring: int
    host_days: int
    memory_percent: int
    pressure: str


@dataclass(frozen=True, slots=True)
class StatusReport:
    """`echod status`: everything that the screen shows, and more."""

    health: Health
    warnings: tuple[StatusWarning, ...] = ()
    daemon: DaemonInfo | None = None
    queue: QueueInfo = field(default_factory=QueueInfo)
    jobs: dict[str, JobKindInfo] = field(default_factory=dict)
    waiting: tuple[WaitingJob, ...] = ()
    stores: tuple[StoreInfo, ...] = ()
    hooks: tuple[HookEventCount, ...] = ()
    packs: tuple[PackInfo, ...] = ()
    sessions: tuple[SessionsInfo, ...] = ()
    evidence: dict[str, int] = field(default_factory=dict)
    recall: RecallInfo = field(default_factory=RecallInfo)
    schema: int = SCHEMA


def status_from_json(text: str) -> StatusReport:
    """Return the status that the daemon wrote as JSON; see `from_json`."""
    return from_json(StatusReport, text)

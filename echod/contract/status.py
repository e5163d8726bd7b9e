"""What `echod status --json` prints, and how it is read again from what the daemon left.

A module of its own beside `echod.contract`, which has all the others: `echod status` must answer before they would be
imported. The rules are the same.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

SCHEMA = 1


class Health(StrEnum):
    """`healthy`: work flows. `degraded`: something needs a look. `down`: no daemon runs or it does not answer."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"


class Severity(StrEnum):
    """`notice` informs, `warning` makes the health degraded, `error` means that work is not done."""

    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class StatusWarning:
    """Something a person should know: a stable code, since when (Unix seconds), what it is, what to do about it."""

    code: str
    severity: Severity
    since: float
    text: str
    fix: str


class DaemonInfo(NamedTuple):
    """The daemon that runs."""

    pid: int
    version: str
    uptime_seconds: float


class QueueInfo(NamedTuple):
    """How many jobs are in each state; `oldest_due_seconds` is how long the oldest due job has been waiting."""

    queued: int = 0
    deferred: int = 0
    running: int = 0
    dead: int = 0
    oldest_due_seconds: float | None = None


class JobKindInfo(NamedTuple):
    """When a kind of job last ended well and badly (Unix seconds)."""

    last_success: float | None = None
    last_failure: float | None = None


class GateReason(NamedTuple):
    """A marker that was looked at and what it says."""

    marker: str
    text: str
    holds: bool = True
    since: float | None = None
    until: float | None = None
    pid: int | None = None


class GateReport(NamedTuple):
    """`echod gate PATH`: may a job write this project's memory now, and if not, why and until when."""

    state: str
    reasons: tuple[GateReason, ...] = ()
    until: float | None = None
    schema: int = SCHEMA


MAX_COUNTED_FINDINGS = 10_000
"""A role's findings files are counted up to here; nobody needs the number of more, and counting takes time."""


@dataclass(frozen=True, slots=True)
class RoleInfo:
    """A role's memory file against its limit; `lines` is None where the file is unreadable, `problem` says why."""

    name: str
    lines: int | None
    limit: int
    entries: dict[str, int] = field(default_factory=dict)
    findings: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """One echoes directory; `paused` if a person holds its jobs, None where that cannot be read."""

    path: str
    roles: tuple[RoleInfo, ...] = ()
    gate: GateReport | None = None
    quarantined: int = 0
    review: int = 0
    problem: str | None = None
    paused: bool | None = False


class WaitingJob(NamedTuple):
    """A job that is not done: what it waits for, in words."""

    job: int
    kind: str
    store: str
    role: str
    state: str
    reason: str
    due: float


@dataclass(frozen=True, slots=True)
class HookEventCount:
    """How often an event that an agent's hook reported had this outcome; `last` (Unix seconds) where that is known."""

    event: str
    outcome: str
    count: int
    last: float | None = None


class PackInfo(NamedTuple):
    """A doc pack: installed, or only in a registry; unknown values are None.

    `version` is the installed one, else the registry's, which `available` has in any case. `offer` says what the
    registries have for an installed pack: `version` (a newer one), `text` (another text of the same version),
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


@dataclass(frozen=True, slots=True)
class StatusReport:
    """`echod status`: one screen, or this."""

    health: Health
    warnings: tuple[StatusWarning, ...] = ()
    daemon: DaemonInfo | None = None
    queue: QueueInfo = field(default_factory=QueueInfo)
    jobs: dict[str, JobKindInfo] = field(default_factory=dict)
    waiting: tuple[WaitingJob, ...] = ()
    stores: tuple[StoreInfo, ...] = ()
    hooks: tuple[HookEventCount, ...] = ()
    packs: tuple[PackInfo, ...] = ()
    schema: int = SCHEMA


def to_json(report: Any) -> str:
    """One JSON object, `schema` first, for machines and people alike."""
    values = _plain(report)
    ordered = {"schema": values.pop("schema"), **values} if "schema" in values else values
    return json.dumps(ordered, ensure_ascii=False, indent=2)


def _plain(value: Any) -> Any:
    """A value of the contract as `json.dumps` takes it: named tuples and dataclasses become objects."""
    if isinstance(value, tuple):
        named: tuple[str, ...] | None = getattr(value, "_fields", None)
        if named is None:
            return [_plain(item) for item in value]
        return {name: _plain(item) for name, item in zip(named, value, strict=True)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def status_from_json(text: str) -> StatusReport:
    """The status that the daemon left as JSON.

    Raises:
        ValueError: it is not a status of this schema (another version wrote it, or it is damaged).
    """
    try:
        values = json.loads(text)
        if values["schema"] != SCHEMA:
            raise ValueError(f"schema {values['schema']} is not {SCHEMA}")
        decoded = _decode(StatusReport, values)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("this is not a status") from error
    assert isinstance(decoded, StatusReport)  # noqa: S101 - what the type of the call already says
    return decoded


def _decode(type_hint: Any, value: Any) -> Any:
    """Build a dataclass of this module from what `json.loads` gives for it; unknown fields are newer and ignored."""
    origin, arguments = typing.get_origin(type_hint), typing.get_args(type_hint)
    if value is None:
        return None
    if origin is types.UnionType:
        return _decode(next(a for a in arguments if a is not types.NoneType), value)
    if origin is tuple:
        return tuple(_decode(arguments[0], item) for item in value)
    if origin is dict:
        return {key: _decode(arguments[1], item) for key, item in value.items()}
    if isinstance(type_hint, type) and (dataclasses.is_dataclass(type_hint) or hasattr(type_hint, "_fields")):
        return type_hint(
            **{name: _decode(hint, value[name]) for name, hint in _field_types(type_hint).items() if name in value}
        )
    return type_hint(value) if isinstance(type_hint, type) and issubclass(type_hint, StrEnum) else value


@functools.cache
def _field_types(kind: type) -> dict[str, Any]:
    """The types of a dataclass' fields; evaluated once, since a status holds a thousand values."""
    return typing.get_type_hints(kind)

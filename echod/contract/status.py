"""The values of `echod status --json`.

The daemon keeps a status ready in a file. Apart from `commands`, because `echod status` must answer before the values
of all other commands are imported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from echod.contract.codec import SCHEMA, Timestamp, from_json

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


class StatusWarning(NamedTuple):
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


class StoreInfo(NamedTuple):
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


class RecallInfo(NamedTuple):
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

"""What `echod show` prints as JSON.

What `echod audit` prints as JSON.

What `echod config show` prints as JSON.

What `echod consolidate --dry-run` prints as JSON.

What `echod doctor` prints as JSON.

What `echod explain` prints as JSON.

What `echod jobs` prints as JSON.

What `echod log` prints as JSON.

What `echod packs list` and `echod packs status` prints as JSON.

What `echod prune --dry-run` and `echod compress --dry-run` prints as JSON.

What `echod projects` prints as JSON.

What `echod review` prints as JSON.

What `echod scrub` prints as JSON.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from echod.contract.status import SCHEMA, PackInfo


class AuditedPack(NamedTuple):
    """An installed doc pack: how many entries it has, and how many of them it did not bring."""

    name: str
    version: str | None
    installed_at: str | None
    domains: tuple[str, ...]
    entries: int
    added: int


class AuditedEntry(NamedTuple):
    """An entry of the global memory and where it comes from; `project` is None where its source does not say."""

    id: str
    title: str
    domain: str
    project: str | None
    role: str | None
    date: str | None
    source: str | None
    file: str


class AuditReport(NamedTuple):
    """`echod audit`: where everything in the global memory comes from; `unknown` are entries that do not say it."""

    packs: tuple[AuditedPack, ...] = ()
    elevated: tuple[AuditedEntry, ...] = ()
    unknown: tuple[AuditedEntry, ...] = ()
    problems: tuple[str, ...] = ()
    schema: int = SCHEMA


class SettingInfo(NamedTuple):
    """A setting in force; `source` is `default`, `file` or `variable`, `location` the line or variable that says it."""

    key: str
    value: Any
    default: Any
    source: str
    location: str | None


class ConfigReport(NamedTuple):
    """`echod config show`: every setting, and where echod's own files are; `file` need not exist."""

    file: str
    state_directory: str
    runtime_directory: str
    settings: tuple[SettingInfo, ...] = ()
    schema: int = SCHEMA


class PlannedFinding(NamedTuple):
    """What would become of a finding, or of an entry because of one.

    `action` is `add`, `duplicate` (the entry `id` says it already), `supersede` (the entry `id` goes to the archive)
    or `review` (a person decides; `note` says what).
    """

    action: str
    id: str
    title: str
    store: str
    role: str
    note: str | None = None


class PlannedFindingsFile(NamedTuple):
    """What would become of a findings file: `consume`, `quarantine`, or `wait` (it is being written).

    `skip`: nothing becomes of any of the role. `note` says why.
    """

    action: str
    name: str
    store: str
    role: str
    note: str | None = None


class ConsolidationReport(NamedTuple):
    """`echod consolidate --dry-run`."""

    findings: tuple[PlannedFinding, ...] = ()
    files: tuple[PlannedFindingsFile, ...] = ()
    schema: int = SCHEMA


class CheckResult(StrEnum):
    """`ok`: as it should be. `note`: worth knowing. `problem`: something does not work or is not as safe here."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


class Check(NamedTuple):
    """One thing that `echod doctor` looked at: a stable code, how it is, what to do, and the path it is about."""

    code: str
    result: CheckResult
    text: str
    fix: str
    path: str | None = None


class DoctorReport(NamedTuple):
    """`echod doctor`; `healthy` if no check found a problem."""

    healthy: bool
    checks: tuple[Check, ...] = ()
    schema: int = SCHEMA


class ScoreTermsInfo(NamedTuple):
    """What a score is made of, each 0..1."""

    importance: float
    relevance: float
    recency: float


class RuleInfo(NamedTuple):
    """A rule as it concerns an entry. `applies_on` (a date) is null for rules of pressure, which have a `rank`."""

    name: str
    applies: bool
    applies_on: str | None
    rank: int | None
    of: int | None
    text: str


class ExplainReport(NamedTuple):
    """`echod explain ENTRY`; `pinned` is the last day of the pin, dates are local."""

    id: str
    title: str
    layer: str | None
    protected: bool
    pinned: str | None
    score: float | None
    terms: ScoreTermsInfo | None
    action: str
    verified: str
    idle_days: int
    references: int
    store: str
    role: str
    rules: tuple[RuleInfo, ...] = ()
    schema: int = SCHEMA


class JobInfo(NamedTuple):
    """A row of `echod jobs`."""

    job: int
    kind: str
    store: str
    role: str
    state: str
    attempts: int
    reason: str
    result: str
    due: float
    queued_at: float
    started_at: float | None
    finished_at: float | None


class JobsReport(NamedTuple):
    """`echod jobs`."""

    jobs: tuple[JobInfo, ...] = ()
    schema: int = SCHEMA


class LoggedJob(NamedTuple):
    """A row of `echod log`: what one job changed. `job` is None for what was put right without one."""

    job: int | None
    kind: str
    store: str
    role: str
    at: float
    summary: str
    undone_by: int | None


class LogReport(NamedTuple):
    """`echod log`."""

    jobs: tuple[LoggedJob, ...] = ()
    schema: int = SCHEMA


class PacksReport(NamedTuple):
    """`echod packs list` and `echod packs status`; `problems` are sentences about registries and manifests."""

    packs: tuple[PackInfo, ...] = ()
    problems: tuple[str, ...] = ()
    schema: int = SCHEMA


class PlannedEntry(NamedTuple):
    """What prune or compress would do with an entry; `rule` is None where it stays, `score` where none is asked for."""

    id: str
    title: str
    layer: str | None
    score: float | None
    rule: str | None
    action: str
    store: str
    role: str


class PlannedFile(NamedTuple):
    """What would become of a file: its lines now and then, its limit; `note` says why it stays too long, or is left."""

    store: str
    role: str
    lines_before: int
    lines_after: int
    limit: int
    note: str | None = None


class PlanReport(NamedTuple):
    """`echod prune --dry-run` and `echod compress --dry-run`."""

    entries: tuple[PlannedEntry, ...] = ()
    files: tuple[PlannedFile, ...] = ()
    schema: int = SCHEMA


class ProjectInfo(NamedTuple):
    """A row of `echod projects`; not `registered` means that a glob in the settings matches it."""

    path: str
    registered: bool
    missing: bool
    paused: bool


class ProjectsReport(NamedTuple):
    """`echod projects`."""

    projects: tuple[ProjectInfo, ...] = ()
    schema: int = SCHEMA


class ReviewItem(NamedTuple):
    """A row of `echod review`: what it is, the headings it is about, and what each answer to it would change."""

    id: str
    store: str
    role: str
    kind: str
    at: float
    text: str
    titles: tuple[str, ...]
    accept: str
    reject: str


class ReviewReport(NamedTuple):
    """`echod review`."""

    items: tuple[ReviewItem, ...] = ()
    schema: int = SCHEMA


class SecretPositionInfo(NamedTuple):
    """Where a secret stands in a file, and of which kind it is; `confirm`: its entry is etched or a note."""

    line: int
    kind: str
    entry: str | None
    confirm: bool


class ScrubFile(NamedTuple):
    """A file with secrets as it was found, or one that could not be looked at (`problem`)."""

    path: str
    tracked: bool
    secrets: tuple[SecretPositionInfo, ...] = ()
    problem: str | None = None


class ScrubReport(NamedTuple):
    """`echod scrub`: what was found, how many places were cleared, and how many are left."""

    project: str
    files: tuple[ScrubFile, ...] = ()
    stripped: int = 0
    remaining: int = 0
    schema: int = SCHEMA


class ShownEntry(NamedTuple):
    """An entry of a memory file. `layer` is null if it is unknown, dates are local, `confidence` is 0..1 or null."""

    id: str
    role: str
    layer: str | None
    title: str
    date: str | None
    confidence: float | None
    verified: str | None
    lines: int
    form: str
    store: str


class ShownRole(NamedTuple):
    """A role at a glance. `lines` is null if its memory file cannot be read; `problem` says why.

    The global memory is the role "". It and the doc packs have no `limit`.
    """

    store: str
    name: str
    lines: int | None
    limit: int | None
    entries: int
    layers: dict[str, int]
    oldest: str | None
    newest: str | None
    findings: int
    archived: int
    problem: str | None = None


class ArchivedText(NamedTuple):
    """A text in an archive. `job` put it there by `rule`; `redacted`: secrets were taken out before."""

    file: str
    date: str
    rule: str
    job: int | None
    redacted: bool
    text: str


class EntryJobInfo(NamedTuple):
    """A job that wrote an entry: it `added`, `changed` or `removed` it. `job` is null for what needed none."""

    job: int | None
    kind: str
    at: float
    action: str


class EntryHistory(NamedTuple):
    """What is known of one entry. `text` is null if it stands in no memory file; `pinned` is the last day of a pin."""

    id: str
    store: str
    role: str
    text: str | None
    first_seen: str | None
    references: int
    last_reference: str | None
    pinned: str | None
    jobs: tuple[EntryJobInfo, ...]
    archived: tuple[ArchivedText, ...]


class ShowReport(NamedTuple):
    """`echod show`; `entry` is null unless one was asked for."""

    entries: tuple[ShownEntry, ...] = ()
    roles: tuple[ShownRole, ...] = ()
    entry: EntryHistory | None = None
    schema: int = SCHEMA

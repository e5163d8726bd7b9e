"""The values that each command except `echod status` prints as JSON, grouped by command."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from echod.contract.codec import SCHEMA, Timestamp
from echod.contract.entries import ChangedEvidence, EvidenceInfo
from echod.contract.status import PackInfo


class AuditedPack(NamedTuple):
    """An installed doc pack: the number of its entries, and of those that were added to it after the installation."""

    name: str
    version: str | None
    installed_at: str | None
    domains: tuple[str, ...]
    entries: int
    added: int


class AuditedEntry(NamedTuple):
    """An entry of the global store and its source. `project` is None if the source does not contain it."""

    id: str
    title: str
    domain: str
    project: str | None
    role: str | None
    date: str | None
    source: str | None
    file: str


class AuditReport(NamedTuple):
    """`echod audit`: the sources of everything in the global store. `unknown` entries have no known source."""

    packs: tuple[AuditedPack, ...] = ()
    elevated: tuple[AuditedEntry, ...] = ()
    unknown: tuple[AuditedEntry, ...] = ()
    problems: tuple[str, ...] = ()
    schema: int = SCHEMA


class SettingInfo(NamedTuple):
    """A setting in force. `source` is `default`, `file` or `variable`; `location` is the line or variable."""

    key: str
    value: Any
    default: Any
    source: str
    location: str | None


class ConfigReport(NamedTuple):
    """`echod config show`: every setting, and the directories of echod's own files. `file` need not exist."""

    file: str
    state_directory: str
    runtime_directory: str
    settings: tuple[SettingInfo, ...] = ()
    schema: int = SCHEMA


class PlannedFinding(NamedTuple):
    """The planned action for a finding, or for an entry because of one.

    `action` is `add`, `duplicate` (the entry `id` has the same content), `supersede` (the entry `id` is archived) or
    `review` (the user decides; `note` contains the question).
    """

    action: str
    id: str
    title: str
    store: str
    role: str
    note: str | None = None


class PlannedFindingsFile(NamedTuple):
    """The planned action for a findings file: `consume`, `quarantine`, or `wait` (it is being written).

    `skip` means that no file of the role is processed. `note` contains the reason.
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
    """`ok`: no problem. `note`: worth knowing. `problem`: something does not work, or is less safe here."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


class Check(NamedTuple):
    """One check of `echod doctor` or `echod claude check`.

    It has a stable code, the result, a description, what to do, and the path (and line) it is about.
    """

    code: str
    result: CheckResult
    text: str
    fix: str
    path: str | None = None
    line: int | None = None


class DoctorReport(NamedTuple):
    """`echod doctor`. `healthy` is true if no check found a problem."""

    healthy: bool
    checks: tuple[Check, ...] = ()
    schema: int = SCHEMA


class ClaudeReport(NamedTuple):
    """`echod claude check`. `connected` is true if no check found a problem; `commands` connect Claude Code."""

    connected: bool
    checks: tuple[Check, ...] = ()
    commands: tuple[str, ...] = ()
    schema: int = SCHEMA


class ScoreTermsInfo(NamedTuple):
    """The terms of a score, each 0..1."""

    importance: float
    relevance: float
    recency: float


class RuleInfo(NamedTuple):
    """A rule and one entry. `applies_on` (a date) is None for rules of pressure, which have a `rank`."""

    name: str
    applies: bool
    applies_on: str | None
    rank: int | None
    of: int | None
    text: str


class ExplainReport(NamedTuple):
    """`echod explain ENTRY`. `pinned` is the last day of the pin; dates are local.

    `verdict` describes in a sentence what happens to the entry. `weights` are those of the terms; they add up to 1.
    """

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
    confirmed_by: tuple[str, ...] = ()
    confidence: float | None = None
    evidence: tuple[ChangedEvidence, ...] = ()
    verdict: str = ""
    weights: ScoreTermsInfo | None = None
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
    due: Timestamp
    queued_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None


class JobsReport(NamedTuple):
    """`echod jobs`."""

    jobs: tuple[JobInfo, ...] = ()
    schema: int = SCHEMA


class LoggedJob(NamedTuple):
    """A row of `echod log`: the changes of one job. `job` is None for repairs without one."""

    job: int | None
    kind: str
    store: str
    role: str
    at: Timestamp
    summary: str
    undone_by: int | None


class EntryDiff(NamedTuple):
    """A part of a file that a job changed. `action` is `added`, `removed` or `changed`; `id` is None for other text.

    `lines` are those that were removed and added, each after `- ` or `+ `.
    """

    file: str
    action: str
    id: str | None
    title: str
    lines: tuple[str, ...]


class FileDiff(NamedTuple):
    """A file that a job wrote. The numbers of lines are None if it did not exist, or its content is not stored now.

    `archive` is where a findings file was moved, which the job consumed.
    """

    store: str
    file: str
    lines_before: int | None
    lines_after: int | None
    archive: str | None = None


class JobDiffReport(NamedTuple):
    """`echod log JOB`: the changes of one job."""

    job: LoggedJob
    files: tuple[FileDiff, ...] = ()
    entries: tuple[EntryDiff, ...] = ()
    schema: int = SCHEMA


class LogReport(NamedTuple):
    """`echod log`."""

    jobs: tuple[LoggedJob, ...] = ()
    schema: int = SCHEMA


class PacksReport(NamedTuple):
    """`echod packs list` and `echod packs status`. `problems` are sentences about registries and manifests."""

    packs: tuple[PackInfo, ...] = ()
    problems: tuple[str, ...] = ()
    schema: int = SCHEMA


class PlannedEntry(NamedTuple):
    """The planned action for an entry. `rule` is None if the entry stays, `score` if it has none.

    `rules` are all rules that apply, in order. `learnings` are those that leave for space. `merged_into` is the id of
    the entry that counts a rolled up one.
    """

    id: str
    title: str
    layer: str | None
    score: float | None
    rule: str | None
    action: str
    store: str
    role: str
    rules: tuple[str, ...] = ()
    learnings: tuple[str, ...] = ()
    merged_into: str | None = None


class PlannedFile(NamedTuple):
    """The planned lines of a file. `note`: why it stays over its limit, is left alone, or would be refused."""

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
    """A row of `echod projects`. A project that is not `registered` is matched by a glob in the settings."""

    path: str
    registered: bool
    missing: bool
    paused: bool


class ProjectsReport(NamedTuple):
    """`echod projects`."""

    projects: tuple[ProjectInfo, ...] = ()
    schema: int = SCHEMA


class ReviewItem(NamedTuple):
    """A row of `echod review`: its text, the headings that it is about, and what each answer would change.

    `accept` and `reject` are None for information, which can only be dismissed.
    """

    id: str
    store: str
    role: str
    kind: str
    at: Timestamp
    text: str
    titles: tuple[str, ...]
    accept: str | None
    reject: str | None
    dismiss: str


class ReviewReport(NamedTuple):
    """`echod review`."""

    items: tuple[ReviewItem, ...] = ()
    schema: int = SCHEMA


class SecretPositionInfo(NamedTuple):
    """The position and kind of a secret. `confirm` is true if its entry is etched or a note."""

    line: int
    kind: str
    entry: str | None
    confirm: bool


class ScrubFile(NamedTuple):
    """A file with secrets as it was found, or a file that could not be read (`problem`)."""

    path: str
    tracked: bool
    secrets: tuple[SecretPositionInfo, ...] = ()
    problem: str | None = None


class ScrubReport(NamedTuple):
    """`echod scrub`: the files with secrets, and the numbers of secrets that were removed and that remain."""

    project: str
    files: tuple[ScrubFile, ...] = ()
    stripped: int = 0
    remaining: int = 0
    schema: int = SCHEMA


class ShownEntry(NamedTuple):
    """An entry of a memory file. `layer` is None if it is unknown, dates are local, `confidence` is 0..1 or None."""

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


class UnmanagedText(NamedTuple):
    """A part of a memory file that is no entry. No rule changes it."""

    title: str
    lines: int


class ShownRole(NamedTuple):
    """The summary of a role. `lines` is None if its memory file cannot be read; `problem` contains the reason.

    The memory file of the global store is the role "". It and the doc packs have no `limit`.
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
    unmanaged: tuple[UnmanagedText, ...] = ()


class ArchivedText(NamedTuple):
    """A text in an archive, written by `job` because of `rule`. `redacted`: secrets were removed from it."""

    file: str
    date: str
    rule: str
    job: int | None
    redacted: bool
    text: str


class EntryJobInfo(NamedTuple):
    """A job that `added`, `changed` or `removed` an entry (`action`). `job` is None for repairs without one."""

    job: int | None
    kind: str
    at: Timestamp
    action: str


class EntryHistory(NamedTuple):
    """The history of one entry. `text` is None if no memory file contains it; `pinned` is the last day of a pin."""

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
    evidence: tuple[EvidenceInfo, ...] = ()


class ShowReport(NamedTuple):
    """`echod show`. `entry` is None unless the command named one."""

    entries: tuple[ShownEntry, ...] = ()
    roles: tuple[ShownRole, ...] = ()
    entry: EntryHistory | None = None
    schema: int = SCHEMA

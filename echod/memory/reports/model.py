"""The values of a report: its findings, what was decided about findings, and what must not be taken from it."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Final, NamedTuple

MAX_ITEMS: Final = 2_000
"""Findings, resolutions and rejections of one document. The rest of a longer one is not read, and that is reported."""

MAX_LENGTHS: Final = {"id": 32, "file": 500, "line": 10, "severity": 8, "scope": 16, "title": 500, "body": 5_000}
"""The longest values in characters that the workflow plugin itself accepts in a finding."""


class ReportKind(StrEnum):
    """The kinds of report, by the workflow that writes them."""

    REVIEW = "review"
    AUDIT = "audit"
    GAP = "gap"
    WORK = "work"
    RESOLUTION = "resolution"
    VERDICTS = "verdicts"
    UNKNOWN = "unknown"


REPORT_ROLES: Final = {
    ReportKind.REVIEW: "reviewer",
    ReportKind.AUDIT: "auditor",
    ReportKind.GAP: "planner",
    ReportKind.WORK: "workers",
}
"""The role whose memory gets the learnings of a report. A flaw that several roles report belongs to the team."""

TEAM_ROLE: Final = "team"


class FindingSeverity(StrEnum):
    """How severe a finding is."""

    P1 = "P1"
    P2 = "P2"
    P3 = "P3"


class Status(StrEnum):
    """The outcome of a finding, by a resolution report or a verdict."""

    FIXED = "fixed"
    CONFIRMED = "confirmed"
    FALSE_POSITIVE = "false-positive"
    OPEN = "open"


class ReportFinding(NamedTuple):
    """One finding of a report.

    Attributes:
        id: its name within its report. Ids start again in every report.
        category: the prefix of the id in upper case, for example SEC; "" without one.
        file: relative to the project; "" if unknown.
        text: the description, on one line.
        fix: the proposed correction, on one line.
        is_assertion: false for questions and nits.
        doubt: why the finding is doubtful ("its file does not exist"); "" if it is not.
        nonce: the nonce of its marker; "" without one.
    """

    id: str
    category: str
    title: str
    severity: FindingSeverity
    file: str = ""
    line: int | None = None
    text: str = ""
    fix: str = ""
    is_assertion: bool = True
    doubt: str = ""
    nonce: str = ""


class FindingResolution(NamedTuple):
    """The statement of a resolution report or a verdict about a finding of another report. `title` may be ""."""

    id: str
    status: Status
    title: str = ""
    file: str = ""
    reason: str = ""


class Rejection(NamedTuple):
    """A part of a report that is not taken, with the reason as a phrase. `is_injected`: it has a foreign nonce."""

    line: int
    name: str
    reason: str
    is_injected: bool = False


class Report(NamedTuple):
    """One document that a workflow left behind.

    Attributes:
        nonce: identifies the run; "" if the document has none.
        day: the day of the run; None if the document does not state it.
        subject: the path of the report that resolutions and verdicts are about; "" if it is not stated.
    """

    kind: ReportKind
    nonce: str = ""
    day: date | None = None
    subject: str = ""
    findings: tuple[ReportFinding, ...] = ()
    resolutions: tuple[FindingResolution, ...] = ()
    rejections: tuple[Rejection, ...] = ()

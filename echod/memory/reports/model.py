"""The values of a report, and how the small ones are read: severities, paths, locations, days, categories."""

from __future__ import annotations

import re
from datetime import date
from enum import StrEnum
from typing import Final, NamedTuple

from echod.lazy import lazy_pattern

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


HEADING: Final = lazy_pattern(r"[ ]{0,3}(?P<level>#{1,6})[ \t]+(?P<text>\S(?:.*[^ \t#])?)[ \t#]*$")
ITEM: Final = lazy_pattern(
    r"\s{0,3}(?:[-*]\s+(?:\[[ xX]\]\s+)?)?\*\*\[(?P<id>[A-Za-z][\w-]*)\]\s*+(?P<title>[^*\n]*)\*\*(?P<rest>.*)"
)
_SAFE_PATH: Final = lazy_pattern(r"[A-Za-z0-9._\-/@+ ()\[\]]+")
_LOCATION: Final = lazy_pattern(
    r"(?:\bin\s+|--\s+|\*\*File:?\*\*:?\s*|\*\*Evidence:?\*\*:?\s*(?=`))`?(?P<path>[\w./@+-]+)(?::(?P<line>\d{1,9}))?"
)
_SEVERITY: Final = lazy_pattern(r"\bP([1-3])\b", re.IGNORECASE)
_SEVERITY_WORDS: Final = {
    "critical": "P1", "blocker": "P1", "high": "P2", "important": "P2", "major": "P2",
    "medium": "P3", "minor": "P3", "low": "P3",
}  # fmt: skip
_WORDS: Final = lazy_pattern(r"[a-z]+")
_CATEGORY: Final = lazy_pattern(r"[A-Za-z]+")


def one_line(text: str, length: int = 1_000) -> str:
    """Return the text on one line, cut at a word to this number of characters."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    return line[:length].rpartition(" ")[0] or line[:length]


def severity_of(text: str) -> str:
    """Return P1, P2 or P3 for a severity in a text: the letter and digit, or the word; "" for neither."""
    if found := _SEVERITY.search(text):
        return f"P{found[1]}"
    return next((_SEVERITY_WORDS[word] for word in _WORDS.findall(text.casefold()) if word in _SEVERITY_WORDS), "")


def safe_path(text: str) -> str:
    """Return a path inside of the project in its plain form; "" for every other text."""
    parts = [part for part in text.strip().strip("`").replace("\\", "/").split("/") if part not in {"", "."}]
    if not parts or ".." in parts or text.strip().startswith(("/", "~")) or "%" in text:
        return ""
    path = "/".join(parts)
    return path if _SAFE_PATH.fullmatch(path) and len(path) <= MAX_LENGTHS["file"] else ""


def location_in(text: str) -> tuple[str, int | None]:
    """Return the file and line that the first line with a location names; ("", None) without one."""
    for line in text.split("\n")[:40]:
        for found in _LOCATION.finditer(line[:2_000]):
            if "/" in found["path"] or "." in found["path"].strip("."):
                return safe_path(found["path"].rstrip(".")), int(found["line"]) if found["line"] else None
    return "", None


def read_day(text: str) -> date | None:
    """Return the day of an ISO 8601 time; None if it is none."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def category_of(identity: str) -> str:
    """Return the prefix of an id in upper case: SEC for SEC-001, UXH for UXH-P1-001; "" without an id."""
    found = _CATEGORY.match(identity)
    return found[0].upper() if found else ""

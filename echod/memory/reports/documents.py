"""Read the reports without findings of their own: resolutions, verdicts, gap analyses, work summaries, worker logs.

Missing criteria of a gap analysis, failed tasks and decisions are read as findings too. So one rule decides for all
reports what recurs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from echod.lazy import lazy_pattern
from echod.memory.reports.model import (
    HEADING,
    ITEM,
    MAX_ITEMS,
    FindingResolution,
    FindingSeverity,
    ReportFinding,
    Status,
    location_in,
    one_line,
    safe_path,
)

_RESOLVED: Final = lazy_pattern(r"<!--\s*RESOLVED:(?P<id>[\w-]{1,64}):(?P<status>[A-Z_]{1,40})\s*-->")
_RESOLVED_END: Final = lazy_pattern(r"<!--\s*/RESOLVED\b[^>]{0,100}-->")
_RESOLVED_HEADING: Final = lazy_pattern(r"\[?(?P<id>[A-Za-z][A-Za-z0-9]*(?:-[A-Z0-9]+)+)\]?\s*:?\s*(?P<title>.*)")
_VERDICT: Final = lazy_pattern(r"<!--\s*VERDICT\s+(?P<attributes>[^>]{0,400}?)-->")
_ATTRIBUTE: Final = lazy_pattern(r"\b(\w+)=\"([^\"]*)\"")
_LABEL: Final = lazy_pattern(
    r"^[^\S\n]*(?:[-*]\s+)?\*\*(?P<name>[A-Za-z ]{1,30}?):?\*\*:?[ \t]*(?P<value>.*)$", re.MULTILINE
)
_SUBJECT: Final = lazy_pattern(r"^(?:TOME:|\*\*TOME:?\*\*:?)[ \t]*`?(?P<path>[^\s`]{1,500})", re.MULTILINE)
_GAP: Final = lazy_pattern(r"\s{0,3}[-*]\s+\[ \]\s+(?P<text>.+)")
_SECTION_OF_GAP: Final = lazy_pattern(r"\(from section:\s*(?P<section>[^)]{0,200})\)\s*$")
_TASK: Final = lazy_pattern(r"Task\s+#?(?P<number>[\w.-]+):\s*(?P<subject>.+)", re.IGNORECASE)
_BULLET: Final = lazy_pattern(r"\s{0,3}[-*]\s+(?P<text>.+)")
_FAILED: Final = frozenset({"failed", "error", "interrupted"})
_UNMET: Final = {"MISSING": FindingSeverity.P2, "DEVIATED": FindingSeverity.P2, "PARTIAL": FindingSeverity.P3}
_ON_PURPOSE: Final = frozenset({"INTENTIONAL", "EXCLUDED", "FALSE_POSITIVE"})
_STATUSES: Final = {
    "FIXED": Status.FIXED, "FIXED_CROSS_FILE": Status.FIXED, "CONSISTENCY_FIX": Status.FIXED,
    "FALSE_POSITIVE": Status.FALSE_POSITIVE, "TRUE_POSITIVE": Status.CONFIRMED,
}  # fmt: skip
_REASONS: Final = ("evidence", "reasoning", "reason", "change")
_MIN_CELLS: Final = 3
_TEXT_LENGTH: Final = 300


def read_resolutions(text: str) -> tuple[str, tuple[FindingResolution, ...]]:
    """Return the path of the report that was worked on, and what became of its findings."""
    subject = _SUBJECT.search(text[:4_000])
    pieces = list(_RESOLVED.finditer(text))[:MAX_ITEMS]
    found = []
    for piece, end in _with_ends(pieces, text):
        body = _RESOLVED_END.split(text[piece.end() : end][:10_000], maxsplit=1)[0]
        labels = _labels(body)
        heading = next((m["text"] for line in body.split("\n") if (m := HEADING.match(line))), "")
        named = _RESOLVED_HEADING.match(heading)
        file = location_in(f"**File**: {labels['file']}")[0] if labels.get("file") else ""
        found.append(
            FindingResolution(
                id=piece["id"],
                status=_STATUSES.get(piece["status"], Status.OPEN),
                title=one_line(named["title"] if named else heading, _TEXT_LENGTH),
                file=file,
                reason=_reason(labels),
            )
        )
    return (safe_path(subject["path"]) if subject else ""), tuple(found)


def read_verdicts(text: str) -> tuple[str, tuple[FindingResolution, ...]]:
    """Return the path of the report that was verified, and the verdicts about its findings."""
    subject = _SUBJECT.search(text[:4_000])
    pieces = list(_VERDICT.finditer(text))[:MAX_ITEMS]
    found = []
    for piece, end in _with_ends(pieces, text):
        given = dict(_ATTRIBUTE.findall(piece["attributes"]))
        labels = _labels(text[piece.end() : end][:10_000])
        status = _STATUSES.get(given.get("verdict", "").upper(), Status.OPEN)
        claim = one_line(labels.get("claim", ""), _TEXT_LENGTH)
        found.append(FindingResolution(given.get("id", "")[:64], status, claim, reason=_reason(labels)))
    return (safe_path(subject["path"]) if subject else ""), tuple(found)


def read_verdicts_json(value: object) -> tuple[FindingResolution, ...]:
    """Return the verdicts in the content of a `verdicts.json`; none for other content."""
    rows = value.get("verdicts", []) if isinstance(value, dict) else value
    found = []
    for row in (rows if isinstance(rows, list) else [])[:MAX_ITEMS]:
        if isinstance(row, dict) and isinstance(row.get("findingId"), str) and isinstance(row.get("verdict"), str):
            status = _STATUSES.get(row["verdict"].upper(), Status.OPEN)
            reason = one_line(str(row.get("reasoning") or ""), _TEXT_LENGTH)
            found.append(FindingResolution(row["findingId"][:64], status, reason=reason))
    return tuple(found)


def read_gaps(text: str) -> tuple[ReportFinding, ...]:
    """Return the criteria of a plan that were found missing or different (P2), or met in part (P3).

    They are in lists below headings, or in a table with a status. Intended differences are left out.
    """
    severity: FindingSeverity | None = None
    found = []
    for line in text.split("\n"):
        if heading := HEADING.match(line):
            word = heading["text"].split()[0].upper()
            severity = {"MISSING": FindingSeverity.P2, "PARTIAL": FindingSeverity.P3}.get(word)
        elif severity and (gap := _GAP.match(line)) and not ITEM.match(line):
            section = _SECTION_OF_GAP.search(gap["text"])
            title = one_line(_SECTION_OF_GAP.sub("", gap["text"]), _TEXT_LENGTH)
            where = f"Section of the plan: {one_line(section['section'], 100)}" if section else ""
            found.append(ReportFinding("", "GAP", title, severity, text=where))
    for row in _table_rows(text):
        severity = _UNMET.get(row.get("status", "").upper())
        if severity and row.get("requirement") and row.get("classification", "").upper() not in _ON_PURPOSE:
            file, number = location_in(f"in {row.get('evidence', '')}")
            found.append(ReportFinding("", "GAP", one_line(row["requirement"], _TEXT_LENGTH), severity, file, number))
    return tuple(found[:MAX_ITEMS])


def read_work(text: str) -> tuple[ReportFinding, ...]:
    """Return the failed tasks of a work summary or worker log, and the decisions of a log."""
    return tuple(_failed_rows(text))[:MAX_ITEMS] + tuple(_log_entries(text))[:MAX_ITEMS]


def _failed_rows(text: str) -> Iterator[ReportFinding]:
    for row in _table_rows(text):
        if row.get("status", "").casefold() in _FAILED and row.get("subject"):
            file = safe_path(row.get("files modified", "").partition(",")[0])
            title = f"Task failed: {one_line(row['subject'], _TEXT_LENGTH)}"
            yield ReportFinding("", "WORK", title, FindingSeverity.P2, file)


def _table_rows(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows of every table, each by the names of its columns in lower case."""
    header: list[str] = []
    for line in text.split("\n"):
        cells = [cell.strip().strip("`*") for cell in line.strip().strip("|").split("|")]
        if "|" not in line or len(cells) < _MIN_CELLS:
            header = []
        elif not header:
            header = [cell.casefold() for cell in cells]
        elif len(cells) >= len(header):
            yield dict(zip(header, cells, strict=False))


def _log_entries(text: str) -> Iterator[ReportFinding]:
    subject, section, status = "", "", ""
    for line in text.split("\n"):
        if heading := HEADING.match(line):
            task = _TASK.match(heading["text"])
            subject = one_line(task["subject"], 200) if task else subject
            section = "" if task else heading["text"].casefold()
            status = "" if task else status
        elif (label := _LABEL.match(line)) and label["name"].casefold() == "status":
            status = label["value"].strip().casefold()
        elif section == "decisions" and (bullet := _BULLET.match(line)):
            where = f"Decided in the task {subject}" if subject else ""
            yield ReportFinding("", "DECISION", one_line(bullet["text"], _TEXT_LENGTH), FindingSeverity.P2, text=where)
        elif section == "failure reason" and line.strip():
            reason = one_line(line.strip("-* \t"), _TEXT_LENGTH)
            yield ReportFinding("", "WORK", f"Task failed: {reason}", FindingSeverity.P2, text=f"In the task {subject}")


def _with_ends(matches: Sequence[re.Match[str]], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield each match with the position where its piece of the text ends: at the next one."""
    starts = [match.start() for match in matches]
    return zip(matches, [*starts[1:], len(text)][: len(starts)], strict=True)


def _labels(body: str) -> dict[str, str]:
    """Return the labelled values by name in lower case. A label without a value has the bullets below it."""
    labels: dict[str, str] = {}
    found = list(_LABEL.finditer(body))
    for label, end in _with_ends(found, body):
        value = label["value"].strip() or one_line(body[label.end() : end].replace("\n- ", " ").strip("- \n"), 1_000)
        labels.setdefault(label["name"].strip().casefold(), value)
    return labels


def _reason(labels: dict[str, str]) -> str:
    return one_line(next((labels[name] for name in _REASONS if labels.get(name)), ""), _TEXT_LENGTH)

"""Read the reports of workflows: reviews, audits, resolutions, verdicts, gap analyses, work summaries, worker logs.

Every template of these files is filled in by an agent, so all of it varies. Findings are read by their markers first
(`<!-- RUNE:FINDING ... -->`), then by their list items (`- [ ] **[ID] title**`) and headings (`### ID: title`). A
marker inside of a code block is a quotation. Nothing raises, every value has a limit, and the time is linear.

A run writes its nonce into its markers. A marker with another nonce comes from the reviewed code. It is reported and
never taken.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from echod.lazy import lazy_pattern
from echod.memory.reports.documents import read_gaps, read_resolutions, read_verdicts, read_verdicts_json, read_work
from echod.memory.reports.model import (
    HEADING,
    ITEM,
    MAX_ITEMS,
    MAX_LENGTHS,
    FindingSeverity,
    Rejection,
    Report,
    ReportFinding,
    ReportKind,
    category_of,
    location_in,
    one_line,
    read_day,
    safe_path,
    severity_of,
)

_MARKER: Final = lazy_pattern(r"<!--\s*(?P<kind>RUNE|SPOT):FINDING(?!:)\b(?P<attributes>[^>]{0,4000}?)-->")
_CLOSING: Final = lazy_pattern(r"<!--\s*(?:/RUNE:FINDING|RUNE:FINDING:END|SPOT:CLEAN|CLEAN)\b[^>]{0,200}-->")
_ATTRIBUTE: Final = lazy_pattern(r"(?<![A-Za-z_])([A-Za-z_]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_POSITIONAL: Final = lazy_pattern(r"\s*([A-Za-z][\w-]*)\s+(P[1-3])\b.*", re.IGNORECASE)
_FINDING_HEADING: Final = lazy_pattern(
    r"\[?(?P<id>[A-Za-z][A-Za-z0-9]*(?:-[A-Z0-9]+)+)\]?\s*+(?:\((?P<severity>P[1-3])\)\s*+)?:\s*(?P<title>.+)"
)
_BOLD_TITLE: Final = lazy_pattern(r"\*\*\[(?P<id>[A-Za-z][\w-]*)\]\s*+(?P<title>[^*\n]*)\*\*")
_LABEL: Final = lazy_pattern(r"\s*(?:[-*]\s+)?\*\*(?P<name>[A-Za-z][A-Za-z ]{0,40}?)\s*:?\*\*\s*:?\s*(?P<value>.*)")
_FENCE: Final = lazy_pattern(r"\s*(`{3,}|~{3,})")
_NONCE_LINE: Final = lazy_pattern(r"^\*\*Session Nonce:?\*\*:?[ \t]*`?([A-Za-z0-9-]{4,64})", re.MULTILINE)
_DATE_LINE: Final = lazy_pattern(r"^(?:\*\*(?:Date|Generated):?\*\*:?|Generated:)[ \t]*(\S{8,40})", re.MULTILINE)
_DOUBT: Final = lazy_pattern(r"\[(?P<word>UNVERIFIED|SUSPECT)(?::\s*(?P<why>[^\]]{0,200}))?\]")
_NO_NONCE: Final = frozenset({"", "unset", "unknown", "none"})
_TEXT_LABELS: Final = ("issue", "problem", "evidence", "description", "claim", "impact", "finding", "question", "nit")
_FIX_LABELS: Final = ("fix", "fix guidance", "recommendation", "remediation", "suggestion")
_QUESTION_SECTIONS: Final = ("question", "nit")
_END_OF_OPEN_MARKER: Final = lazy_pattern(r"\s{0,3}(?:-{3,}|\*{3,}|_{3,})\s*")
_TEXT_LENGTH: Final = 300
_SECTION_LEVEL: Final = 2


def read_report(text: str, *, expected_nonce: str = "", kind: ReportKind = ReportKind.UNKNOWN) -> Report:
    """Return the content of a report.

    Args:
        text: the document.
        expected_nonce: the nonce of the run, if it is known from elsewhere; "" if not.
        kind: the kind by the document's place. The document itself has precedence.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    if text.lstrip()[:1] in {"[", "{"}:
        return _read_json(text, expected_nonce, kind)
    found = _kind_of(text, kind)
    head = text[:4_000]
    stated = _DATE_LINE.search(head)
    day = read_day(stated[1]) if stated else None
    match found:
        case ReportKind.RESOLUTION:
            subject, resolutions = read_resolutions(text)
            return Report(found, day=day, subject=subject, resolutions=resolutions)
        case ReportKind.VERDICTS:
            subject, resolutions = read_verdicts(text)
            return Report(found, day=day, subject=subject, resolutions=resolutions)
        case ReportKind.WORK:
            return Report(found, day=day, findings=read_work(text))
        case ReportKind.GAP:
            report = _read_findings(text, found, expected_nonce, day)
            return report._replace(findings=(*report.findings, *read_gaps(text))[:MAX_ITEMS])
        case _:
            return _read_findings(text, found, expected_nonce, day)


def _kind_of(text: str, fallback: ReportKind) -> ReportKind:
    head = text[:4_000]
    first = next((m["text"].casefold() for line in head.split("\n") if (m := HEADING.match(line))), "")
    if "resolution report" in first or re.search(r"<!--\s*RESOLVED:", text):
        return ReportKind.RESOLUTION
    if "verification verdicts" in first or re.search(r"<!--\s*VERDICT\b", text):
        return ReportKind.VERDICTS
    if "gap analysis" in first or "inspection verdict" in first:
        return ReportKind.GAP
    if "work summary" in first or re.search(r"^(?:worker|role): ", head, re.MULTILINE):
        return ReportKind.WORK
    if "audit" in first:
        return ReportKind.AUDIT
    if fallback is ReportKind.UNKNOWN and ("tome" in first or "review" in first or "spot-check" in first):
        return ReportKind.REVIEW
    if fallback is ReportKind.UNKNOWN and (_MARKER.search(text) or _BOLD_TITLE.search(text)):
        return ReportKind.REVIEW
    return fallback


@dataclass
class _Draft:
    """A finding while its lines are read."""

    line: int
    severity: str
    section: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    heading: str = ""
    is_marked: bool = False
    is_open: bool = True
    lines: list[str] = field(default_factory=list)


def _read_findings(text: str, kind: ReportKind, expected_nonce: str, day: date | None) -> Report:
    drafts = list(_iter_drafts(text))
    marked = [draft for draft in drafts if draft.is_marked]
    nonce = _nonce_of(text, marked, expected_nonce)
    findings: list[ReportFinding] = []
    rejections: list[Rejection] = []
    # Without a single marker the list items and headings are the findings. Otherwise they repeat what the markers say.
    for draft in marked or drafts:
        if len(findings) + len(rejections) >= MAX_ITEMS:
            rejections.append(Rejection(draft.line, "the rest", f"only {MAX_ITEMS} findings of a report are read"))
            break
        result = _finish(draft, nonce)
        if isinstance(result, Rejection):
            rejections.append(result)
        elif result is not None:
            findings.append(result)
    known = "" if nonce.casefold() in _NO_NONCE else nonce
    return Report(kind, known, day, findings=tuple(findings), rejections=tuple(rejections))


def _nonce_of(text: str, drafts: list[_Draft], expected: str) -> str:
    """Return the nonce of the run: known from elsewhere, in the header, or else that of most markers."""
    if expected:
        return expected
    first = _MARKER.search(text)
    header = _NONCE_LINE.search(text[: first.start()] if first else text[:4_000])
    if header:
        return header[1]
    counts = Counter(nonce for draft in drafts if (nonce := draft.attributes.get("nonce", "")))
    return counts.most_common(1)[0][0] if counts else ""


def _iter_drafts(text: str) -> Iterator[_Draft]:
    """Yield the drafts of the findings. Text between findings belongs to none."""
    draft: _Draft | None = None
    section, severity, fence, above = "", "", "", ""
    for number, line in enumerate(text.split("\n"), start=1):
        fenced = _FENCE.match(line)
        if fence:
            fence = "" if fenced and fenced[1][0] == fence[0] and len(fenced[1]) >= len(fence) else fence
        elif fenced:
            fence = fenced[1]
        elif marker := _MARKER.search(line):
            if draft:
                yield draft
            draft = _Draft(number, severity, section, _attributes(marker["attributes"]), above, is_marked=True)
            draft.is_open = not draft.heading
            above = ""
            continue
        elif _CLOSING.search(line):
            if draft:
                yield draft
            draft, above = None, ""
            continue
        elif heading := HEADING.match(line):
            title = heading["text"]
            named = _FINDING_HEADING.match(title)
            if draft and draft.is_marked and draft.is_open and named and not any(map(str.strip, draft.lines)):
                draft.heading, draft.is_open = title, False
                continue
            if draft:
                yield draft
            draft, above = None, ""
            if len(heading["level"]) <= _SECTION_LEVEL:
                section, severity = title.casefold(), severity_of(title)
            severity = severity if named else severity_of(title) or severity
            if named:
                draft = _Draft(number, severity, section, heading=title)
                above = title
            continue
        elif draft and draft.is_marked and draft.lines and _END_OF_OPEN_MARKER.fullmatch(line):
            yield draft
            draft = None
            continue
        elif (item := ITEM.match(line)) and not (draft and draft.is_marked):
            if draft:
                yield draft
            draft, above = _Draft(number, severity, section, heading=_heading_of(item)), ""
        if draft:
            draft.lines.append(line)
            if line.strip():
                above = ""
    if draft:
        yield draft


def _attributes(text: str) -> Mapping[str, str]:
    found = {name.casefold(): one or other for name, one, other in _ATTRIBUTE.findall(text)}
    if not found and (positional := _POSITIONAL.match(text)):
        found = {"id": positional[1], "severity": positional[2]}
    return found


def _finish(draft: _Draft, nonce: str) -> ReportFinding | Rejection | None:
    """Return the finding, the reason why it is not taken, or None for a heading that is no finding."""
    given = draft.attributes
    name = one_line(given.get("id", ""), 40) or "a finding"
    own = given.get("nonce", "")
    if nonce and own and own != nonce:
        return Rejection(draft.line, name, "its nonce is not that of the run", is_injected=True)
    body = "\n".join(draft.lines).strip()
    if long := [key for key in MAX_LENGTHS if len(body if key == "body" else given.get(key, "")) > MAX_LENGTHS[key]]:
        return Rejection(draft.line, name, f"its {long[0]} is longer than {MAX_LENGTHS[long[0]]} characters")
    identity, title, stated = _title_of(draft, body)
    severity = severity_of(given.get("severity") or given.get("priority") or stated or draft.severity)
    if not title or not (identity or given):
        return None
    if not severity:
        if not draft.is_marked:
            return None
        return Rejection(draft.line, name, "its severity is none of P1, P2 and P3")
    if len(title) > MAX_LENGTHS["title"]:
        return Rejection(draft.line, name, f"its title is longer than {MAX_LENGTHS['title']} characters")
    file, line = _location(given, body)
    if (raw := given.get("file", "")) and not file and raw != "cross-shard":
        return Rejection(draft.line, name, "its file is no path inside of the project")
    labels = _labels(body)
    doubt = _DOUBT.search(body)
    is_question = bool(given.get("interaction")) or draft.section.startswith(_QUESTION_SECTIONS)
    return ReportFinding(
        id=identity,
        category=category_of(identity),
        title=title,
        severity=FindingSeverity(severity),
        file=file,
        line=line,
        text=one_line(next((labels[key] for key in _TEXT_LABELS if labels.get(key)), labels[""]), _TEXT_LENGTH),
        fix=one_line(next((labels[key] for key in _FIX_LABELS if labels.get(key)), ""), _TEXT_LENGTH),
        is_assertion=not is_question,
        doubt=one_line(doubt["why"] or doubt["word"].lower(), _TEXT_LENGTH) if doubt else "",
        nonce="" if own.casefold() in _NO_NONCE else own,
    )


def _title_of(draft: _Draft, body: str) -> tuple[str, str, str]:
    """Return the id, the title and the severity that the heading or the first line states."""
    identity = draft.attributes.get("id", "")
    first = next((line for line in draft.lines if line.strip()), "")
    for candidate in (draft.heading, first.strip("# ")):
        if named := (_BOLD_TITLE.search(candidate) or _FINDING_HEADING.match(candidate)):
            severity = named.groupdict().get("severity") or ""
            title = named["title"].strip() or _title_behind(candidate[named.end() :])
            return identity or named["id"], one_line(title), severity
    plain = draft.heading or next((line for line in body.split("\n") if line.strip() and not _LABEL.match(line)), "")
    sentence = re.split(r"(?<=[.!?])\s", one_line(plain.strip("#*- ")), maxsplit=1)[0]
    return identity, sentence[: MAX_LENGTHS["title"]], ""


def _heading_of(item: re.Match[str]) -> str:
    return f"{item['id']}: {item['title'].strip() or _title_behind(item['rest'])}"


def _title_behind(rest: str) -> str:
    """Return the title that follows an id in bold, without the location at its end."""
    return re.split(r"\s+(?:--|\u2014)\s+`|\s+in `", rest, maxsplit=1)[0].strip(" :-")


def _location(given: Mapping[str, str], body: str) -> tuple[str, int | None]:
    if raw := given.get("file", ""):
        line = given.get("line", "").partition("-")[0]
        return safe_path(raw), int(line) if line.isascii() and line.isdigit() else None
    return location_in(body)


def _labels(body: str) -> dict[str, str]:
    """Return the values of the labelled lines by name in lower case, and under "" the text without a label."""
    labels: dict[str, str] = {"": ""}
    fence = False
    plain: list[str] = []
    for line in body.split("\n"):
        if _FENCE.match(line):
            fence = not fence
        elif fence:
            continue
        elif label := _LABEL.match(line):
            labels.setdefault(label["name"].strip().casefold(), label["value"].strip())
        elif not _BOLD_TITLE.search(line) and not HEADING.match(line):
            plain.append(line)
    labels[""] = "\n".join(plain).strip()
    return labels


def _read_json(text: str, expected_nonce: str, kind: ReportKind) -> Report:
    """Read `verdicts.json`, or the findings of one agent as JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Report(kind, rejections=(Rejection(1, "the file", "it is no valid JSON"),))
    if verdicts := read_verdicts_json(value):
        return Report(ReportKind.VERDICTS, resolutions=verdicts)
    rows = value.get("findings") if isinstance(value, dict) else value
    findings = []
    for row in (rows if isinstance(rows, list) else [])[:MAX_ITEMS]:
        if not isinstance(row, dict):
            continue
        given = {str(key).casefold(): str(item) for key, item in row.items() if isinstance(item, str | int | float)}
        draft = _Draft(1, "", "", given, given.get("title", ""), is_marked=True)
        labels = [key for key in ("issue", "evidence", "fix") if given.get(key)]
        draft.lines = [f"**{key.title()}:** {one_line(given[key])}" for key in labels]
        if isinstance(finding := _finish(draft, expected_nonce), ReportFinding):
            findings.append(finding)
    return Report(ReportKind.REVIEW if kind is ReportKind.UNKNOWN else kind, expected_nonce, findings=tuple(findings))

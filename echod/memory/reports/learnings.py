"""Decide what the reports of workflows become: entries of their own, a line in a list, a count, or nothing.

- A flaw that two runs or more reported, at least once as P1 or P2, becomes an inscribed entry. Beyond a number of
  entries a month, the rest is one line each in a list of recurring flaws.
- A P1 or P2 that was confirmed, by its correction or by a verdict, becomes an inscribed entry too, a few a month.
- A finding that was found false for a stated reason becomes an entry "Not a problem", a few a month. Whether a P1 on
  security is false is for the user alone to decide.
- The other P1 and P2 are counted in one traced entry a month. P3, questions and nits become nothing.

The limits keep a month of reviews within one memory file. The rest stays in the history, and is counted.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Final, NamedTuple

from echod.memory.compose import ComposeError, compose_entry, detect_form, detect_newline, with_entries
from echod.memory.document import parse_block, round_trips
from echod.memory.edit import with_recurrence, with_verified
from echod.memory.findings import Finding
from echod.memory.forms import Recurrence
from echod.memory.identity import block_key, normalize_title
from echod.memory.model import Block, Document, Layer, Unreadable
from echod.memory.reports.history import Flaw, LearnedFlaw, ReportHistory, SeenFinding, find_flaws, is_same_flaw
from echod.memory.reports.model import TEAM_ROLE, FindingSeverity, Status, one_line
from echod.memory.text import pluralize, without_full_stop

RECURRING_ENTRIES: Final = 9
"""New entries for recurring flaws, for each role and month."""

CONFIRMED_ENTRIES: Final = 1
"""New entries for flaws that were confirmed but reported once, for each role and month."""

FALSE_ENTRIES: Final = 2
"""New entries for findings that were found false, for each role and month."""

LISTED_FLAWS: Final = 10
"""Lines in the list of the other recurring flaws of a month."""

COUNTED_CATEGORIES: Final = 6
"""Lines in the entry that counts what was reported once."""

SOURCE: Final = "echod ingest"
_ENTRIES_FOR_EACH_STEP: Final = 3  # with every three entries of a month, one run more is necessary for the next
_PROTECTED_CATEGORIES: Final = frozenset({"SEC", "VEIL", "DSEC", "XSEC"})
_TITLE_LENGTH: Final = 110
_TEXT_LENGTH: Final = 320
_MAX_FILES: Final = 3
_CERTAIN_RUNS: Final = 3
_CONFIDENCES: Final = (0.4, 0.75, 0.9)
SPECIFIC_TAG: Final = "context-specific"
_KINDS: Final = {
    "review": "review", "audit": "audit", "gap": "gap analysis", "work": "work report", "unknown": "report",
}  # fmt: skip


class Cause(NamedTuple):
    """Why a flaw becomes an entry: its name in the history, and the number of such entries a month."""

    name: str
    limit: int


_RECURRING: Final = Cause("recurring", RECURRING_ENTRIES)
_CONFIRMED: Final = Cause("confirmed", CONFIRMED_ENTRIES)
_NOT_A_PROBLEM: Final = Cause("not a problem", FALSE_ENTRIES)


class Candidate(NamedTuple):
    """A flaw that is to become an entry of a role."""

    role: str
    cause: str
    finding: Finding
    flaw: Flaw

    @property
    def key(self) -> str:
        """Identifies its text, for the answer of the validation command."""
        return hashlib.sha256(f"{self.finding.title}\n{self.finding.text}".encode()).hexdigest()


class RoleLearnings(NamedTuple):
    """The changes of the memory of a role.

    Attributes:
        candidates: the new entries, the most frequent flaws first.
        repeated: titles of entries that were made earlier, with how often their flaws were reported by now.
        summaries: the entries of the month that list and count, to be added or replaced.
    """

    candidates: tuple[Candidate, ...] = ()
    repeated: tuple[tuple[str, Recurrence], ...] = ()
    summaries: tuple[Finding, ...] = ()


def find_learnings(history: ReportHistory, today: date) -> Mapping[str, RoleLearnings]:
    """Return what each role is to learn from everything that was read, by the role's name.

    Only flaws with a finding that was read this month count, so an old report changes nothing a second time.
    """
    statuses = _statuses(history)
    flaws = [
        flaw
        for flaw in find_flaws(each for each in history.findings if each.is_assertion)
        if any(_is_of_month(finding.recorded, today) for finding in flaw.findings)
    ]
    learned = {id(flaw): _learned_of(flaw, history.learned) for flaw in flaws}
    by_role: defaultdict[str, list[Flaw]] = defaultdict(list)
    for flaw in sorted(flaws, key=_rank):
        by_role[role_of(flaw)].append(flaw)
    repeated: defaultdict[str, list[tuple[str, Recurrence]]] = defaultdict(list)
    for flaw in flaws:
        if (entry := learned[id(flaw)]) is not None and len(flaw.runs) > 1:
            repeated[entry.role].append((entry.entry, recurrence_of(flaw)))
    result = {}
    for role in sorted({*by_role, *repeated}):
        new = [flaw for flaw in by_role[role] if learned[id(flaw)] is None]
        candidates = tuple(_candidates(role, new, statuses, history.learned, today))
        taken = {id(candidate.flaw) for candidate in candidates}
        rest = [flaw for flaw in new if id(flaw) not in taken and not _is_false(flaw, statuses)]
        result[role] = RoleLearnings(candidates, tuple(repeated[role]), tuple(_summaries(rest, today)))
    return result


def role_of(flaw: Flaw) -> str:
    """Return the role that learns from a flaw: the one whose reports have it, or the team if several do."""
    roles = {finding.role for finding in flaw.findings}
    return roles.pop() if len(roles) == 1 else TEAM_ROLE


def recurrence_of(flaw: Flaw) -> Recurrence:
    """Return how often a flaw was reported: once for each run."""
    days = [finding.day for finding in flaw.findings]
    return Recurrence(len(flaw.runs), len(flaw.runs), min(days), max(days))


_Statuses = Mapping[tuple[str, str, str], tuple[Status, str]]


def _statuses(history: ReportHistory) -> _Statuses:
    """Return the status and reason of findings by run, title and file. A correction outweighs a doubt."""
    order = [Status.OPEN, Status.FALSE_POSITIVE, Status.CONFIRMED, Status.FIXED]
    found: dict[tuple[str, str, str], tuple[Status, str]] = {}
    for each in history.resolutions:
        key = (each.run, each.title, each.file)
        if key not in found or order.index(each.status) > order.index(found[key][0]):
            found[key] = (each.status, each.reason)
    return found


def _flaw_statuses(flaw: Flaw, statuses: _Statuses) -> list[tuple[Status, str]]:
    keys = [(finding.run, finding.title, finding.file) for finding in flaw.findings]
    return [statuses[key] for key in keys if key in statuses]


def _is_false(flaw: Flaw, statuses: _Statuses) -> bool:
    found = [status for status, _ in _flaw_statuses(flaw, statuses)]
    return Status.FALSE_POSITIVE in found and not {Status.FIXED, Status.CONFIRMED} & {*found}


def _is_severe(flaw: Flaw) -> bool:
    return any(finding.severity in {FindingSeverity.P1, FindingSeverity.P2} for finding in flaw.findings)


def _is_doubtful(flaw: Flaw) -> bool:
    return all(finding.doubt for finding in flaw.findings)


def _rank(flaw: Flaw) -> tuple[object, ...]:
    """Return the key by which the most frequent, then the most severe, then the newest flaws come first."""
    last = flaw.findings[-1]
    return -len(flaw.runs), min(finding.severity.value for finding in flaw.findings), -last.day.toordinal(), last.title


def _is_of_month(day: date, today: date) -> bool:
    return (day.year, day.month) == (today.year, today.month)


def _learned_of(flaw: Flaw, learned: Iterable[LearnedFlaw]) -> LearnedFlaw | None:
    return next((each for each in learned if any(is_same_flaw(each, finding) for finding in flaw.findings)), None)


def _candidates(
    role: str, flaws: Sequence[Flaw], statuses: _Statuses, learned: Iterable[LearnedFlaw], today: date
) -> Iterator[Candidate]:
    used = Counter(each.cause for each in learned if each.role == role and _is_of_month(each.recorded, today))
    for flaw in flaws:
        cause = _cause(flaw, statuses)
        if cause is None or used[cause.name] >= cause.limit:
            continue
        if cause is _RECURRING and len(flaw.runs) < 2 + used[cause.name] // _ENTRIES_FOR_EACH_STEP:
            continue
        used[cause.name] += 1
        yield Candidate(role, cause.name, _finding(flaw, cause, statuses, today), flaw)


def _cause(flaw: Flaw, statuses: _Statuses) -> Cause | None:
    if _is_doubtful(flaw):
        return None
    if _is_false(flaw, statuses):
        reasons = [reason for status, reason in _flaw_statuses(flaw, statuses) if status is Status.FALSE_POSITIVE]
        is_protected = any(
            finding.severity is FindingSeverity.P1 and finding.category in _PROTECTED_CATEGORIES
            for finding in flaw.findings
        )
        return _NOT_A_PROBLEM if any(reasons) and not is_protected else None
    if not _is_severe(flaw):
        return None
    if len(flaw.runs) > 1:
        return _RECURRING
    confirmed = {Status.FIXED, Status.CONFIRMED} & {status for status, _ in _flaw_statuses(flaw, statuses)}
    return _CONFIRMED if confirmed else None


def _finding(flaw: Flaw, cause: Cause, statuses: _Statuses, today: date) -> Finding:
    best = min(flaw.findings, key=lambda each: (each.severity.value, -len(each.text) - len(each.fix), each.title))
    found = _flaw_statuses(flaw, statuses)
    title = one_line(without_full_stop(best.title), _TITLE_LENGTH)
    day = min(flaw.findings[-1].day, today)
    recurrence = recurrence_of(flaw)
    if cause is _NOT_A_PROBLEM:
        title = f"Not a problem: {title}"
        reason = next(reason for status, reason in found if status is Status.FALSE_POSITIVE and reason)
        text = f"{_sentence(reason)} It was reported as {best.severity.value} and found false."
    else:
        parts = [_sentence(best.text), f"Fix: {_sentence(best.fix)}" if best.fix else ""]
        fixed = sum(status is Status.FIXED for status, _ in found)
        again = f", corrected {pluralize(fixed, 'time')}" if fixed else ""
        parts.append(f"{best.severity.value} in {_reports_text(flaw)}{again}.")
        text = " ".join(part for part in parts if part)
    confirmed = any(status in {Status.FIXED, Status.CONFIRMED} for status, _ in found)
    is_certain = recurrence.times >= _CERTAIN_RUNS or (confirmed and cause is _RECURRING)
    confidence = _CONFIDENCES[2 if is_certain else 1]
    source = f"{SOURCE} {best.kind}"
    return _build(title, Layer.INSCRIBED, day, confidence, text, _files_text(flaw.findings),
                  f"{source} {recurrence}" if recurrence.times > 1 else source)  # fmt: skip


def _build(
    title: str, layer: Layer, day: date, confidence: float, text: str, evidence: str | None, source: str
) -> Finding:
    return Finding(
        key="", title=title, kind=None, heading_date=day, layer=layer, claimed_layer=None, confidence=confidence,
        source=source, evidence=evidence, verified=day, supersedes=None, fields=(), text=text,
    )  # fmt: skip


def _reports_text(flaw: Flaw) -> str:
    kinds = Counter(kind for _, kind in {(finding.run, finding.kind) for finding in flaw.findings})
    names = ((count, _KINDS.get(kind, "report")) for kind, count in sorted(kinds.items()))
    return " and ".join(
        pluralize(count, name, f"{name[:-2]}es" if name.endswith("is") else None) for count, name in names
    )


def _files_text(findings: Iterable[SeenFinding]) -> str | None:
    places = dict.fromkeys(
        f"`{finding.file}:{finding.line}`" if finding.line else f"`{finding.file}`"
        for finding in reversed(tuple(findings))
        if finding.file
    )
    return ", ".join([*places][:_MAX_FILES]) or None


def _sentence(text: str) -> str:
    line = one_line(text, _TEXT_LENGTH).lstrip("-*#> ")
    return line if not line or line.endswith((".", "!", "?")) else f"{line}."


def _summaries(flaws: Sequence[Flaw], today: date) -> Iterator[Finding]:
    """Yield the entries of the month for what gets no entry of its own: a list, and a count."""
    month = f"{today.year}-{today.month:02}"
    severe = [flaw for flaw in flaws if _is_severe(flaw) and not _is_doubtful(flaw)]
    recurring = [flaw for flaw in severe if len(flaw.runs) > 1]
    lines = [f"- {_listed(flaw)}" for flaw in recurring[:LISTED_FLAWS]]
    if (more := len(recurring) - LISTED_FLAWS) > 0:
        lines.append(f"- and {more} more")
    title, day = f"Other recurring flaws in {month}", _last_day(recurring, today)
    # Without a line it removes the list of an earlier day, whose flaws have entries of their own by now.
    yield _build(title, Layer.INSCRIBED, day, _CONFIDENCES[1], "\n".join(lines), None, SOURCE)
    single = [flaw for flaw in severe if len(flaw.runs) == 1]
    if single:
        by_category = defaultdict(list)
        for flaw in single:
            by_category[flaw.findings[0].category or "other"].append(flaw)
        ordered = sorted(by_category.items(), key=lambda item: (-len(item[1]), item[0]))
        lines = [f"- {_counted(category, each)}" for category, each in ordered[:COUNTED_CATEGORIES]]
        title, day = f"Findings reported once in {month}", _last_day(single, today)
        yield _build(title, Layer.TRACED, day, _CONFIDENCES[0], "\n".join(lines), None, SOURCE)


def _listed(flaw: Flaw) -> str:
    last = flaw.findings[-1]
    place = f" (`{last.file}`)" if last.file else ""
    return f"{one_line(without_full_stop(last.title), _TITLE_LENGTH)}{place}: {_reports_text(flaw)}"


def _counted(category: str, flaws: Sequence[Flaw]) -> str:
    critical = sum(any(finding.severity is FindingSeverity.P1 for finding in flaw.findings) for flaw in flaws)
    files = Counter(flaw.findings[0].file for flaw in flaws if flaw.findings[0].file)
    file, count = min(files.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
    most = f", {count} in `{file}`" if count > 1 else ""
    return f"{category}: {pluralize(len(flaws), 'finding')}{f' ({critical} P1)' if critical else ''}{most}"


def _last_day(flaws: Iterable[Flaw], today: date) -> date:
    return min(max((flaw.findings[-1].day for flaw in flaws), default=today), today)


class LearnedMemory(NamedTuple):
    """A memory file with what was learned.

    Attributes:
        data: its new bytes; None if nothing changes.
        added: titles of the new entries.
        learned: the flaws that became entries, for the history.
        replaced: entries whose text changed, as they were.
        refreshed: how many entries got a higher count.
    """

    data: bytes | None
    added: tuple[str, ...]
    learned: tuple[LearnedFlaw, ...]
    replaced: tuple[Block, ...]
    refreshed: int


def with_learnings(
    role: str,
    document: Document,
    learnings: RoleLearnings,
    today: date,
    *,
    is_specific: Callable[[Candidate], bool] = lambda _: False,
    is_pinned: Callable[[int], bool] = lambda _: False,
) -> LearnedMemory | Unreadable:
    """Return the memory file with what is to be learned.

    Args:
        role: the role of the file.
        document: the file.
        learnings: what is to be learned.
        today: the local day.
        is_specific: whether the validation command judged a learning to apply to its context only.
        is_pinned: whether the entry at an index must not be changed.

    Raises:
        ComposeError: the file cannot take the entries.
    """
    blocks: list[Block | None] = [*document.blocks]
    titles = {title: index for index, title in _unprotected(document, is_pinned)}
    every_title = {normalize_title(block.entry.full_title) for block in document.blocks if block.entry}
    refreshed = 0
    for title, recurrence in learnings.repeated:
        index = titles.get(normalize_title(title))
        if index is not None:
            counted = with_recurrence(document.blocks[index], recurrence)
            if counted is not None and counted != document.blocks[index]:
                blocks[index] = with_verified(counted, min(recurrence.last, today))
                refreshed += 1
    new: list[Finding] = []
    replaced: list[Block] = []
    learned = []
    for candidate in learnings.candidates:
        first = candidate.flaw.findings[0]
        learned.append(
            LearnedFlaw(role, candidate.finding.title, candidate.cause, first.title, first.category, first.file, today)
        )
        if normalize_title(candidate.finding.title) not in every_title:
            new.append(_specific(candidate.finding) if is_specific(candidate) else candidate.finding)
    has_candidates = bool(new)
    form, newline = detect_form(document), detect_newline(document)
    for summary in learnings.summaries:
        index = titles.get(normalize_title(summary.title))
        if index is None:
            if summary.text and normalize_title(summary.title) not in every_title:
                new.append(summary)
            continue
        old = document.blocks[index]
        if not summary.text:
            replaced.append(old)
            blocks[index] = None
            continue
        dated = replace(summary, heading_date=_heading_day(old, summary))
        text = compose_entry(dated, form, newline)
        block = parse_block(text.rstrip() + old.text[len(old.text.rstrip()) :])
        if block.body.split() != old.body.split() and block_key(block) == block_key(old):
            replaced.append(old)
            blocks[index] = None if has_candidates else block
            new += [dated] if has_candidates else []  # so that it stays behind the flaws
    changed = document.with_blocks(block for block in blocks if block is not None)
    if (replaced or refreshed) and not round_trips(changed):
        raise ComposeError("A code block or comment that is never closed in this file would swallow the new entries.")
    after = with_entries(changed, new) if new else changed
    if isinstance(after, Unreadable):
        return after
    data = after.render() if new or replaced or refreshed else None
    before = {normalize_title(block.entry.full_title) for block in replaced if block.entry}
    added = tuple(finding.title for finding in new if normalize_title(finding.title) not in before)
    return LearnedMemory(data, added, tuple(learned), tuple(replaced), refreshed)


def _unprotected(document: Document, is_pinned: Callable[[int], bool]) -> Iterator[tuple[int, str]]:
    """Yield index and title of the entries that a job may change."""
    for index, block in enumerate(document.blocks):
        if block.entry is not None and not block.protected and not is_pinned(index):
            yield index, normalize_title(block.entry.full_title)


def _heading_day(block: Block, summary: Finding) -> date:
    """Return the day in the heading of an entry, which stays, because it is part of what the entry is."""
    day = block.entry.heading_date if block.entry else None
    return day or summary.heading_date


def _specific(finding: Finding) -> Finding:
    """Return a learning that applies to its context only: with a tag, and a confidence one step lower."""
    lower = max((step for step in _CONFIDENCES if step < finding.confidence), default=_CONFIDENCES[0])
    return replace(finding, confidence=lower, fields=(*finding.fields, ("tags", SPECIFIC_TAG)))

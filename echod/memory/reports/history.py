"""Remember which findings were read, and decide which of them are one flaw.

Ids of findings start again in every report, so they say nothing about two reports. Two findings are one flaw if their
words, their file and their category agree. The thresholds were measured on 1,774 findings of 197 real reviews
(docs/ingest.md has the numbers).

The history is text, one JSON object a line, in the archive of the role. It only grows, also after an undo. So nothing
that was read once is read as new again, whatever happens to the report or to the entry made of it.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.reports.model import FindingSeverity, Status
from echod.memory.similarity import fold, jaccard, stem, tokenize

WORDS_ALONE: Final = 0.7
"""The least shared part of the words of two findings that are one flaw, if neither file nor category agree."""

WORDS_WITH_CATEGORY: Final = 0.6
"""The same for findings of one category."""

WORDS_WITH_FILE: Final = 0.5
"""The same for findings in one file."""

WORDS_WITH_BOTH: Final = 0.4
"""The same for findings of one category in one file."""

_NEEDED: Final = {
    (False, False): WORDS_ALONE, (False, True): WORDS_WITH_CATEGORY,
    (True, False): WORDS_WITH_FILE, (True, True): WORDS_WITH_BOTH,
}  # fmt: skip
_MIN_SHARED_WORDS: Final = 2
_MIN_WORD_LENGTH: Final = 3
_MAX_CANDIDATES: Final = 64
_TITLE_CACHE_SIZE: Final = 8_192
_FILE_NAME: Final = lazy_pattern(r"[\w./-]{1,400}\.[A-Za-z]{1,5}\b")
_COMMON: Final = frozenset(
    [
        "the", "and", "for", "with", "from", "not", "but", "its", "are", "was", "has", "use", "using", "add", "fix",
        "can", "may", "this", "that", "when", "into", "via", "per", "before", "after", "still", "again",
    ]
)  # fmt: skip


class SeenFinding(NamedTuple):
    """A finding that was read: its text without secrets, and where and when it was read.

    `run` identifies the run of the workflow. Copies of a report are of the same run.
    """

    run: str
    role: str
    kind: str
    path: str
    day: date
    recorded: date
    id: str
    category: str
    severity: FindingSeverity
    title: str
    file: str
    line: int | None
    text: str
    fix: str
    is_assertion: bool
    doubt: str

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the finding within its run."""
        return finding_key(self.title, self.file)


class SeenResolution(NamedTuple):
    """The outcome of a finding of a run."""

    run: str
    role: str
    title: str
    file: str
    status: Status
    reason: str
    recorded: date


class LearnedFlaw(NamedTuple):
    """A flaw that became an entry of its own, under this title in the memory of `role`."""

    role: str
    entry: str
    cause: str
    title: str
    category: str
    file: str
    recorded: date


def finding_key(title: str, file: str) -> tuple[str, str]:
    """Return what identifies a finding within a run."""
    return " ".join(tokenize(fold(title))), file


def run_of(nonce: str, keys: Iterable[tuple[str, str]]) -> str:
    """Return the identity of a run: its nonce, or else a digest of its findings."""
    if nonce:
        return nonce
    joined = "\n".join(sorted(f"{title}\0{file}" for title, file in keys))
    return "content-" + hashlib.sha256(joined.encode()).hexdigest()[:16]


@dataclass
class ReportHistory:
    """Everything that was read, of all roles of a store."""

    digests: set[str] = field(default_factory=set)
    findings: list[SeenFinding] = field(default_factory=list)
    resolutions: list[SeenResolution] = field(default_factory=list)
    learned: list[LearnedFlaw] = field(default_factory=list)

    def add_lines(self, data: bytes) -> None:
        """Add the lines of a history file. A damaged line is skipped: it costs a duplicate at worst."""
        for line in data.split(b"\n"):
            try:
                value = json.loads(line)
                kind = value.pop("type")
                if kind == "report":
                    self.digests.add(str(value["digest"]))
                elif kind == "finding":
                    days = {name: date.fromisoformat(value[name]) for name in ("day", "recorded")}
                    self.findings.append(
                        SeenFinding(**{**value, **days, "severity": FindingSeverity(value["severity"])})
                    )
                elif kind == "resolution":
                    recorded = date.fromisoformat(value["recorded"])
                    status = Status(value["status"])
                    self.resolutions.append(SeenResolution(**{**value, "recorded": recorded, "status": status}))
                elif kind == "learned":
                    self.learned.append(LearnedFlaw(**{**value, "recorded": date.fromisoformat(value["recorded"])}))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue

    def runs_with(self, keys: Sequence[tuple[str, str]]) -> tuple[str, ...]:
        """Return the runs that contain all of these findings."""
        wanted = set(keys)
        by_run: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        for finding in self.findings:
            if (key := finding.key) in wanted:
                by_run[finding.run].add(key)
        return tuple(run for run, found in by_run.items() if found == wanted)


def report_line(digest: str, path: str, run: str, recorded: date) -> str:
    """Return the line of a report that was read, identified by the digest of its content."""
    return _line("report", {"digest": digest, "path": path, "run": run, "recorded": recorded.isoformat()})


def finding_line(finding: SeenFinding) -> str:
    """Return the line of a finding."""
    days = {"day": finding.day.isoformat(), "recorded": finding.recorded.isoformat()}
    return _line("finding", {**finding._asdict(), **days, "severity": finding.severity.value})


def resolution_line(resolution: SeenResolution) -> str:
    """Return the line of a resolution."""
    changed = {"recorded": resolution.recorded.isoformat(), "status": resolution.status.value}
    return _line("resolution", {**resolution._asdict(), **changed})


def learned_line(learned: LearnedFlaw) -> str:
    """Return the line of a flaw that became an entry."""
    return _line("learned", {**learned._asdict(), "recorded": learned.recorded.isoformat()})


def _line(kind: str, values: dict[str, object]) -> str:
    return json.dumps({"type": kind, **values}, ensure_ascii=False, separators=(",", ":")) + "\n"


class _Words(NamedTuple):
    """The parts of a finding that are compared."""

    words: frozenset[str]
    numbers: frozenset[str]
    category: str
    file: str


def is_same_flaw(one: SeenFinding | LearnedFlaw, other: SeenFinding | LearnedFlaw) -> bool:
    """Return whether two findings are one flaw, by their words, files and categories."""
    return _agree(_words_of(one), _words_of(other))


def _words_of(finding: SeenFinding | LearnedFlaw) -> _Words:
    words, numbers = _title_words(finding.title)
    return _Words(words, numbers, finding.category, finding.file)


@lru_cache(maxsize=_TITLE_CACHE_SIZE)
def _title_words(title: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words and the numbers of a title. Names of files are no words: flaws of one file share them."""
    tokens = tokenize(fold(_FILE_NAME.sub(" ", title))) or tokenize(fold(title))
    words = (stem(word) for word in tokens if word.isalpha() and len(word) >= _MIN_WORD_LENGTH)
    numbers = frozenset(word for word in tokens if not word.isalpha())
    return frozenset(word for word in words if word not in _COMMON), numbers


def _agree(one: _Words, other: _Words) -> bool:
    same_file = bool(one.file) and one.file == other.file
    same_category = bool(one.category) and one.category == other.category
    if one.numbers != other.numbers and one.file and other.file and not same_file:
        return False
    if one.words == other.words:
        return bool(one.words) or (same_file and one.numbers == other.numbers)
    if len(one.words & other.words) < _MIN_SHARED_WORDS:
        return False
    needed = _NEEDED[same_file, same_category]
    return jaccard(one.words, other.words) >= needed


class Flaw(NamedTuple):
    """Findings that are one flaw, the oldest first."""

    findings: tuple[SeenFinding, ...]

    @property
    def runs(self) -> frozenset[str]:
        """The runs that reported it."""
        return frozenset(finding.run for finding in self.findings)


def find_flaws(findings: Iterable[SeenFinding]) -> Iterator[Flaw]:
    """Group findings to flaws. Each is compared with the first finding of a flaw, so that no chain connects two flaws.

    A finding is compared only with flaws that share a word with it, those with the most shared words first.
    """
    groups: list[list[SeenFinding]] = []
    leaders: list[_Words] = []
    by_word: defaultdict[str, list[int]] = defaultdict(list)
    for finding in sorted(findings, key=lambda each: (each.day, each.run, each.title, each.file)):
        words = _words_of(finding)
        shared: defaultdict[int, int] = defaultdict(int)
        for word in words.words:
            for index in by_word[word]:
                shared[index] += 1
        likely = sorted(shared, key=lambda index: (-shared[index], index))[:_MAX_CANDIDATES]
        found = next((index for index in likely if _agree(leaders[index], words)), None)
        if found is not None:
            groups[found].append(finding)
            continue
        for word in words.words:
            by_word[word].append(len(groups))
        groups.append([finding])
        leaders.append(words)
    return (Flaw(tuple(group)) for group in groups)

"""Turn what is known of a memory file into a picture: its lines by layer in each period, and what came and left.

A *sighting* is a content that the file had on a day: before and after a commit, in a backup, or now. Between two
sightings with the same content the file is known to be unchanged. Between two different ones, days without a sighting
are unknown, and stay unknown: nothing is interpolated.

A *movement* is an entry that came or left. Removals are known as far back as the archives reach, additions only as far
as the journal does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, timedelta
from hashlib import sha256
from typing import NamedTuple

from echod.memory.archive import ArchivedEntry
from echod.memory.document import count_lines, parse_block
from echod.memory.identity import entry_ids
from echod.memory.model import Document, Layer
from echod.memory.policy_model import SHORTENING_RULES, Rule
from echod.memory.redact import redact

OTHER_PROGRAMS = "another program"
"""The cause of a change that no commit of echod made."""

NOT_KNOWN = "not known"
"""The cause of a change between two commits whose contents the journal no longer has."""

OTHER_TEXT = "other text"
"""The name of lines that belong to no entry of a known layer."""

LAYER_NAMES = (*(layer.value for layer in Layer), OTHER_TEXT)
"""The names of the values of `LayerLines`, in order."""

_UNDO_KIND = "undo"
_PERIOD_DAYS = (1, 7, 14, 28, 91, 182, 364)


class LayerLines(NamedTuple):
    """The lines of a memory file by layer. `other` are headings of the file, opaque text and unknown layers."""

    etched: int = 0
    notes: int = 0
    inscribed: int = 0
    observations: int = 0
    traced: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        """The lines of the file."""
        return sum(self)


class Sighting(NamedTuple):
    """A content that the memory file had on a day. Equal contents have the same `digest`."""

    day: date
    lines: LayerLines
    digest: str


class Movement(NamedTuple):
    """An entry that came or left on a day. `cause` is a rule, a kind of job or `OTHER_PROGRAMS`.

    `shortened`: a part of the entry may have stayed. `reversed`: its job was undone, or the file has the entry again.
    """

    day: date
    cause: str
    title: str = ""
    id: str | None = None
    layer: str | None = None
    lines: int = 0
    job: int | None = None
    shortened: bool = False
    reversed: bool = False


class UndoneJob(NamedTuple):
    """A job that was undone on a day, and the job that did it."""

    day: date
    job: int | None
    kind: str
    by: int
    summary: str


class CommittedChange(NamedTuple):
    """One commit that wrote the memory file. `follows_last`: no commit between it and the one before is unknown."""

    day: date
    kind: str
    job: int | None
    before: Document
    after: Document
    follows_last: bool = True


class RoleHistory(NamedTuple):
    """Everything known of a role's memory file. The sightings and commits are in order of time.

    `present` is the file as it is now; None if it does not exist or cannot be read.
    """

    role: str
    store: str
    limit: int | None
    backups: tuple[Sighting, ...] = ()
    commits: tuple[CommittedChange, ...] = ()
    archived: tuple[ArchivedEntry, ...] = ()
    undone: tuple[UndoneJob, ...] = ()
    undone_jobs: frozenset[int] = frozenset()
    present: Document | None = None


class Period(NamedTuple):
    """Consecutive days. `lines` are those at the last known moment of the period; None if all of it is unknown.

    `came` is None where the journal does not reach.
    """

    first: date
    last: date
    lines: LayerLines | None
    came: int | None
    left: int
    undone: int


class RolePicture(NamedTuple):
    """The picture of a role. `days` is the length of a period."""

    role: str
    store: str
    limit: int | None
    days: int
    periods: tuple[Period, ...]
    came: tuple[Movement, ...]
    left: tuple[Movement, ...]
    undone: tuple[UndoneJob, ...]
    came_since: date | None

    @property
    def highest(self) -> int:
        """The highest number of lines in the picture, the limit included."""
        known = (period.lines.total for period in self.periods if period.lines is not None)
        return max(*known, self.limit or 0, 1) if self.periods else max(self.limit or 0, 1)


def measure_lines(document: Document) -> LayerLines:
    """Count the lines of a memory file by layer."""
    counts: Counter[str] = Counter({"other": count_lines(document.preamble)})
    for block in document.blocks:
        layer = block.entry.layer if block.entry else None
        counts["other" if layer is None else layer.value] += count_lines(block.text)
    return LayerLines(*(counts[name] for name in LayerLines._fields))


def see_document(day: date, document: Document) -> Sighting:
    """Return the sighting of a content that the file had on a day."""
    return Sighting(day, measure_lines(document), sha256(document.render()).hexdigest())


def draw_role(history: RoleHistory, today: date, max_periods: int) -> RolePicture | None:
    """Return the picture of a role with at most `max_periods` periods; None if nothing is known of it."""
    sightings = [*history.backups, *_commit_sightings(history.commits)]
    # A backup has only a day. It was made before the commits of that day.
    sightings.sort(key=lambda sighting: sighting.day)
    if history.present is not None:
        sightings.append(see_document(today, history.present))
    came, left = _movements(history, today)
    came_since = history.commits[0].day if history.commits else None
    days = [*(s.day for s in sightings), *(m.day for m in (*came, *left)), *(u.day for u in history.undone)]
    if not days:
        return None
    length, periods = _lay_out(min(*days, today), today, max_periods)
    filled = _fill(periods, sightings, came, left, history.undone, came_since)
    return RolePicture(
        history.role, history.store, history.limit, length, tuple(filled), came, left, history.undone, came_since
    )


def count_causes(movements: Iterable[Movement]) -> list[tuple[str, int]]:
    """Return the causes of movements that were not reversed, each with its number, the most frequent first."""
    counts = Counter(movement.cause for movement in movements if not movement.reversed)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def recently_left(picture: RolePicture, today: date, days: int) -> list[Movement]:
    """Return the entries that left within the last days and are not back, the newest first."""
    since = today - timedelta(days=days)
    return [movement for movement in reversed(picture.left) if movement.day > since and not movement.reversed]


def _commit_sightings(commits: Iterable[CommittedChange]) -> Iterator[Sighting]:
    for commit in commits:
        yield see_document(commit.day, commit.before)
        yield see_document(commit.day, commit.after)


def _movements(history: RoleHistory, today: date) -> tuple[tuple[Movement, ...], tuple[Movement, ...]]:
    """Return what came and what left, each in order of days."""
    archived = [entry for entry in history.archived if entry.rule != Rule.RESTORED]
    came: list[Movement] = []
    left = [_archived_movement(entry, history.undone_jobs) for entry in archived]
    recorded = {(entry.job, entry.id) for entry in archived}
    last: Document | None = None
    for commit in history.commits:
        if last is not None:
            between = Movement(commit.day, OTHER_PROGRAMS if commit.follows_last else NOT_KNOWN)
            came += _entries_missing_in(last, commit.before, history.role, between)
            left += _entries_missing_in(commit.before, last, history.role, between)
        # An undo is no movement of its own: it takes back the movements of another job.
        is_reversed = commit.kind == _UNDO_KIND or commit.job in history.undone_jobs
        own = Movement(commit.day, commit.kind, job=commit.job, reversed=is_reversed)
        came += _entries_missing_in(commit.before, commit.after, history.role, own)
        gone = _entries_missing_in(commit.after, commit.before, history.role, own)
        left += (movement for movement in gone if (commit.job, movement.id) not in recorded)
        last = commit.after
    present = set[str | None]()
    if history.present is not None:
        present = set(entry_ids(history.role, history.present)) - {None}
        if last is not None:
            since = Movement(today, OTHER_PROGRAMS)
            came += _entries_missing_in(last, history.present, history.role, since)
            left += _entries_missing_in(history.present, last, history.role, since)
    left = [
        movement._replace(reversed=movement.reversed or (not movement.shortened and movement.id in present))
        for movement in left
    ]
    return tuple(sorted(came, key=_day_of)), tuple(sorted(left, key=_day_of))


def _day_of(movement: Movement) -> date:
    return movement.day


def _archived_movement(entry: ArchivedEntry, undone_jobs: Collection[int]) -> Movement:
    block = parse_block(entry.text)
    return Movement(
        day=entry.day,
        cause=entry.rule,
        title=block.entry.title if block.entry else first_line(entry.text),
        id=entry.id,
        layer=entry.layer.value if entry.layer else None,
        lines=count_lines(entry.text),
        job=entry.job,
        shortened=entry.rule in SHORTENING_RULES,
        reversed=entry.job in undone_jobs,
    )


def _entries_missing_in(document: Document, other: Document, role: str, base: Movement) -> Iterator[Movement]:
    """Yield the entries of `other` that `document` does not have, each as `base` with its own values."""
    known = set(entry_ids(role, document))
    for identity, block in zip(entry_ids(role, other), other.blocks, strict=True):
        if identity is None or identity in known or block.entry is None:
            continue
        layer = block.entry.layer.value if block.entry.layer else None
        # The archive has no secret, a version in the journal may have one.
        title = redact(block.entry.title).text
        yield base._replace(title=title, id=identity, layer=layer, lines=count_lines(block.text))


def first_line(text: str) -> str:
    """Return the first line of a text without the marks of a heading."""
    return text.strip().partition("\n")[0].lstrip("# ").strip()


def _lay_out(first: date, today: date, max_periods: int) -> tuple[int, list[tuple[date, date]]]:
    """Return the shortest usable length of a period, and the periods from the first day to today."""
    span = (today - first).days + 1
    smallest = -(-span // max_periods)
    length = next((days for days in _PERIOD_DAYS if days >= smallest), smallest)
    count = -(-span // length)
    starts = [today - timedelta(days=length * number - 1) for number in range(count, 0, -1)]
    return length, [(start, start + timedelta(days=length - 1)) for start in starts]


def _fill(
    spans: Iterable[tuple[date, date]],
    sightings: Sequence[Sighting],
    came: Iterable[Movement],
    left: Iterable[Movement],
    undone: Iterable[UndoneJob],
    came_since: date | None,
) -> Iterator[Period]:
    came_on = Counter(movement.day for movement in came if not movement.reversed)
    left_on = Counter(movement.day for movement in left if not movement.reversed)
    undone_on = Counter(job.day for job in undone)
    days = [sighting.day for sighting in sightings]
    for first, last in spans:
        known_came = came_since is not None and last >= came_since
        yield Period(
            first,
            last,
            _last_known(sightings, days, first, last),
            _count(came_on, first, last) if known_came else None,
            _count(left_on, first, last),
            _count(undone_on, first, last),
        )


def _last_known(sightings: Sequence[Sighting], days: Sequence[date], first: date, last: date) -> LayerLines | None:
    """Return the lines on the last known day from `first` to `last`; None if there is none."""
    next_one = bisect_right(days, last)
    if next_one == 0:
        return None
    before = sightings[next_one - 1]
    unchanged = next_one < len(sightings) and sightings[next_one].digest == before.digest
    return before.lines if unchanged or before.day >= first else None


def _count(numbers: Counter[date], first: date, last: date) -> int:
    return sum(number for day, number in numbers.items() if first <= day <= last)

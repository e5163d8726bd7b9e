"""Claims about lines of real histories, and what became of each: git's own diffs, followed commit by commit.

The truth knows nothing of how echod compares. It looks at every step of the main line, while echod sees only both ends.

1. A line stays the same line through the hunks of `git diff` (histogram, white space ignored), and through renames.
   Blank lines and brackets do not divide a hunk: git pairs them although nothing else around them is the same.
2. In a hunk that replaces lines, the most similar new line is the edited one: half of the characters of both are equal,
   or a longer new line has three quarters of the old one's words.
3. A claim without a similar line is judged by what its hunk adds and removes besides edited lines. The hunk rewrites
   the claim in place if it adds half to three times as many lines as it removes, and is not much longer than the claim.
   It removes the claim if it adds nothing. Everything else is *doubtful*.
4. Lines that were removed and added elsewhere in the same commit were moved: within the file, or out of a file that
   was removed. Lines that went into another file, while their file is still there, are gone. Lines of a removed file
   that the commit added to several others, such as imports, are *doubtful*.
5. At the end: no line left is *gone*. All lines left, alike and together, are *valid* or *moved*. Else *changed*.
6. A text that its file had exactly once, as whole lines, and has again exactly once, is *valid* or *moved*.
7. Removed lines that are back, or of which another copy or a similar line is left in their file, are *doubtful*. So
   are those of a removed file if git finds a quarter of it in a new one (it follows a file from a half on).
8. Edited lines of which less than a quarter is alike, by letters, and that are not between the same lines, are
   *doubtful*.
9. Fewer than three lines that are in another file, to which git does not follow theirs, are *doubtful* without a line
   that was beside them: an import, or a call, is in many files.

White space, quotes and commas before a closing bracket count for nothing, as `docs/evidence.md` says.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from tests.bench.histories import DOUBTFUL, Claim

_MAX_FILE_BYTES = 300_000
_CODE = re.compile(
    r"\.(py|pyi|js|jsx|mjs|cjs|ts|tsx|go|rs|c|h|cc|cpp|hpp|java|rb|sh|php|md|rst|txt|toml|ya?ml|cfg|html|css)$"
)
_DIFF = (
    "-U3", "-w", "-M", "-l0", "--histogram", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/",
    "--dst-prefix=b/",
)  # fmt: skip
_SUCCESSOR = "-M25%"
_MIN_REMOVED, _MIN_STEM = 3, 4
_LENGTHS = (1, 1, 1, 2, 3, 4, 6, 9, 14, 22)
_MIN_LETTERS, _MIN_TELLING = 12, 3
_CLOSERS = frozenset(")]}")
_SAME_LINE, _RECOGNISED, _ALIKE = 0.6, 0.7, 0.65
_MIN_RECOGNISED, _MIN_ALIKE = 0.25, 10
_MIN_MOVED, _MIN_BLOCK = 20, 3
_REWRITTEN = 0.5
_CONTAINED, _MIN_WORDS = 0.75, 2
_WORD = re.compile(r"\w+")
_MAX_PAIRS = 4_000
_IN_SEVERAL = "its lines went into several files"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class Hunk(NamedTuple):
    """Lines of a file that a commit replaced: where they were and where the new ones are (from 1), and both texts."""

    old: int
    new: int
    removed: list[str]
    added: list[str]


class FileDiff(NamedTuple):
    """What a commit did to a file. Without `before` it is new, without `after` it was removed."""

    before: str
    after: str
    hunks: list[Hunk]


@dataclass(slots=True)
class FollowedClaim:
    """A claim while it is followed: the path and the numbers of its lines that are left."""

    path: str
    first: int
    last: int
    texts: list[str]
    now: str = ""
    left: list[int] = field(default_factory=list)
    doubt: str = ""
    end: str = "removed"

    def __post_init__(self) -> None:
        self.now = self.path
        self.left = [self.first + number for number, text in enumerate(self.texts) if _is_telling(text)]


class Span(NamedTuple):
    """A part of a main line: the last commit of a day, and a later one."""

    base: str
    head: str
    day: date


class GitHistory:
    """Asks git about a repository."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._added: dict[Span, frozenset[str]] = {}
        self._followed: dict[Span, frozenset[str]] = {}
        self._renamed: dict[Span, dict[str, str]] = {}
        self._lines: dict[tuple[str, str], list[str] | None] = {}

    def ask(self, *words: str) -> str:
        """Return what git prints."""
        command = ["git", "-c", "core.quotepath=off", "-C", str(self.directory), *words]
        return subprocess.run(command, check=True, capture_output=True).stdout.decode("utf-8", "replace")

    def main_line(self, head: str = "HEAD") -> list[tuple[str, int]]:
        """Return the commits of the main line with their times, newest first."""
        listed = self.ask("log", "--first-parent", "--format=%H %ct", head)
        return [(name, int(at)) for name, at in (line.split() for line in listed.splitlines())]

    def files(self, commit: str) -> list[str]:
        """Return the files of a commit that an entry might cite."""
        found = []
        for line in self.ask("ls-tree", "-r", "-l", commit).splitlines():
            about, _, path = line.partition("\t")
            mode, _, _, size = about.split()
            if mode.startswith("100") and 0 < int(size) < _MAX_FILE_BYTES and _CODE.search(path):
                found.append(path)
        return found

    def lines(self, commit: str, path: str) -> list[str] | None:
        """Return the lines of a file; None if the commit has no such file."""
        if (commit, path) not in self._lines:
            try:
                self._lines[commit, path] = self.ask("show", f"{commit}:{path}").replace("\r\n", "\n").split("\n")
            except subprocess.CalledProcessError:
                self._lines[commit, path] = None
        return self._lines[commit, path]

    def has_new_file_like(self, span: Span, path: str) -> bool:
        """Return whether a span added a file whose name or folder has the name of a file, or a part of it."""
        if span not in self._added:
            options = ("--no-renames", "--name-only", "--diff-filter=A")
            paths = self.ask("diff", *options, span.base, span.head).splitlines()
            self._added[span] = frozenset(_stem(part) for added in paths for part in added.split("/")[-2:])
        stem = _stem(path)
        words = set(re.findall(r"[^\W_]+", stem))
        return any(
            part == stem
            or (words and words == set(re.findall(r"[^\W_]+", part)))
            or (min(len(part), len(stem)) >= _MIN_STEM and (part in stem or stem in part))
            for part in self._added[span]
        )

    def has_successor(self, span: Span, path: str) -> bool:
        """Return whether a new file has a quarter of a file that a span removed, as git counts."""
        if span not in self._followed:
            options = (_SUCCESSOR, "-l0", "--name-status", "--diff-filter=R")
            listed = self.ask("diff", *options, span.base, span.head).splitlines()
            self._followed[span] = frozenset(line.split("\t")[1] for line in listed)
        return path in self._followed[span]

    def is_renamed(self, span: Span, path: str, now: str) -> bool:
        """Return whether git follows a file through a span to a name."""
        if span not in self._renamed:
            listed = self.ask(
                "diff", "-M", "-l0", "--name-status", "--diff-filter=R", span.base, span.head
            ).splitlines()
            self._renamed[span] = {old: new for _, old, new in (line.split("\t") for line in listed)}
        return self._renamed[span].get(path) == now

    def has_line(self, commit: str, text: str) -> bool:
        """Return whether any file of a commit has a line with this text."""
        words = ["git", "-C", str(self.directory), "grep", "-qF", "-e", text.strip(), commit]
        return subprocess.run(words, check=False, capture_output=True).returncode == 0

    def steps(self, base: str, head: str) -> Iterator[list[FileDiff]]:
        """Yield what each commit of the main line did, in order."""
        words = ("log", "--first-parent", "-m", "--reverse", "-p", *_DIFF, "--format=%x01", f"{base}..{head}")
        for step in self.ask(*words).split("\x01\n")[1:]:
            yield _read_diffs(step)

    def diff(self, span: Span) -> list[FileDiff]:
        """Return what a span did as a whole."""
        return _read_diffs(self.ask("diff", *_DIFF, span.base, span.head))


def _read_diffs(text: str) -> list[FileDiff]:
    return [found for part in re.split(r"(?m)^diff --git ", text)[1:] if (found := _read_diff(part))]


def _read_diff(text: str) -> FileDiff | None:
    header, *rest = text.split("\n@@ ")
    names = dict(re.findall(r"(?m)^(rename from|rename to|---|\+\+\+) (?:[ab]/)?(.*?)\t?$", header))
    if "rename to" in names:
        before, after = names["rename from"], names["rename to"]
    elif "---" in names:
        before, after = ("" if names[side] == "/dev/null" else names[side] for side in ("---", "+++"))
    else:
        same = re.match(r"a/(.*) b/\1\n", header)
        if same is None:
            return None
        before = "" if "\nnew file" in header else same[1]
        after = "" if "\ndeleted file" in header else same[1]
    hunks = [hunk for part in rest for hunk in _read_hunks(*f"@@ {part}".split("\n"))]
    return FileDiff(before, after, hunks)


def _read_hunks(place: str, *lines: str) -> Iterator[Hunk]:
    """Yield the replaced parts of a hunk. Lines that say nothing do not divide a part."""
    match = _HUNK.match(place)
    if match is None:
        return
    # git names the line before a place where nothing is.
    old, new = int(match[1]) + (match[2] == "0"), int(match[3]) + (match[4] == "0")
    part = Hunk(old, new, [], [])
    kept: list[str] = []
    for line in [*lines, " end of the hunk"]:
        sign, text = line[:1], line[1:].rstrip("\r")
        if sign == " " and not _is_telling(text):
            kept.append(text)
        elif sign == " ":
            if part.removed or part.added:
                yield part
            old, new = old + len(part.removed) + len(kept) + 1, new + len(part.added) + len(kept) + 1
            part, kept = Hunk(old, new, [], []), []
        elif sign in {"-", "+"}:
            if part.removed or part.added:
                part.removed.extend(kept)
                part.added.extend(kept)
            else:
                part = Hunk(old + len(kept), new + len(kept), [], [])
                old, new = part.old, part.new
            kept = []
            (part.removed if sign == "-" else part.added).append(text)


def find_spans(history: GitHistory, days: Sequence[int], ends: int) -> list[Span]:
    """Return spans of about so many days, which end at places that are spread over the main line."""
    commits = history.main_line()
    found: dict[tuple[str, str], Span] = {}
    for part in range(ends):
        head = part * len(commits) // ends
        for length in days:
            span = _span(commits, head, length)
            if span is not None:
                found[span.base, span.head] = span
    return list(found.values())


def _span(commits: list[tuple[str, int]], head: int, days: int) -> Span | None:
    """Return the span that ends with a commit and begins after the last commit of a day; None without one."""
    name, at = commits[head]
    day = datetime.fromtimestamp(at).astimezone().date() - timedelta(days=days)
    midnight = datetime.combine(day + timedelta(days=1), datetime.min.time()).astimezone().timestamp()
    base = next((other for other, moment in commits[head:] if moment <= midnight), None)
    return None if base is None or base == name else Span(base, name, day)


def make_claims(history: GitHistory, span: Span, count: int, seed: int) -> list[Claim]:
    """Return claims about the base of a span and the truth at its end.

    A quarter is about any lines, a half about files that the span changed, and a quarter about lines that are in no
    file at its end, which are rare otherwise.
    """
    chance = random.Random(f"{seed} {span.base}")
    files = history.files(span.base)
    steps = list(history.steps(span.base, span.head))
    touched = {diff.before for step in steps for diff in step}
    changed = [(file, 0, 0) for file in files if file in touched]
    removed = [
        (diff.before, hunk.old, hunk.old + len(hunk.removed) - 1)
        for diff in history.diff(span)
        for hunk in diff.hunks
        if diff.before in touched.intersection(files) and len(hunk.removed) >= _MIN_REMOVED
        if not any(map(_is_telling, hunk.added))
    ]
    pools = [pool for pool in (changed, removed, changed, [(file, 0, 0) for file in files]) if pool]
    contents: dict[str, list[str]] = {}
    followed: dict[tuple[str, int, int], FollowedClaim] = {}
    for number in range(count * 3):
        if len(followed) >= count or not pools:
            break
        path, low, high = chance.choice(pools[number % len(pools)])
        lines = contents.setdefault(path, history.lines(span.base, path) or [])
        first = chance.randint(low or 1, min(high or len(lines), len(lines)))
        last = min(high or len(lines), first + chance.choice(_LENGTHS) - 1)
        texts = lines[first - 1 : last]
        while texts and not texts[-1].strip():
            texts, last = texts[:-1], last - 1
        if texts and texts[0].strip() and _letters("".join(texts)) >= _MIN_LETTERS:
            followed[path, first, last] = FollowedClaim(path, first, last, texts)
    claims = list(followed.values())
    for step in steps:
        _follow(claims, step)
    return [_judge(claim, history, span, contents[claim.path]) for claim in claims]


def _follow(claims: Sequence[FollowedClaim], step: list[FileDiff]) -> None:
    by_path = {diff.before: diff for diff in step if diff.before}
    for claim in claims:
        diff = by_path.get(claim.now)
        if diff is not None and claim.left:
            _follow_one(claim, diff, step)
        elif diff is not None and diff.after:
            claim.now = diff.after  # where removed lines might be back


def _follow_one(claim: FollowedClaim, diff: FileDiff, step: list[FileDiff]) -> None:
    texts: list[str] = []
    left: list[int] = []
    for line in claim.left:
        hunk = next((h for h in diff.hunks if h.old <= line < h.old + len(h.removed)), None)
        if hunk is None:
            shift = sum(len(h.added) - len(h.removed) for h in diff.hunks if h.old + len(h.removed) <= line)
            left.append(line + shift)
            continue
        texts.append(hunk.removed[line - hunk.old])
        left += _successors(hunk, line)
    if not left and texts:
        moved = _find_moved(texts, diff, step)
        if moved:
            claim.now, claim.left = next(iter(moved.items()))
            if len(moved) > 1:
                claim.doubt = _IN_SEVERAL
            return
        reasons = [
            _reason(claim, hunk)
            for hunk in diff.hunks
            if any(hunk.old <= line < hunk.old + len(hunk.removed) for line in claim.left)
        ]
        rewritten = [hunk for hunk, reason in reasons if reason == "rewritten"]
        left = [h.new + n for h in rewritten for n, text in enumerate(h.added) if _is_telling(text)]
        if not left and any(reason == "unclear" for _, reason in reasons):
            claim.doubt = "other lines are there, perhaps not instead"
    claim.left = sorted(set(left))
    if diff.after:
        claim.now = diff.after
    elif not claim.left:
        claim.end = "file removed"


def _reason(claim: FollowedClaim, hunk: Hunk) -> tuple[Hunk, str]:
    removed, added = _unpaired(hunk)
    if not added:
        return hunk, "removed"
    if _REWRITTEN * removed <= added <= 3 * removed + 4 and removed <= 3 * len(claim.texts) + 4:
        return hunk, "rewritten"
    return hunk, "unclear"


def _unpaired(hunk: Hunk) -> tuple[int, int]:
    """Return how many lines a hunk removes, and adds, that are no edited ones."""
    removed, added = (sum(map(_is_telling, texts)) for texts in (hunk.removed, hunk.added))
    if len(hunk.removed) * len(hunk.added) > _MAX_PAIRS:
        return removed, added
    edited: set[int] = set()
    left = 0
    for number, text in enumerate(hunk.removed):
        if _is_telling(text):
            found = _successors(hunk, hunk.old + number)
            edited.update(found)
            left += not found
    return left, sum(_is_telling(text) for n, text in enumerate(hunk.added, start=hunk.new) if n not in edited)


def _successors(hunk: Hunk, line: int) -> list[int]:
    """Return the lines of a hunk that a removed line became."""
    if not hunk.added:
        return []
    old, new = _normal("\n".join(hunk.removed)), _normal("\n".join(hunk.added))
    begin = len(_normal("\n".join(hunk.removed[: line - hunk.old])))
    if old == new:  # other line breaks only
        end = begin + len(_normal(hunk.removed[line - hunk.old]))
        found, at = [], 0
        for number, text in enumerate(hunk.added):
            size = len(_normal(text))
            if size and at < end and at + size > begin:
                found.append(hunk.new + number)
            at += size
        return found
    text = hunk.removed[line - hunk.old].strip()
    expected = (line - hunk.old) / len(hunk.removed)
    best, best_at = _SAME_LINE, None
    for number, other in enumerate(hunk.added):
        ratio = _ratio(text, other) - 0.05 * abs(expected - number / len(hunk.added))
        if ratio >= best:
            best, best_at = ratio, number
    return [] if best_at is None else [hunk.new + best_at]


def _find_moved(texts: list[str], diff: FileDiff, step: list[FileDiff]) -> dict[str, list[int]]:
    """Return where a commit added lines that it removed: in their file, or elsewhere if it removed the file.

    A renamed file goes before others, and they count only if it has not the lines.
    """
    wanted = [_normal(text) for text in texts]
    if sum(map(len, wanted)) < _MIN_MOVED:
        return {}
    here = _find_added(wanted, diff) if diff.after else []
    if here:
        return {diff.after: here}
    if diff.after == diff.before:
        return {}
    found = {other.after: _find_added(wanted, other) for other in step if other.after}
    return {path: lines for path, lines in found.items() if lines}


def _find_added(wanted: Sequence[str], diff: FileDiff) -> list[int]:
    """Return the lines at which a commit added a text to a file; none if it did not."""
    for hunk in diff.hunks:
        added = [(number, _normal(text)) for number, text in enumerate(hunk.added) if _is_telling(text)]
        for at in range(len(added) - len(wanted) + 1):
            if [text for _, text in added[at : at + len(wanted)]] == wanted:
                return [hunk.new + number for number, _ in added[at : at + len(wanted)]]
    return []


def _judge(claim: FollowedClaim, history: GitHistory, span: Span, before: list[str]) -> Claim:
    cite = f"{claim.path}:{claim.first}-{claim.last}" if claim.last > claim.first else f"{claim.path}:{claim.first}"
    after = history.lines(span.head, claim.now)
    if claim.doubt == _IN_SEVERAL:
        return Claim(cite, DOUBTFUL, claim.doubt)
    text = Code(before).text(claim.first, claim.last)
    is_followed = claim.now == claim.path or history.is_renamed(span, claim.path, claim.now)
    if after is not None and len(text) >= _MIN_MOVED:
        there, then = Code(after).find(text), Code(before).find(text)
        if len(there) == 1 and len(then) == 1:
            places = range(there[0], there[0] + len(claim.texts))
            if not is_followed and not _is_recognisable_elsewhere(claim, before, after, places):
                return Claim(cite, DOUBTFUL, "in another file, without the lines around it")
            same = (claim.now, there[0]) == (claim.path, claim.first)
            return Claim(cite, "valid" if same else "moved", "its text is there")
    if claim.doubt:
        return Claim(cite, DOUBTFUL, claim.doubt)
    if not claim.left:
        return _judge_gone(claim, cite, after, history, span)
    if after is None:
        return Claim(cite, DOUBTFUL, "followed into a file that is not there")
    if not is_followed and not _is_recognisable_elsewhere(claim, before, after, claim.left):
        return Claim(cite, DOUBTFUL, "in another file, without the lines around it")
    first = claim.left[0] - _lines_before_telling(claim.texts, after, claim.left[0])
    if Code(after).begins(first, text, Code(before).after(claim.last)):
        same = (claim.now, first) == (claim.path, claim.first)
        return Claim(cite, "valid" if same else "moved", "kept" if claim.now == claim.path else "kept, file renamed")
    if not _is_recognisable(claim, before, after):
        return Claim(cite, DOUBTFUL, "other lines are there, unlike the cited ones")
    return Claim(cite, "changed", "edited")


def _is_recognisable(claim: FollowedClaim, before: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether a reader sees that lines are the cited ones: a quarter is alike, or they are at the same place."""
    present = [after[line - 1] for line in claim.left]
    telling = [text for text in claim.texts if _is_telling(text)]
    alike = [text for text in telling if any(_ratio(text, other) >= _RECOGNISED for other in present)]
    if alike and sum(map(_letters, alike)) >= _MIN_RECOGNISED * sum(map(_letters, telling)):
        return True
    return _around(before, claim.first, claim.last) == _around(after, claim.left[0], claim.left[-1])


def _is_recognisable_elsewhere(
    claim: FollowedClaim, before: Sequence[str], after: Sequence[str], left: Sequence[int]
) -> bool:
    """Return whether lines in another file are many, or still beside the telling line before or after them."""
    then, now = _around(before, claim.first, claim.last), _around(after, left[0], left[-1])
    return len(left) >= _MIN_BLOCK or any(one and one == other for one, other in zip(then, now, strict=True))


def _around(lines: Sequence[str], first: int, last: int) -> tuple[str, str]:
    return _nearest(lines, first - 1, -1), _nearest(lines, last + 1, 1)


def _nearest(lines: Sequence[str], line: int, step: int) -> str:
    """Return the nearest telling line, without white space."""
    while 0 < line <= len(lines) and not _is_telling(lines[line - 1]):
        line += step
    return _normal(lines[line - 1]) if 0 < line <= len(lines) else ""


@lru_cache(maxsize=100_000)
def _ratio(one: str, other: str) -> float:
    """Return how much of two lines is the same, or how many words of the first the second has. 0 for little."""
    one, other = one.strip(), other.strip()
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    whole = matcher.ratio() if min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= _SAME_LINE else 0.0
    if whole >= _RECOGNISED or len(one) >= len(other):
        return whole
    words, others = _WORD.findall(one), _WORD.findall(other)
    if len(words) < _MIN_WORDS or len(set(words).intersection(others)) < _CONTAINED * len(set(words)):
        return whole
    blocks = SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks()
    contained = sum(block.size for block in blocks) / len(words)
    return max(whole, contained) if contained >= _CONTAINED else whole


def _lines_before_telling(texts: Sequence[str], lines: Sequence[str], line: int) -> int:
    """Return how many lines above the first telling one the claim begins, if they are as they were."""
    number = next(n for n, text in enumerate(texts) if _is_telling(text))
    above = [_normal(text) for text in texts[:number]]
    return number if above == [_normal(text) for text in lines[max(0, line - 1 - number) : line - 1]] else 0


def _judge_gone(claim: FollowedClaim, cite: str, after: list[str] | None, history: GitHistory, span: Span) -> Claim:
    if claim.end == "file removed":
        if history.lines(span.head, claim.path) is not None:
            return Claim(cite, DOUBTFUL, "the file came back")
        if history.has_successor(span, claim.path):
            return Claim(cite, DOUBTFUL, "its file was removed, but a new one is like it")
        if history.has_new_file_like(span, claim.path):
            return Claim(cite, DOUBTFUL, "its file was removed, but another of a similar name was written")
        if any(history.has_line(span.head, text) for text in claim.texts if len(_normal(text)) >= _MIN_MOVED):
            return Claim(cite, DOUBTFUL, "its file was removed, but one of its lines is in another")
        return Claim(cite, "gone", "file removed")
    if after is None:
        return Claim(cite, "gone", "removed, then the file")
    if Code(after).find("".join(map(_normal, claim.texts))):
        return Claim(cite, DOUBTFUL, "removed, but a copy is there")
    telling = [text for text in claim.texts if len(_normal(text)) >= _MIN_ALIKE]
    if any(_ratio(text, line) >= _ALIKE for text in telling for line in after):
        return Claim(cite, DOUBTFUL, "removed, but one of its lines is there, perhaps edited")
    return Claim(cite, "gone", "removed")


class Code:
    """The lines of a file as one text without white space and without commas before closing brackets."""

    def __init__(self, lines: Sequence[str]) -> None:
        parts = [_normal(line) for line in lines]
        for number, part in enumerate(parts):
            if part.endswith(","):
                following = next((other for other in parts[number + 1 :] if other), "")
                parts[number] = part[:-1] if following[:1] in _CLOSERS else part
        self._parts = parts
        self._whole = "".join(parts)
        self._begins = list(accumulate(map(len, parts), initial=0))

    def text(self, first: int, last: int) -> str:
        """Return lines, numbered from 1."""
        return "".join(self._parts[first - 1 : last])

    def after(self, line: int) -> str:
        """Return a little of what follows a line."""
        return "".join(self._parts[line : line + 4])[:8]

    def begins(self, line: int, text: str, follower: str) -> bool:
        """Return whether a text begins with a line, and ends with a line or before what followed it."""
        end = self._begins[line - 1] + len(text)
        if not self._whole.startswith(text, self._begins[line - 1]):
            return False
        return end in self._begins or self._whole.startswith(follower, end)

    def find(self, text: str) -> list[int]:
        """Return the lines at which a text is, as whole lines."""
        numbers = {at: number for number, at in reversed(list(enumerate(self._begins, start=1))) if number}
        numbers |= {
            at: number for number, (at, part) in enumerate(zip(self._begins, self._parts, strict=False), 1) if part
        }
        found = []
        at = self._whole.find(text) if text else -1
        while at >= 0:
            if at in numbers and at + len(text) in numbers:
                found.append(numbers[at])
            at = self._whole.find(text, at + 1)
        return found


def _letters(text: str) -> int:
    return len(re.findall(r"\w", text))


def _is_telling(text: str) -> bool:
    """Return whether a line has more than brackets: without that it cannot be told from others."""
    return _letters(text) >= _MIN_TELLING


def _stem(path: str) -> str:
    return path.rpartition("/")[2].lstrip(".").partition(".")[0].strip("_-").lower()


def _normal(text: str) -> str:
    joined = "".join(text.split()).replace("'", '"')
    return re.sub(r",(?=[)\]}])", "", joined) if "," in joined else joined

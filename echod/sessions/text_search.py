"""Search the lines of archives for a text, and keep the curated MEMORY.md of a directory short.

Moving is one change of the journal, so it survives a kill and can be undone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

from echod.errors import os_reason
from echod.files import open_regular
from echod.memory.conversation.distill import FULL_SHARE, MemoryAnalysis, analyse_memory, distill_memory
from echod.memory.conversation.model import clean_text
from echod.sessions.journal import RootJournal, RootRecord, Staged
from echod.sessions.roots import CURATED, EPHEMERAL, INDEX, SessionError, SessionRoot
from echod.store.journal.ledger import Notice

_MAX_LINE_CHARACTERS = 400


class FoundLine(NamedTuple):
    """A line of an archive. `is_match` is false for a line of context."""

    number: int
    text: str
    is_match: bool


class FoundArchive(NamedTuple):
    """The lines of one archive that contain a text, with those around them. `matches` counts only the former."""

    archive: int
    lines: tuple[FoundLine, ...]

    @property
    def matches(self) -> int:
        """The number of matching lines."""
        return sum(line.is_match for line in self.lines)


def search_lines(root: SessionRoot, text: str, context: int = 0) -> Iterator[FoundArchive]:
    """Yield the archives with a line that contains a text in any case, the newest first.

    Raises:
        SessionError: an archive cannot be read.
    """
    wanted = text.casefold().strip()
    if not wanted:
        return
    for number, path in reversed(root.archives().items()):
        try:
            with open_regular(path, follow_symlinks=False) as file:
                found = tuple(_matching_lines((line.decode("utf-8", "replace") for line in file), wanted, context))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise SessionError(f"{path} cannot be read: {os_reason(error)}.") from error
        if found:
            yield FoundArchive(number, found)


def _matching_lines(lines: Iterator[str], wanted: str, context: int) -> Iterator[FoundLine]:
    before: deque[FoundLine] = deque(maxlen=context)
    after = 0
    in_front_matter = False
    for number, raw in enumerate(lines, start=1):
        line = raw.rstrip("\r\n")
        if line.rstrip() == "---" and (number == 1 or in_front_matter):
            in_front_matter = not in_front_matter
            continue
        if in_front_matter:
            continue
        if wanted in line.casefold():
            yield from before
            before.clear()
            yield FoundLine(number, _shown(line, wanted), is_match=True)
            after = context
        elif after:
            yield FoundLine(number, _shown(line, ""), is_match=False)
            after -= 1
        elif context:
            before.append(FoundLine(number, _shown(line, ""), is_match=False))


def _shown(line: str, wanted: str) -> str:
    """Return a line, and of a very long one the part around the match."""
    text = clean_text(line)
    if len(text) <= _MAX_LINE_CHARACTERS:
        return text
    start = max(0, text.casefold().find(wanted) - _MAX_LINE_CHARACTERS // 4) if wanted else 0
    end = start + _MAX_LINE_CHARACTERS
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


MEMORY_FULL = "memory-full"
"""The kind of the review item about a MEMORY.md that is full."""


class DistilledSections(NamedTuple):
    """The sections that were moved, or would be, and the files that they go to."""

    sections: tuple[str, ...]
    files: tuple[str, ...]
    lines_before: int
    lines_after: int


def analyse(root: SessionRoot, today: date) -> MemoryAnalysis:
    """Return the analysis of MEMORY.md.

    Raises:
        SessionError: it does not exist or cannot be read.
    """
    if not root.curated.exists():
        raise SessionError(f"{root.curated} does not exist. Create it with: echod sessions init")
    return analyse_memory(root.read_text(CURATED), today)


def plan_distillation(root: SessionRoot) -> tuple[DistilledSections, dict[str, str]]:
    """Return what would be moved, and the new texts of all changed files by name.

    Raises:
        SessionError: a file cannot be read.
    """
    text = root.read_text(CURATED)
    planned = distill_memory(text, _TopicFiles(root))
    texts = {CURATED: planned.memory, **planned.topics} if planned.moved else {}
    moved = DistilledSections(
        planned.moved, tuple(planned.topics), len(text.splitlines()), len(planned.memory.splitlines())
    )
    return moved, texts


def apply_distillation(journal: RootJournal, root: SessionRoot, job: int, now: float) -> DistilledSections:
    """Move the heavy sections of MEMORY.md to topic files. The caller holds the directory.

    Raises:
        SessionError: a file cannot be read.
    """
    moved, texts = plan_distillation(root)
    if not texts:
        return moved
    # The topic files come first: a kill in between leaves a section in both places, never in none.
    names = [*(name for name in texts if name != CURATED), CURATED]
    contents: dict[str, Staged | None] = {name: journal.stage_bytes(texts[name].encode()) for name in names}
    count = len(moved.sections)
    summary = f"moved {count} section{'' if count == 1 else 's'} of {CURATED} to topic files"
    journal.commit(RootRecord(0, job, "distill", now, summary, ()), contents)
    return moved


def full_memory_notice(root: SessionRoot, today: date) -> Notice | None:
    """Return the review item about a MEMORY.md that the host no longer loads as a whole; None if it does.

    It contains the proposals to shorten it. A file that cannot be read is reported by the status.
    """
    try:
        modified = root.curated.stat().st_mtime
        analysis = analyse_memory(root.read_text(CURATED), today)
    except (OSError, SessionError):
        return None
    if analysis.share < FULL_SHARE:
        return None
    percent = int(analysis.share * 100)
    text = (
        f"{root.curated} has {analysis.lines} lines, {percent} % of what the host loads. The rest is cut off. "
        "Move sections to topic files with: echod sessions distill --apply"
    )
    return Notice(modified, MEMORY_FULL, "", text, analysis.suggestions)


class _TopicFiles(dict[str, str]):
    """The present topic files, read when they are asked for."""

    def __init__(self, root: SessionRoot) -> None:
        super().__init__()
        self._root = root

    def get(self, name: str, default: str | None = "") -> str:  # type: ignore[override]
        text = self._root.read_text(name) if Path(name).name == name else ""
        return text or default or ""


def topic_files(root: SessionRoot) -> tuple[Path, ...]:
    """Return the topic files beside MEMORY.md."""
    own = {CURATED, EPHEMERAL, INDEX}
    return tuple(sorted(path for path in root.memory.glob("*.md") if path.name not in own and path.is_file()))

"""Search the lines of archives for a text, without an index. Front matter is not searched."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from echod.errors import os_reason
from echod.files import open_regular
from echod.memory.conversation.model import clean_text
from echod.sessions.roots import SessionError, SessionRoot

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

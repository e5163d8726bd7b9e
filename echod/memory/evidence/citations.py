"""Read a citation: a file, perhaps with lines. `echod.evidence.entries` finds the citations of an entry."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_CITED_LINES: Final = 400
"""Lines of a citation that are compared. A longer citation is about the beginning of its lines."""

_RANGE: Final = r"L?(\d{1,7})(?:[-\u2013]L?(\d{1,7}))?"
_LINES: Final = re.compile(rf"(?::|#){_RANGE}((?:,\s*{_RANGE})*)(?::\d+)?$")
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


class CitedPlace(NamedTuple):
    """A citation as written, its path, and its lines from 1 (None for a citation of the whole file)."""

    text: str
    path: str
    first: int | None = None
    last: int | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def parse_citation(text: str) -> CitedPlace | None:
    """Return what a citation names; None for an address, or a text without a path.

    Of several ranges (`a.py:3,9-12`) all lines from the first to the last count if they are near each other, else those
    of the first range. A column (`a.py:3:14`) is ignored.
    """
    bare = text.strip().strip("`").strip()
    if not bare or "\0" in bare or _ADDRESS.match(bare):
        return None
    match = _LINES.search(bare)
    if match is None:
        return CitedPlace(text, _clean(bare))
    path = _clean(bare[: match.start()])
    first = int(match[1])
    last = int(match[2] or first)
    for number in re.findall(r"\d+", match[3]):
        if first <= int(number) <= last + MAX_CITED_LINES // 4:
            last = max(last, int(number))
    if not path or first < 1 or last < first:
        return CitedPlace(text, path or bare)
    return CitedPlace(text, path, first, min(last, first + MAX_CITED_LINES - 1))


def _clean(path: str) -> str:
    path = path.replace("\\", "/")
    while path.startswith("./"):
        path = path[2:]
    return path

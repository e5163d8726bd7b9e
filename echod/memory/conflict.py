"""Whether a file holds the markers that a version control system leaves behind when it could not merge."""

from __future__ import annotations

import re
from bisect import bisect_right

from echod.memory.markdown import Structure

_START_MARKS, _END_MARKS = "<" * 7, ">" * 7
_START = re.compile(rf"^{_START_MARKS}(?=[ \r\n]|\Z)", re.MULTILINE)
_END = re.compile(rf"^{_END_MARKS}(?=[ \r\n]|\Z)", re.MULTILINE)


def conflict_line(text: str, structure: Structure) -> int | None:
    """The number (from 1) of the line where a merge conflict begins, or None.

    A start marker with an end marker below it counts, unless both stand in fenced code: there they are an example. One
    of them alone in fenced code is not, because a conflict can begin or end in the middle of a fence.
    """
    if _START_MARKS not in text or _END_MARKS not in text:
        return None
    starts = [marker.start() for marker in _START.finditer(text)]
    ends = [marker.start() for marker in _END.finditer(text)]
    if not starts or not ends:
        return None
    fence_starts = [begin for begin, _ in structure.fences]

    def fenced(offset: int) -> bool:
        fence = bisect_right(fence_starts, offset) - 1
        return fence >= 0 and offset < structure.fences[fence][1]

    last_end = ends[-1]
    last_open_end = max((offset for offset in ends if not fenced(offset)), default=-1)
    for start in starts:
        if start < (last_open_end if fenced(start) else last_end):
            return text.count("\n", 0, start) + 1
    return None

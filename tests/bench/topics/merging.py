"""How long the merge of two branches of a memory takes, and the whole merge driver as git calls it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median

from echod.memory.branches import MergedBranches, merge_branches
from tests.bench.figures import Curve, Figures, below, row
from tests.bench.reference import measure_alternating, timed
from tests.bench.workspace import Workspace

_RUNS, _ENTRIES = 15, 500
_SIZES = (250, 1_000, 4_000)


def _entry(number: int, text: str) -> str:
    return (
        f"### [2026-01-{number % 28 + 1:02}] Pattern: entry {number}\n- **layer**: inscribed\n"
        f"- **source**: `rune:review {number}`\n- **confidence**: 0.8\n- Learning {number} has {text}.\n\n"
    )


def _branches(entries: int) -> tuple[bytes, bytes, bytes]:
    """Return a base of so many entries, and two branches that edit, remove and add some of their own."""
    base = [_entry(number, "a sentence") for number in range(entries)]
    one = [_entry(n, "an edit") if n % 10 == 0 else text for n, text in enumerate(base)]
    other = [_entry(n, "another edit") if n % 10 == 5 else text for n, text in enumerate(base) if n % 50 != 3]
    one += [_entry(entries + n, "one") for n in range(entries // 25)]
    other += [_entry(2 * entries + n, "other") for n in range(entries // 25)]
    first, second, third = ("".join(["# Memory\n\n", *texts]).encode() for texts in (base, one, other))
    return first, second, third


def measure(space: Workspace) -> Figures:
    """Merge in this process, and by the driver as a process."""
    del space
    base, one, other = _branches(_ENTRIES)
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name) / file for file in ("base", "ours", "theirs")]
        command = [sys.executable, "-m", "echod", "merge-driver", *map(str, files), "7", "role/MEMORY.md"]

        def drive() -> None:
            for file, data in zip(files, (base, one, other), strict=True):
                file.write_bytes(data)
            subprocess.run(command, check=True)

        inside, whole = measure_alternating(_merge_of(_ENTRIES), _RUNS), measure_alternating(drive, _RUNS)
    size = f"{_ENTRIES} entries, 100 edited, 10 removed, 40 added"
    return Figures(
        (
            row("merge two branches", inside.milliseconds, "ms", bar=below(100), loops=inside.loops, note=size),
            row("the merge driver as a process", whole.milliseconds, "ms", bar=below(100), loops=whole.loops),
        ),
        (Curve("merge two branches", "entries", tuple((size, _seconds(size)) for size in _SIZES)),),
    )


def _merge_of(entries: int) -> Callable[[], None]:
    """Return a merge of contents that were not seen before, since a process of git sees each only once."""
    base, one, other = _branches(entries)
    numbers = count()

    def merge() -> None:
        mark = b"<!-- %d -->\n" % next(numbers)
        merged = merge_branches(mark + base, mark + one, mark + other)
        if not isinstance(merged, MergedBranches) or merged.conflicts:
            raise AssertionError("the branches that are measured are not merged")

    return merge


def _seconds(entries: int) -> float:
    merge = _merge_of(entries)
    return median(timed(merge) for _ in range(3))

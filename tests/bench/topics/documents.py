"""How long reading and writing a memory file takes, at the size of the largest one seen in the field."""

from __future__ import annotations

from itertools import count

from echod.memory.document import parse
from echod.memory.identity import entry_ids
from echod.memory.model import Document
from tests.bench.figures import Figures, below, row
from tests.bench.made import large_file
from tests.bench.reference import measure_alternating
from tests.bench.workspace import Workspace

_RUNS = 31


def measure(space: Workspace) -> Figures:
    """Parse, render, and the ids of all entries."""
    del space
    data = large_file()
    document = parse(data)
    if not isinstance(document, Document) or document.render() != data or not all(b.entry for b in document.blocks):
        raise AssertionError("the file that is measured is not read as entries")
    lines = data.count(b"\n")
    size = f"{len(data) / 1000:.0f} kB, {lines:,} lines, {len(document.blocks)} entries"

    numbers = count()

    def another() -> Document:
        """A content that was not seen before, since what is in use is not taken apart again."""
        again = parse(data + b"<!-- %d -->\n" % next(numbers))
        assert isinstance(again, Document)
        return again

    both, read = measure_alternating(lambda: another().render(), _RUNS), measure_alternating(another, _RUNS)
    ids = measure_alternating(lambda: entry_ids("reviewer", document), _RUNS)
    return Figures(
        (
            row("parse and render", both.milliseconds, "ms", bar=below(30), loops=both.loops, note=size),
            row("parse", read.milliseconds, "ms", loops=read.loops),
            row("the ids of its entries", ids.milliseconds, "ms", loops=ids.loops),
        )
    )

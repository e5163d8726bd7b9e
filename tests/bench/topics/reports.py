"""How long reading a month of reviews takes, and how much of it is left in the memory."""

from __future__ import annotations

import hashlib
import time
from datetime import date

from echod.memory.document import new_memory_file, parse
from echod.memory.model import Document
from echod.memory.reports.history import ReportHistory
from echod.memory.reports.intake import SourceReport, take_reports
from echod.memory.reports.learnings import find_learnings, with_learnings
from echod.memory.reports.reader import read_report
from tests.bench.figures import Figures, below, row
from tests.bench.workspace import Workspace
from tests.memory.made_reports import month_of_reviews

_TODAY = date(2026, 11, 28)


def measure(space: Workspace) -> Figures:
    """Read 200 reviews, find the recurring flaws, and write the entries."""
    del space
    texts = month_of_reviews()
    started = time.perf_counter()
    reports = [read_report(text) for text in texts]
    read = time.perf_counter()
    sources = [
        SourceReport(
            f"tmp/reviews/{number}/TOME.md", hashlib.sha256(text.encode()).hexdigest(), report, _TODAY, "reviewer"
        )
        for number, (text, report) in enumerate(zip(texts, reports, strict=True))
    ]
    history = take_reports(ReportHistory(), sources, _TODAY).history
    taken = time.perf_counter()
    document = parse(new_memory_file("reviewer"))
    assert isinstance(document, Document)
    learned = with_learnings("reviewer", document, find_learnings(history, _TODAY)["reviewer"], _TODAY)
    ended = time.perf_counter()
    data = getattr(learned, "data", None)
    if data is None:
        raise AssertionError("nothing was learned")
    note = f"{len(texts)} reviews, {len(history.findings):,} findings"
    return Figures(
        (
            row("read the reports", [(read - started) * 1000], "ms", note=note),
            row("redact them and add them to the history", [(taken - read) * 1000], "ms"),
            row("find the recurring flaws and write the entries", [(ended - taken) * 1000], "ms"),
            row("new entries", [float(data.count(b"\n### "))], "", bar=below(31)),
            row("lines of the memory file", [float(data.count(b"\n"))], "", bar=below(151)),
        )
    )

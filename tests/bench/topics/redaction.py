"""How much of what is secret is found, how much of what is found is secret, and how long looking takes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from random import Random

from echod.memory.redact import find_secrets
from tests.bench.corpus import corpus
from tests.bench.figures import Cells, Figures, Row, Table, at_least, below, none, row
from tests.bench.reference import measure_alternating
from tests.bench.secrets.counts import Counts, table, total_counts
from tests.bench.secrets.field import count_field
from tests.bench.secrets.labelled import count_labelled
from tests.bench.secrets.lines import count_made, identifier, number, password, path, slug
from tests.bench.workspace import Workspace

_BAR = 0.95
_RUNS = 15

_WORST = (
    "key=",
    "password:",
    "ops_" + "eyJ",
    "password: aB3x9Kq2 ",
    "Authorization: Bearer a1",
    "password: str[",
    "key:'",
)
"""The units that take longest when repeated on one line, of all that tests/memory/test_redact_bombs.py tries."""

_SIZES = (50_000, 100_000, 200_000, 400_000)


def measure(space: Workspace) -> Figures:
    """Precision and recall on made lines and, where the corpus is, on labelled texts and real memory files."""
    del space
    made, wrong, innocent = count_made()
    rows = [*_quality("made lines", total_counts(made)), *_connections("made lines", made)]
    rows.append(Row("made lines: innocent lines redacted", wrong, "", note=f"of {innocent:,}"))
    field, changed, complete = count_field()
    rows += [*_quality("lines of the field", field)]
    rows.append(Row("lines of the field: innocent lines redacted", changed, "", note=f"of {complete}"))
    tables = [table("Secrets: made lines", made), table("Secrets: lines of the field", {"all": field})]
    if (root := corpus()) is not None:
        labelled, notes = count_labelled(root)
        rows += [*_quality("labelled texts", total_counts(labelled)), *_connections("labelled texts", labelled)]
        tables.append(table("Secrets: labelled texts, each different one once", labelled, notes))
        found = sum(len(find_secrets(file.read_text())) for file in sorted((root / "real-echoes").rglob("*.md")))
        rows.append(Row("real memory files: places redacted", found, "", bar=none()))
    rows += _speed()
    tables.append(_bombs())
    return Figures(tuple(rows), tables=tuple(tables))


def _quality(where: str, counts: Counts) -> tuple[Row, Row]:
    note = f"{counts.found:,} found, {counts.missed} missed, {counts.wrong} wrong"
    return (
        Row(f"{where}: precision", counts.precision, "", bar=at_least(_BAR), note=note),
        Row(f"{where}: recall", counts.recall, "", bar=at_least(_BAR)),
    )


def _connections(where: str, kinds: Mapping[str, Counts]) -> tuple[Row, Row]:
    counts = kinds["connection-string"]
    return (
        Row(f"{where}: precision, connection strings", counts.precision, "", bar=at_least(_BAR)),
        Row(f"{where}: recall, connection strings", counts.recall, "", bar=at_least(_BAR)),
    )


def _speed() -> list[Row]:
    random = Random(7)
    quiet = [
        f"- the {slug(random)} reads {path(random)} and the token budget of {identifier(random)} is kept, "
        f"see {number(random)}"[:110]
        for _ in range(1_000)
    ]
    secret = [
        line if at % 10 > 2 else f"- seen in {path(random)}: password: {password(random)} and more words after it"
        for at, line in enumerate(quiet)
    ]
    rows = []
    for name, lines in (("without a secret", quiet), ("with a secret in three of ten", secret)):
        text = "\n".join(lines)
        took = measure_alternating(lambda text=text: find_secrets(text), _RUNS)  # type: ignore[misc]
        rows.append(row(f"1,000 lines {name}", took.milliseconds, "ms", bar=below(30), loops=took.loops))
    return rows


def _bombs() -> Table:
    rows: list[Cells] = []
    for unit in _WORST:
        taken: list[float] = []
        for size in _SIZES:
            text = unit * (size // len(unit))
            begun = time.process_time()
            find_secrets(text)
            taken.append(round((time.process_time() - begun) * 1000))
        rows.append((unit, *taken))
    header = ("repeated on one line", *(f"{size // 1000} kB" for size in _SIZES))
    return Table("Texts made to take long (ms)", header, tuple(rows))

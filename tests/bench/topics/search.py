"""How well memory is found, by set and kind of query against simpler searchers, and what a search costs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from echod.search.documents import DocumentSource
from echod.search.finder import DocumentFinder, SearchRequest
from echod.search.sources import MemorySource
from echod.search.words import STOP_WORDS
from echod.store.layout import find_stores
from tests.bench.corpus import corpus
from tests.bench.figures import Curve, Figures, Row, Table, at_least, below, row
from tests.bench.household import make_bench_home
from tests.bench.reference import rounds
from tests.bench.workspace import Workspace

_SETS = {"real-shared": ("real memory", 0.88), "multi": ("seven languages", 0.97)}
_ENTRIES = 20_000
_SIZES = (2_000, 6_000)
"""Entries of the smaller stores."""
_QUERIES = 100
_SECONDS = 12.0
_SYLLABLES = [
    "ba",
    "co",
    "di",
    "fe",
    "gu",
    "ha",
    "je",
    "ki",
    "lo",
    "mu",
    "na",
    "po",
    "qui",
    "ra",
    "se",
    "ti",
    "vo",
    "wa",
    "xe",
    "zu",
    "tra",
    "pli",
    "ster",
    "gron",
]


class Question(NamedTuple):
    """A judged query: the grades of documents by id, 2 for an answer and 1 for a related one."""

    query: str
    kind: str
    gold: Mapping[str, int]


Searcher = Callable[[str], Sequence[str]]


def measure(space: Workspace) -> Figures:
    """Quality where the corpus is; latency, size and start-up on made entries."""
    rows: list[Row] = []
    tables: list[Table] = []
    root = corpus()
    for name, (title, bar) in _SETS.items() if root is not None and (root / "search/data").is_dir() else ():
        assert root is not None
        found, table = _quality(space, root / "search/data" / name, title, bar)
        rows += found
        tables.append(table)
    costs, largest = _costs(space)
    rows += costs
    rows += _processes(space)
    return Figures(tuple(rows), _curves(space, largest), tuple(tables))


# Quality


def read_judged(data: Path) -> tuple[Sequence[Mapping[str, Any]], Sequence[Question]]:
    """Return the documents of a judged set of the corpus, and its questions."""
    documents = [json.loads(line) for line in (data / "groups/all/docs.jsonl").read_text().splitlines()]
    questions = [
        Question(found["query"], found["kind"], found["gold"])
        for found in map(json.loads, (data / "queries.dev.jsonl").read_text().splitlines())
    ]
    return documents, questions


def recall_at_5(question: Question, found: Sequence[str]) -> float:
    """Return the share of the answers to a question that are among the first five results."""
    answers = _answers(question)
    return len(answers & set(found[:5])) / min(len(answers), 5)


def _answers(question: Question) -> set[str]:
    return {identity for identity, grade in question.gold.items() if grade == max(question.gold.values())}


def _quality(space: Workspace, data: Path, title: str, bar: float) -> tuple[list[Row], Table]:
    group = data / "groups/all"
    documents, questions = read_judged(data)
    searchers: dict[str, Searcher] = {
        "words, as grep counts them": grep_searcher(documents),
        "plain FTS5 (porter)": fts_searcher(documents, r"\w+", priors=False),
        "as upstream (ASCII words, layer and age count)": fts_searcher(documents, r"[A-Za-z0-9_]+", priors=True),
        "echod": _echod(space.disk / f"{title}.db", group / "project", documents),
    }
    kinds = sorted({question.kind for question in questions})
    table_rows = []
    rows = []
    for name, search in searchers.items():
        by_kind: defaultdict[str, list[float]] = defaultdict(list)
        ranks: list[float] = []
        for question in questions:
            got = list(dict.fromkeys(search(question.query)))[:10]
            answers = _answers(question)
            by_kind[question.kind].append(recall_at_5(question, got))
            ranks.append(next((1 / (at + 1) for at, found in enumerate(got) if found in answers), 0.0))
        recall = statistics.mean(value for values in by_kind.values() for value in values)
        table_rows.append((
            name, f"{recall:.3f}", f"{statistics.mean(ranks):.3f}",
            *(f"{statistics.mean(by_kind[kind]):.2f}" for kind in kinds),
        ))  # fmt: skip
        if name == "echod":
            rows = [
                Row(f"{title}: recall@5", recall, "", bar=at_least(bar), note=f"{len(questions)} queries, seen half")
            ]
    header = ("searcher", "R@5", "MRR", *kinds)
    return rows, Table(f"{title}: {len(documents)} entries, {len(questions)} queries", header, tuple(table_rows))


def _echod(index: Path, project: Path, documents: Sequence[Mapping[str, Any]]) -> Searcher:
    (store,) = find_stores(project)
    by_place = {(document["role"], document["line"]): document["id"] for document in documents}
    finder = DocumentFinder(index)

    def search(query: str) -> Sequence[str]:
        found = finder.search([MemorySource(store)], SearchRequest(query)).results
        return [by_place[document.role, document.line] for document in found]

    return search


def _query_words(query: str, pattern: str) -> list[str]:
    words = list(dict.fromkeys(re.findall(pattern, query.lower())))
    return [word for word in words if word not in STOP_WORDS] or words


def grep_searcher(documents: Sequence[Mapping[str, Any]]) -> Searcher:
    """Return a searcher that ranks documents by how many of the words they contain."""
    texts = [
        (document["id"], f"{document['title']}\n{document['body']}".lower(), document["date"]) for document in documents
    ]

    def search(query: str) -> Sequence[str]:
        words = [word for word in _query_words(query, r"\w+") if len(word) > 1]
        counted = [(sum(word in text for word in words), day, identity) for identity, text, day in texts]
        return [identity for count, _, identity in sorted(counted, reverse=True) if count]

    return search


_LAYERS = {"etched": 1.0, "notes": 0.8, "inscribed": 0.6, "observations": 0.4, "traced": 0.3}
_HALF_LIVES = {"notes": 180, "inscribed": 90, "observations": 45, "traced": 30}


def fts_searcher(documents: Sequence[Mapping[str, Any]], pattern: str, *, priors: bool) -> Searcher:
    """Return a searcher by SQLite's FTS5; with `priors`, layer and age count as well."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE entry USING fts5(title, body, tokenize='porter unicode61')")
    connection.executemany(
        "INSERT INTO entry (rowid, title, body) VALUES (?, ?, ?)",
        [(number, document["title"], document["body"]) for number, document in enumerate(documents)],
    )
    newest = max(_day_number(document["date"]) for document in documents)

    def search(query: str) -> Sequence[str]:
        words = _query_words(query, pattern)
        if not words:
            return []
        expression = " OR ".join(f'"{word}"' for word in words)
        select = "SELECT rowid, -bm25(entry) FROM entry WHERE entry MATCH ? ORDER BY 2 DESC LIMIT 33"
        found = connection.execute(select, (expression,)).fetchall()
        if priors and found:
            low, high = found[-1][1], found[0][1]
            found.sort(key=lambda item: -_prior(documents[item[0]], (item[1] - low) / (high - low or 1), newest))
        return [documents[number]["id"] for number, _ in found]

    return search


def _day_number(day: str) -> int:
    match = re.match(r"(\d{4})-(\d\d)-(\d\d)", day)
    return int(match[1]) * 365 + int(match[2]) * 30 + int(match[3]) if match else 0


def _prior(document: Mapping[str, Any], relevance: float, newest: int) -> float:
    layer = str(document["layer"]).lower()
    age = newest - _day_number(document["date"])
    recency = max(0.1, 0.5 ** (age / _HALF_LIVES[layer])) if layer in _HALF_LIVES else 1.0
    return 0.3 * relevance + 0.3 * _LAYERS.get(layer, 0.3) + 0.2 * recency


# Costs


def made_words(random: Random) -> tuple[Sequence[str], Sequence[float]]:
    """Return words and how frequent they are, as in a language."""
    words = ["".join(random.choice(_SYLLABLES) for _ in range(random.randint(2, 4))) for _ in range(8_000)]
    return words, [1 / (rank + 10) for rank in range(len(words))]


def _write_store(root: Path, entries: int) -> Path:
    """Write a store of ten roles."""
    random = Random(11)
    words, weights = made_words(random)
    for role in range(10):
        parts = [f"# Role {role}\n"]
        for number in range(entries // 10):
            drawn = random.choices(words, weights, k=70)
            lines = "\n".join(f"- {' '.join(drawn[at : at + 13])}." for at in range(5, 70, 13))
            parts.append(
                f"\n## Inscribed \u2014 {' '.join(drawn[:5])} (2026-03-01)\n\n**Source**: `rune:r{number}`\n\n{lines}\n"
            )
        directory = root / f".rune/echoes/role{role}"
        directory.mkdir(parents=True)
        (directory / "MEMORY.md").write_text("".join(parts))
    return root


class _Cost(NamedTuple):
    """What a store of so many entries costs: seconds of its first index, and of a warm search."""

    entries: int
    indexing: float
    search: float


def _costs(space: Workspace) -> tuple[list[Row], _Cost]:
    project = _write_store(space.directory("large"), _ENTRIES)
    (store,) = find_stores(project)
    sources: list[DocumentSource] = [MemorySource(store)]
    index = space.disk / "large.db"
    finder = DocumentFinder(index)
    first = _seconds(lambda: finder.refresh(sources))
    time.sleep(0.1)
    finder.refresh(sources)
    unchanged = _seconds(lambda: finder.refresh(sources))
    file = project / ".rune/echoes/role3/MEMORY.md"
    file.write_text(file.read_text() + "\n## Inscribed \u2014 One more (2026-03-02)\n\nand its text\n")
    changed = _seconds(lambda: finder.refresh(sources))
    random = Random(5)
    lines = file.read_text().split("\n- ")
    earlier, queries = (
        [" ".join(random.choice(lines).split()[:6]) for _ in range(_QUERIES)] for _ in ("to be warm", "to measure")
    )
    for query in earlier:
        finder.search(sources, SearchRequest(query))
    took = sorted(_seconds(partial(finder.search, sources, SearchRequest(query))) for query in queries)
    size = sum(part.stat().st_size for part in space.disk.glob("large.db*"))
    finder.close()
    rows = [
        row("search of 20,000 entries, warm", [seconds * 1000 for seconds in took], "ms"),
        Row("search of 20,000 entries, warm, p95", took[int(0.95 * len(took))] * 1000, "ms", bar=below(5)),
        Row("index of 20,000 entries, first", first, "s"),
        Row("index of 20,000 entries, unchanged", unchanged * 1000, "ms"),
        Row("index of 20,000 entries, one entry added", changed * 1000, "ms"),
        Row("index of 20,000 entries, size", size / 2**20, "MiB"),
    ]
    return rows, _Cost(_ENTRIES, first, statistics.median(took))


def _curves(space: Workspace, largest: _Cost) -> tuple[Curve, Curve]:
    costs = []
    for entries in _SIZES:
        (store,) = find_stores(_write_store(space.directory(f"store{entries}"), entries))
        sources = [MemorySource(store)]
        finder = DocumentFinder(space.disk / f"{entries}.db")
        first = _seconds(partial(finder.refresh, sources))
        lines = (store.root / "role3/MEMORY.md").read_text().split("\n- ")
        random = Random(5)
        requests = [SearchRequest(" ".join(random.choice(lines).split()[:6])) for _ in range(_QUERIES)]
        took = [_seconds(partial(finder.search, sources, request)) for request in requests]
        costs.append(_Cost(entries, first, statistics.median(took[_QUERIES // 2 :])))
        finder.close()
    costs.append(largest)
    return (
        Curve("index a store", "entries", tuple((cost.entries, cost.indexing) for cost in costs)),
        Curve("a warm search", "entries", tuple((cost.entries, cost.search) for cost in costs)),
    )


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


# Processes


def _processes(space: Workspace) -> list[Row]:
    home = make_bench_home(space.below("home"), 1)
    project = _write_store(space.directory("small"), 150)
    environ = {name: value for name, value in home.environ.items() if not name.startswith("PYTHON")}
    environ |= {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
    citing = _write_citing_store(space.directory("citing"))
    program = str(Path(sys.executable).with_name("echod"))
    return [
        _ratio("echod search, whole process", (program, "search", "bacodi", "fegu", str(project)), environ),
        _ratio("the same, ten results that cite files", (program, "search", "walnut", str(citing)), environ),
        *_mcp_start(environ, project),
    ]


def _write_citing_store(root: Path) -> Path:
    """Write a store of ten entries that cite files of a repository, and commit everything."""
    (root / "src").mkdir(parents=True)
    parts = ["# Reviewer\n"]
    for number in range(10):
        lines = [f"def walnut_{number}_{line}(): return {line}" for line in range(20)]
        (root / f"src/m{number}.py").write_text("\n".join(lines) + "\n")
        parts.append(
            f"\n## Inscribed \u2014 Walnut {number} (2026-03-01)\n\n**Source**: `rune:r{number}`\n\n"
            f"- the walnut is cold, see `src/m{number}.py:3-6`\n"
        )
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    memory.parent.mkdir(parents=True)
    memory.write_text("".join(parts))
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)
    return root


def _ratio(what: str, command: Sequence[str], environ: Mapping[str, str]) -> Row:
    """Return how long a process takes, in starts of the bare interpreter."""
    bare: list[float] = []
    searches: list[float] = []
    for number in rounds(31, _SECONDS):
        reference, search = (
            _seconds(partial(subprocess.run, words, env=environ, capture_output=True, check=True))
            for words in ((sys.executable, "-c", "pass"), command)
        )
        if number:
            bare.append(reference)
            searches.append(search)
    ratios = [search / reference for search, reference in zip(searches, bare, strict=True)]
    note = (
        f"{statistics.median(searches) * 1000:.0f} ms against {statistics.median(bare) * 1000:.1f} ms of python -c pass"
    )
    return row(what, ratios, "x", bar=below(6), note=note)


def _mcp_start(environ: Mapping[str, str], project: Path) -> list[Row]:
    import psutil
    from mcp import Client, StdioServerParameters  # the extra may be missing

    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "echod", "mcp"], env=dict(environ), cwd=str(project)
    )

    async def start() -> tuple[float, float]:
        begin = time.perf_counter()
        async with Client(parameters) as client:
            await client.call_tool("echo_search", {"query": "bacodi"})
            took = time.perf_counter() - begin
            (server,) = [child for child in psutil.Process().children() if "mcp" in child.cmdline()]
            return took, server.memory_info().rss / 2**20

    runs = [asyncio.run(start()) for _ in range(3)]
    return [
        row("echod mcp, start to the first answer", [took for took, _ in runs], "s"),
        row("echod mcp, memory", [rss for _, rss in runs], "MiB"),
    ]

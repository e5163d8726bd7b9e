"""`make bench-peers`: echod and other programs at the same work, in one table.

Nothing here is a proof or a bar of echod's: the lane compares, and ends with 0 unless it could not measure echod.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.bench import machine
from tests.bench.corpus import corpus
from tests.bench.figures import Cells, Figures, Row, Table, format_number, row
from tests.bench.peers import work
from tests.bench.peers.install import InstallError, install_node, install_python, run, scratch_directory
from tests.bench.peers.programs import BasicMemory, Documents, Echod, MemoryServer, PeerError, Program
from tests.bench.reference import timed
from tests.bench.report import report
from tests.bench.topics.search import Question, Searcher, fts_searcher, grep_searcher, read_judged, recall_at_5
from tests.bench.wire import BenchRun, TopicResult, save
from tests.bench.workspace import Workspace, workspace

_QUERIES = 40
_SETS = {"real-shared": "recall@5, real memory", "multi": "recall@5, seven languages"}
_NO = "no"
_BASELINES = ("grep -rn", "plain FTS5")


class _Found(NamedTuple):
    """The rows of all programs, the cells of the table by measurement and program, and what failed."""

    rows: list[Row]
    cells: defaultdict[str, dict[str, str]]
    notes: list[str]


Maker = Callable[[Workspace], Program]


def main() -> int:
    """Install, measure, print."""
    asked = _parser().parse_args()
    began = time.monotonic()
    found = _Found([], defaultdict(dict), [])
    described = machine.describe_machine()
    versions = {"echod": described["revision"]}
    makers: dict[str, Maker] = {"echod": Echod, **dict(_peers(found.notes, versions))}
    chosen = {name: maker for name, maker in makers.items() if not asked.only or name in asked.only}
    documents = work.made_documents(asked.entries)
    questions = work.made_questions(documents, min(_QUERIES, asked.entries // 2))
    sets = {title: read_judged(path) for title, path in _corpus_sets()}
    columns = [*([] if asked.only else _BASELINES), *chosen]
    title = f"Programs for the memory of agents: {asked.entries:,} entries"

    def finished() -> BenchRun:
        figures = Figures(tuple(found.rows), tables=(_table(title, columns, found, versions),))
        return BenchRun(described, (TopicResult("peers", "Peers", time.monotonic() - began, figures),))

    if not asked.only:
        _baselines(found, documents, questions, sets)
    for name, maker in chosen.items():
        for what, measure in _works(documents, questions, sets, asked.idle).items():
            if asked.work and what not in asked.work:
                continue
            _say(f"[{time.monotonic() - began:4.0f} s]  {name}: {what}")
            try:
                with workspace() as space:
                    measure(found, name, partial(maker, space))
            except (PeerError, OSError, subprocess.SubprocessError, pytest.fail.Exception) as error:
                found.notes.append(f"{name}, {what}: failed: {str(error)[:200]}")
            if asked.json:
                save(finished(), asked.json)
    print(report(finished()))
    return 0 if any("echod" in cells for cells in found.cells.values()) or asked.only else 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description="Compare echod with its peers.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the run as JSON")
    parser.add_argument("--idle", type=float, default=60.0, metavar="SECONDS", help="how long each program rests")
    parser.add_argument("--entries", type=int, default=2_000, metavar="N", help="how many entries are searched")
    parser.add_argument("--only", nargs="*", default=[], metavar="PROGRAM", help="only these programs")
    parser.add_argument("--work", nargs="*", default=[], metavar="WORK", help="only this work, as named on the way")
    return parser


# Programs


def _peers(notes: list[str], versions: dict[str, str]) -> Iterator[tuple[str, Maker]]:
    """Yield the programs that can be installed and used here, and note why others are not."""
    scratch_directory().mkdir(parents=True, exist_ok=True)
    try:
        server = install_node("@modelcontextprotocol/server-memory", "mcp-server-memory")
        versions["memory server"] = server.version
        yield "memory server", partial(MemoryServer, server)
    except InstallError as error:
        notes.append(f"memory server is not measured: {error}")
    try:
        basic = install_python("basic-memory", "basic-memory")
        versions["basic-memory"] = basic.version
        yield "basic-memory", partial(BasicMemory, basic)
    except InstallError as error:
        notes.append(f"basic-memory is not measured: {error}")
    notes.append(_why_not_mem0())
    notes.append(_why_not_claude_mem())


def _why_not_mem0() -> str:
    """Try to open a memory as its documentation does; a model is needed to add to it and to search it."""
    try:
        installed = install_python("mem0ai", "python")
    except InstallError as error:
        return f"mem0ai is not measured: {error}"
    with workspace() as space:
        try:
            run([installed.program, "-c", "from mem0 import Memory; Memory()"], space.disk)
        except InstallError as error:
            return f"mem0ai {installed.version} is not measured: it needs a model to add and to search ({error})."
    return f"mem0ai {installed.version} is not measured: it needs a model to add and to search."


def _why_not_claude_mem() -> str:
    """Try its own start; entries are made by a model during a session, so there is no other way to add any."""
    try:
        installed = install_node("claude-mem", "claude-mem")
    except InstallError as error:
        return f"claude-mem is not measured: {error}"
    with workspace() as space:
        try:
            said = run([installed.program, "start"], space.disk)
        except InstallError as error:
            said = str(error)
    first = " ".join(said.split())[:120]
    return f"claude-mem {installed.version} is not measured: its worker does not start from the package ({first}), and a model writes its entries."


# Work

Measure = Callable[[_Found, str, Callable[[], Program]], None]
JudgedSet = tuple[Documents, Sequence[Question]]


def _works(
    documents: Documents, questions: Sequence[Question], sets: Mapping[str, JudgedSet], idle: float
) -> Mapping[str, Measure]:
    judged = {
        title: partial(_judge, title=title, documents=found, questions=asked) for title, (found, asked) in sets.items()
    }
    return {
        "search": partial(_search, documents=documents, questions=questions),
        **judged,
        "start and hook": partial(_start, documents=documents[:200]),
        "rest": partial(_rest, documents=documents, seconds=idle),
        "writers": _writers,
    }


def _search(
    found: _Found, name: str, make: Callable[[], Program], *, documents: Documents, questions: Sequence[Question]
) -> None:
    got = work.search(make(), documents, questions)
    _put(found, name, "from files to searchable, s", [got.index_seconds], "s")
    _put(found, name, "recall@5, made entries", [got.recall], "")
    _put(found, name, "a warm search through MCP, ms", got.warm, "ms")
    _put(found, name, "a search as a process, x python -c pass", got.process, "x")


def _judge(
    found: _Found,
    name: str,
    make: Callable[[], Program],
    *,
    title: str,
    documents: Documents,
    questions: Sequence[Question],
) -> None:
    _put(found, name, title, [work.search(make(), documents, questions).recall], "")


def _start(found: _Found, name: str, make: Callable[[], Program], *, documents: Documents) -> None:
    program = make()
    program.write(documents)
    program.index()
    words = documents[0]["title"]
    _put(found, name, "MCP, start to first answer, x python -c pass", work.first_answer(program, words), "x")
    _put(found, name, "hook at session start, x python -c pass", work.hook(program), "x")


def _rest(found: _Found, name: str, make: Callable[[], Program], *, documents: Documents, seconds: float) -> None:
    program = make()
    program.write(documents)
    program.index()
    server, service = work.rest(program, documents[0]["title"], seconds)
    for what, one in (("MCP server", server), ("service", service)):
        _put(found, name, f"{what} at rest, MiB", None if one is None else [one.memory], "MiB")
        _put(found, name, f"{what} at rest, % of a processor", None if one is None else [one.processor], "%")


def _writers(found: _Found, name: str, make: Callable[[], Program]) -> None:
    got = work.write_at_once(make())
    _put(found, name, "6 writers, 3 killed: acknowledged", [got.acknowledged], "")
    _put(found, name, "6 writers, 3 killed: acknowledged and missing", [got.missing], "")
    _put(found, name, "6 writers, 3 killed: twice", [got.twice], "")
    _put(found, name, "6 writers, 3 killed: torn", [got.torn], "")
    _put(found, name, "6 writers, 3 killed: refused with an error", [got.refused], "")
    found.cells["6 writers, 3 killed: answers afterwards"][name] = "yes" if got.answers else _NO
    _put(found, name, "6 writers, 3 killed: all done after, s", [got.seconds], "s")


def _put(found: _Found, name: str, what: str, values: Sequence[float] | None, unit: str) -> None:
    """Add a figure, or that the program does not do this."""
    if values is None:
        found.cells[what][name] = _NO
        return
    found.rows.append(row(f"{name}: {what}", values, unit))
    found.cells[what][name] = format_number(statistics.median(values))


# Baselines


def _corpus_sets() -> Iterator[tuple[str, Path]]:
    root = corpus()
    for name, title in _SETS.items() if root is not None else ():
        assert root is not None
        if (path := root / "search/data" / name).is_dir():
            yield title, path


def _baselines(
    found: _Found, documents: Documents, questions: Sequence[Question], sets: Mapping[str, JudgedSet]
) -> None:
    judged = {"recall@5, made entries": (documents, questions), **sets}
    makers: Mapping[str, Callable[[Documents], Searcher]] = {
        "grep -rn": grep_searcher,
        "plain FTS5": lambda some: fts_searcher(some, r"\w+", priors=False),
    }
    for name, make in makers.items():
        for what, (some, asked) in judged.items():
            searcher = make(some)
            recalls = [recall_at_5(question, list(searcher(question.query))) for question in asked]
            _put(found, name, what, [statistics.mean(recalls)], "")
    _put(found, "plain FTS5", "from files to searchable, s", [timed(lambda: makers["plain FTS5"](documents))], "s")
    searcher = makers["plain FTS5"](documents)
    took = [timed(partial(searcher, question.query)) * 1000 for question in questions]
    _put(found, "plain FTS5", "a warm search through MCP, ms", took, "ms")
    found.notes.append("plain FTS5 is a table in this process: its warm search passes through no server.")
    with workspace() as space:
        for document in documents:
            (space.disk / f"{document['id']}.md").write_text(f"# {document['title']}\n\n{document['body']}\n")
        words = [part for word in questions[0].query.split() for part in ("-e", word)]
        taken = work.ratios(("grep", "-rniw", *words, "."), {"PATH": "/usr/bin:/bin"}, space.disk)
        _put(found, "grep -rn", "a search as a process, x python -c pass", taken, "x")


def _table(title: str, columns: Sequence[str], found: _Found, versions: Mapping[str, str]) -> Table:
    lines: list[Cells] = [("version", *(versions.get(name, "") for name in columns))]
    lines += [(what, *(cells.get(name, "-") for name in columns)) for what, cells in found.cells.items()]
    return Table(title, ("", *columns), tuple(lines), tuple(found.notes))


if __name__ == "__main__":
    sys.exit(main())

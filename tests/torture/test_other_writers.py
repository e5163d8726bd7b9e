"""Conversations, the search index and solutions: killed before any system call, or with any call failing.

Afterwards the same work is done again, as the service or the user would do it. Then everything is there, once.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from echod.jobs.base import JobDone
from echod.memory.conversation.index import rebuild_index, row_numbers
from echod.remembrance.library import SolutionState, check_library, read_library
from echod.search.finder import DocumentFinder, SearchRequest
from echod.search.sources import MemorySource
from echod.sessions.forget import read_archive_header
from echod.sessions.roots import INDEX, SessionRoot
from echod.state.database import Database
from echod.store.layout import find_stores
from tests.remembrance.test_killed import Workplace
from tests.search.conftest import entry
from tests.sessions.conftest import Archives
from tests.sessions.generator import TranscriptMaker
from tests.torture import syscalls
from tests.torture.explorer import Tally

pytestmark = [
    pytest.mark.skipif(syscalls.unavailable_reason() is not None, reason=str(syscalls.unavailable_reason())),
    pytest.mark.timeout(7200),
]

_KILL, _KILLED = "signal=SIGKILL", -9
_FAILING = tuple(c for c in syscalls.CHANGING if c != "fcntl")  # SQLite's own locks, for which it is responsible
_SOME = 12
"""How many calls the quick run takes of each work. `make torture` takes all."""


class Work(Protocol):
    """A piece of work in an empty directory, which can be done again."""

    def __init__(self, base: Path) -> None: ...

    def do(self) -> None:
        """Do the work. It may be killed, or fail with a sentence."""

    def problems(self, how: str) -> list[str]:
        """Do the work again after a fault, and return what is missing, twice or torn."""


class ArchiveConversations:
    """Archive a session again that went on, and then another one."""

    def __init__(self, base: Path) -> None:
        self._base = base
        first, second = (_maker(seed).made for seed in _SEEDS)
        data = b"".join(first.lines)
        self._paths = [made.write(base / "transcripts") for made in (first, second)]
        self._paths[0].write_bytes(data[: data.index(b"\n", len(data) // 2) + 1])
        with Database.open(base / "state/echod.db") as database:
            Archives(SessionRoot(base / "root"), database).archive(self._paths[0])
        self._paths[0].write_bytes(data)

    def do(self) -> None:
        with Database.open(self._base / "state/echod.db") as database:
            self._archive(database)

    def problems(self, how: str) -> list[str]:
        with Database.open(self._base / "state/echod.db") as database:
            archives = self._archive(database)
            texts = [archives.text(number) for number in archives.root.archives()]
            listed = row_numbers(archives.root.read_text(INDEX))
            staged = list((archives.root.private / "stage").iterdir())
        wrong = [] if len(texts) == len(_SEEDS) else [f"{len(texts)} archives of two sessions"]
        if listed != tuple(archives.root.archives()):
            # A list that could not be read is left alone, and made again from the archives on request.
            headers = (read_archive_header(archives.root, number) for number in archives.root.archives())
            rebuilt = rebuild_index(archives.root.read_text(INDEX), [header for header in headers if header])
            if how == _KILL or row_numbers(rebuilt) != tuple(archives.root.archives()):
                wrong.append("the index lists other archives than there are")
        if staged:
            wrong.append("a staged file is left")
        messages = "".join(text[text.index("\n# Conversation ") :] for text in texts)
        prompts = (prompt for seed in _SEEDS for prompt in _maker(seed).made.prompts)
        counts = {messages.count(f"{prompt}\n\n") for prompt in prompts}
        return wrong + [f"a prompt is there {number} times" for number in counts - {1}]

    def _archive(self, database: Database) -> Archives:
        archives = Archives(SessionRoot(self._base / "root"), database, jobs=1)
        for path in self._paths:
            archives.archive(path)
        return archives


_SEEDS = (71, 72)


def _maker(seed: int) -> TranscriptMaker:
    maker = TranscriptMaker(seed)
    for _ in range(3):
        maker.prompt()
        maker.answer()
    return maker


class IndexMemories:
    """Search, so that the memories of three roles are indexed."""

    _ENTRIES = 12

    def __init__(self, base: Path) -> None:
        self._base = base
        self._expected = Counter[str]()
        for role in ("reviewer", "planner", "worker"):
            self._write(role, range(self._ENTRIES))

    def do(self) -> None:
        self._find()

    def problems(self, how: str) -> list[str]:
        del how
        found = Counter(self._find())
        missing, excess = (self._expected - found).values(), (found - self._expected).values()
        return [f"{number} of a title are missing" for number in missing] + [
            f"{number} of a title are too many" for number in excess
        ]

    def _write(self, role: str, numbers: range) -> None:
        titles = [f"{role} {number}" for number in numbers]
        file = self._base / f"project/.rune/echoes/{role}/MEMORY.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(entry(title, "about walnuts") for title in titles))
        self._expected = Counter(title for title in self._expected if not title.startswith(role)) + Counter(titles)

    def _find(self) -> list[str]:
        (store,) = find_stores(self._base / "project")
        finder = DocumentFinder(self._base / "state/search.db")
        try:
            answer = finder.search([MemorySource(store)], SearchRequest("walnuts", limit=1_000))
            return [document.title for document in answer.results]
        finally:
            finder.close()


class UpdateIndex(IndexMemories):
    """Search after one of the indexed memories changed."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self._find()
        self._write("worker", range(2, self._ENTRIES + 3))


class PromoteEntry:
    """Make a solution of an entry, which then has a reference to it."""

    def __init__(self, base: Path) -> None:
        self._place = Workplace(base)
        self._entry = self._place.ids()[0] or ""

    def do(self) -> None:
        self._place.promote(entry=self._entry)

    def problems(self, how: str) -> list[str]:
        del how
        outcome = self._place.promote(seconds_later=60)
        states = [checked.state for checked in check_library(read_library(self._place.project))]
        memory = self._place.role.memory.read_text()
        wrong = [] if isinstance(outcome, JobDone) else [f"the second run ends with {outcome}"]
        if states != [SolutionState.CURRENT]:
            wrong.append(f"the solutions are {states}")
        if memory.count("promoted_to") != 1:
            wrong.append("the entry does not name its solution once")
        return wrong if len(self._place.ids()) == 2 else [*wrong, "an entry is missing, or there twice"]


WORK: dict[str, type[Work]] = {
    "archive conversations": ArchiveConversations,
    "index memories": IndexMemories,
    "update the index": UpdateIndex,
    "promote an entry": PromoteEntry,
}


@pytest.fixture
def base() -> Iterator[Path]:
    memory = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None)).resolve()
    yield path / "arena"
    shutil.rmtree(path)


def _create(base: Path, work: str) -> Work:
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    return WORK[work](base)


def inject_faults(base: Path, work: str, how: str, only: tuple[str, ...], most: int | None = None) -> Tally:
    """Interfere with every call of the work in turn (at most about `most` of them), and count problems."""
    _create(base, work).do()  # so that no process that is interfered with has anything to import
    calls = syscalls.record_calls(_create(base, work).do, base.parent / "calls")
    chosen = [number for number, call in enumerate(calls) if call in only]
    taken = frozenset(chosen[:: 1 if most is None else math.ceil(len(chosen) / most)])
    tally, seen = Tally(), Counter[str]()
    for number, call in enumerate(calls):
        seen[call] += 1
        if number in taken:
            made = _create(base, work)
            status = syscalls.run_with_fault(made.do, call, seen[call], how, base.parent / "strace")
            kills = how == _KILL
            if kills and status == 0:
                continue  # this time there were fewer such calls: SQLite decides when it writes its log back
            ended = [] if status == (_KILLED if kills else 0) else [f"the process ended with {status}, not a sentence"]
            tally.add(f"{call} {seen[call]}", ended + made.problems(how))
    return tally


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK)
def test_killed_before_some_calls(base: Path, work: str) -> None:
    tally = inject_faults(base, work, _KILL, syscalls.CHANGING, _SOME)

    assert tally.schedules > _SOME // 2
    assert not tally.wrong, tally.examples


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK)
def test_some_calls_fail(base: Path, work: str) -> None:
    tally = inject_faults(base, work, "error=ENOSPC", _FAILING, _SOME)

    assert tally.schedules > 2
    assert not tally.wrong, tally.examples


@pytest.mark.torture
@pytest.mark.parametrize("work", WORK)
def test_every_call_killed_or_failing(base: Path, work: str) -> None:
    total = Tally()
    for how in (_KILL, "error=ENOSPC", "error=EIO", "error=EACCES"):
        tally = inject_faults(base, work, how, syscalls.CHANGING if how == _KILL else _FAILING)
        print(tally.row(f"{work}, {how}"))
        total.wrong += tally.wrong
        total.examples |= tally.examples

    assert not total.wrong, total.examples

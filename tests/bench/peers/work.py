"""The work that every program does: search, rest, start, and entries added by several agents at once."""

from __future__ import annotations

import hashlib
import json
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import psutil

from tests.bench.peers.programs import Documents, PeerError, Program, ToolServer, Writer
from tests.bench.reference import rounds, timed
from tests.bench.topics.search import Question, made_words, recall_at_5

_BODY_WORDS, _LINE_WORDS = 65, 13
_TRIES, _SECONDS = 9, 25.0
_SETTLE_SECONDS = 5.0
_WRITERS, _ENTRIES, _KILLED = 6, 15, 3
_BARE = (sys.executable, "-c", "pass")


def made_documents(count: int) -> Documents:
    """Make documents of words that are as frequent as in a language."""
    random = Random(11)
    words, weights = made_words(random)
    documents = []
    for number in range(count):
        drawn = random.choices(words, weights, k=_BODY_WORDS)
        body = "\n".join(f"- {' '.join(drawn[at : at + _LINE_WORDS])}." for at in range(0, _BODY_WORDS, _LINE_WORDS))
        title = f"{' '.join(drawn[:4]).capitalize()} {number}"
        documents.append({"id": str(number), "title": title, "body": body, "date": "2026-03-01", "layer": "inscribed"})
    return documents


def made_questions(documents: Documents, count: int) -> Sequence[Question]:
    """Ask for a document by one of its rarer words, two others, and one that it does not have: it is the one answer."""
    random = Random(5)
    texts = {
        document["id"]: re.findall(r"\w+", f"{document['title']} {document['body']}".lower()) for document in documents
    }
    frequency: dict[str, int] = {}
    for found in texts.values():
        for word in set(found):
            frequency[word] = frequency.get(word, 0) + 1
    questions = []
    for document in random.sample(list(documents), count):
        words = sorted(
            {word for word in texts[document["id"]] if not word.isdigit()}, key=lambda word: (frequency[word], word)
        )
        foreign = random.choice([word for word in frequency if word not in words and not word.isdigit()])
        asked = [random.choice(words[:10]), *random.sample(words[10:], 2), foreign]
        random.shuffle(asked)
        questions.append(Question(" ".join(asked), "known entry", {document["id"]: 2}))
    return questions


class SearchFigures(NamedTuple):
    """Seconds until everything is searchable; recall@5; milliseconds of a warm query; starts of Python of a process."""

    index_seconds: float
    recall: float
    warm: Sequence[float]
    process: Sequence[float] | None


def search(program: Program, documents: Documents, questions: Sequence[Question]) -> SearchFigures:
    """Index, ask everything twice through the server of tools, and time the second time; then as a process."""
    program.write(documents)
    index_seconds = timed(program.index)
    server = program.start()
    try:
        for question in questions:
            server.call(program.search_tool, program.query(question.query))
        warm, recalls = [], []
        for question in questions:
            begin = time.perf_counter()
            answer = server.call(program.search_tool, program.query(question.query))
            warm.append((time.perf_counter() - begin) * 1000)
            recalls.append(recall_at_5(question, list(program.found(answer))))
    finally:
        end(server)
    command = program.search_command(questions[0].query)
    return SearchFigures(
        index_seconds, statistics.mean(recalls), warm, None if command is None else _ratios(program, command)
    )


def ratios(command: Sequence[str], environ: Mapping[str, str], directory: Path, given: bytes = b"") -> Sequence[float]:
    """How long a command takes, as multiples of a Python that does nothing, run in turn."""
    found = []
    for number in rounds(_TRIES + 1, _SECONDS):
        took = [
            timed(lambda words=words: _run(words, environ, directory, given))  # type: ignore[misc]
            for words in (_BARE, command)
        ]
        if number:
            found.append(took[1] / took[0])
    return found


def _ratios(program: Program, command: Sequence[str]) -> Sequence[float]:
    return ratios(command, program.environ, program.directory)


def _run(command: Sequence[str], environ: Mapping[str, str], directory: Path, given: bytes) -> None:
    done = subprocess.run(command, env=environ, cwd=directory, input=given, capture_output=True, check=False)
    if done.returncode != 0:
        raise PeerError(f"{command[0]} ended with {done.returncode}: {done.stderr.decode()[-200:]}")


def hook(program: Program) -> Sequence[float] | None:
    """What the hook at the start of a session takes, in starts of Python; None without a hook."""
    command = program.hook_command()
    if command is None:
        return None
    event = {
        "session_id": "5f0b",
        "cwd": str(program.directory),
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    return ratios(command, program.environ, program.directory, json.dumps(event).encode())


def first_answer(program: Program, words: str) -> Sequence[float]:
    """From the start of the server of tools to the answer to a search, in starts of Python."""
    found = []
    for number in rounds(6, _SECONDS):
        bare = timed(lambda: _run(_BARE, program.environ, program.directory, b""))
        begin = time.perf_counter()
        server = program.start()
        server.call(program.search_tool, program.query(words))
        took = time.perf_counter() - begin
        end(server)
        if number:
            found.append(took / bare)
    return found


class Rest(NamedTuple):
    """What the processes of a program use at rest: MiB, and percent of a processor."""

    memory: float
    processor: float
    processes: int


def rest(program: Program, words: str, seconds: float) -> tuple[Rest, Rest | None]:
    """Measure a server of tools after a search, and the service beside it where there is one."""
    with program.service() as running:
        server = program.start()
        try:
            server.call(program.search_tool, program.query(words))
            time.sleep(_SETTLE_SECONDS)
            roots = [server.process.pid, *(() if running is None else (running.process.pid,))]
            before, began = [_cpu(pid) for pid in roots], time.monotonic()
            time.sleep(seconds)  # the span that is measured
            spent = time.monotonic() - began
            found = [
                Rest(_memory(pid), 100 * (_cpu(pid) - used) / spent, len(_family(pid)))
                for pid, used in zip(roots, before, strict=True)
            ]
        finally:
            end(server)
    return found[0], found[1] if len(found) > 1 else None


def _family(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def _cpu(pid: int) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in _family(pid))


def _memory(pid: int) -> float:
    return float(sum(process.memory_info().rss for process in _family(pid)) / 2**20)


def end(server: ToolServer) -> None:
    """End a server as a host does: close its input, and kill what stays."""
    assert server.process.stdin is not None
    try:
        family = _family(server.process.pid)
    except psutil.NoSuchProcess:
        family = []
    server.process.stdin.close()
    try:
        server.process.wait(5)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait()
    for process in family:
        if process.is_running():
            process.kill()


class WriterFigures(NamedTuple):
    """What became of entries that several agents added at once while some of them were killed."""

    acknowledged: int
    refused: int
    missing: int
    twice: int
    torn: int
    answers: bool
    seconds: float


def write_at_once(program: Program) -> WriterFigures:
    """Let six agents add fifteen entries each, and kill three of them with SIGKILL somewhere on the way."""
    acknowledged: list[str] = []
    refused: list[str] = []
    lock, random = threading.Lock(), Random(3)
    writers = [Writer(program) for _ in range(_WRITERS)]
    deaths = {number: random.randrange(3, _ENTRIES - 2) for number in random.sample(range(_WRITERS), _KILLED)}

    def work(number: int, writer: Writer) -> None:
        for entry in range(_ENTRIES):
            name = f"w{number}n{entry:02}"
            if deaths.get(number) == entry:
                threading.Timer(Random(number).uniform(0.0, 0.3), writer.kill).start()
            try:
                program.add(writer, f"Lesson {entry} of agent {number}", entry_text(name))
            except PeerError:
                if writer.killed:
                    return
                with lock:
                    refused.append(name)
            else:
                with lock:
                    acknowledged.append(name)
            if writer.killed:
                return

    with program.service():
        threads = [threading.Thread(target=work, args=pair) for pair in enumerate(writers)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - began
        for writer in writers:
            writer.kill()
    stored = program.stored()
    counts = {name: whole_and_torn(stored, name) for name in _names()}
    return WriterFigures(
        len(acknowledged),
        len(refused),
        sum(counts[name] == (0, 0) for name in acknowledged),
        sum(whole > 1 for whole, _ in counts.values()),
        sum(torn > 0 for _, torn in counts.values()),
        _answers(program, acknowledged),
        seconds,
    )


def _names() -> Sequence[str]:
    return [f"w{number}n{entry:02}" for number in range(_WRITERS) for entry in range(_ENTRIES)]


def entry_text(name: str) -> str:
    """Return a text that shows whether it is whole: a name, words of its own, and their sum."""
    random = Random(name)
    words, weights = made_words(Random(11))
    body = " ".join(random.choices(words, weights, k=30))
    return f"{name} {body} {hashlib.sha256(f'{name} {body}'.encode()).hexdigest()}"


def whole_and_torn(stored: str, name: str) -> tuple[int, int]:
    """Count the whole copies of an entry in a text, and the others."""
    whole = len(re.findall(r"\s+".join(map(re.escape, entry_text(name).split())), stored))
    return whole, len(re.findall(rf"\b{name}\b", stored)) - whole


def _answers(program: Program, names: Sequence[str]) -> bool:
    """Whether a server that starts afterwards answers a search."""
    ask: Callable[[ToolServer], Any] = lambda server: server.call(  # noqa: E731
        program.search_tool, program.query(names[0] if names else "lesson")
    )
    server = None
    try:
        server = program.start()
        ask(server)
    except PeerError:
        return False
    finally:
        if server is not None:
            end(server)
    return True

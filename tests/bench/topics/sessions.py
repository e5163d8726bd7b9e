"""Archive 600 transcripts of every kind: what is lost, what is twice, which secrets are left, and what it costs."""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

from echod.memory.conversation.model import ArchiveOrigin
from echod.sessions.archiver import Archiver, SessionSource
from echod.sessions.roots import SessionRoot
from echod.state.database import Database
from echod.state.session_log import SessionLog
from tests.bench.figures import Curve, Figures, Row, below, none, row
from tests.bench.workspace import Workspace
from tests.sessions.generator import MadeTranscript, make_transcripts

_TRANSCRIPTS = 600
_BIG_MIB = 200
_SIZES_MIB = (5, 20, 80)
_MIB = 1 << 20
_MAX_GROWTH_MIB = 64.0


def measure(space: Workspace) -> Figures:
    """The bars of archiving, its speed, and the memory that a transcript of 200 MB takes."""
    root = SessionRoot(space.disk / "archives")
    root.create()
    with Database.open(space.disk / "state" / "echod.db") as database:
        archiver = Archiver(root, SessionLog(database), time.time)
        made = list(make_transcripts(_TRANSCRIPTS))
        paths = [one.write(space.disk / "transcripts") for one in made]
        crashes, seconds = _archive_all(archiver, paths)
        texts = {one.session: "" for one in made}
        for number in root.archives():
            text = root.archive_path(number).read_text()
            session = text.split('session_id: "', 1)[1].split('"', 1)[0]
            texts[session] += text
        rows = [
            Row(f"{_TRANSCRIPTS} transcripts: crashes", crashes, "", bar=none()),
            Row("typed prompts missing", sum(_missing(one, texts[one.session]) for one in made), "", bar=none()),
            Row("typed prompts twice", sum(_twice(one, texts[one.session]) for one in made), "", bar=none()),
            Row("planted secrets left", sum(_left(one, texts[one.session]) for one in made), "", bar=none()),
            Row("injected texts archived", sum(_injected(one, texts[one.session]) for one in made), "", bar=none()),
            row("archiving one", [second * 1000 for second in seconds], "ms"),
        ]
        rows += _big(archiver, space.disk / "big.jsonl")
        points = tuple((mib, _archive(archiver, space.disk / f"{mib}.jsonl", mib)[0]) for mib in _SIZES_MIB)
    return Figures(tuple(rows), (Curve("archive a transcript", "MiB", points),))


def _archive_all(archiver: Archiver, paths: list[Path]) -> tuple[int, list[float]]:
    crashes, seconds = 0, []
    for job, path in enumerate(paths, start=1):
        begin = time.perf_counter()
        try:
            archiver.archive(SessionSource(path), ArchiveOrigin.SESSION, job)
        except Exception:
            crashes += 1
        seconds.append(time.perf_counter() - begin)
    return crashes, seconds


def _messages(text: str) -> str:
    return " ".join(text.partition("\n# Conversation ")[2].partition("\n## Tags\n")[0].split())


def _missing(made: MadeTranscript, text: str) -> int:
    body = _messages(text)
    return sum(" ".join(prompt.split()) not in body for prompt in made.prompts)


def _twice(made: MadeTranscript, text: str) -> int:
    body = _messages(text)
    return sum(body.count(" ".join(prompt.split())) > 1 for prompt in made.prompts)


def _left(made: MadeTranscript, text: str) -> int:
    return sum(secret in text for secret in made.secrets)


def _injected(made: MadeTranscript, text: str) -> int:
    return sum(note in text for note in made.injected)


def _archive(archiver: Archiver, path: Path, mib: int) -> tuple[float, int]:
    """Write a transcript of this size, archive it, and return the seconds and the number of prompts."""
    output = "a line of the output of a tool\n" * 2_000
    with path.open("w") as file:
        number = 0
        while file.tell() < mib * _MIB:
            number += 1
            result = {"type": "tool_result", "tool_use_id": "t", "content": output}
            for part in ([result], f"prompt {number}"):
                record = {"type": "user", "uuid": f"{number}{part}"[:40], "message": {"role": "user", "content": part}}
                file.write(json.dumps(record) + "\n")
    begin = time.perf_counter()
    archiver.archive(SessionSource(path), ArchiveOrigin.SESSION, 1)
    took = time.perf_counter() - begin
    path.unlink()
    return took, number


def _big(archiver: Archiver, path: Path) -> list[Row]:
    before = _peak()
    took, prompts = _archive(archiver, path, _BIG_MIB)
    grown = _peak() - before
    note = f"{_BIG_MIB} MiB, {prompts:,} prompts"
    return [
        Row("a transcript of 200 MB: memory above the rest", grown, "MiB", bar=below(_MAX_GROWTH_MIB), note=note),
        Row("a transcript of 200 MB", took, "s", note=note),
    ]


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MIB

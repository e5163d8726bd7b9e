"""Replay transcripts through the recall hooks, and measure what a hook costs with 20,000 entries indexed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from echod.hooks import recall
from echod.inbox.spool import list_offers
from echod.search.finder import DocumentFinder
from echod.search.sources import MemorySource
from echod.store.layout import find_stores
from tests.bench.figures import Figures, Row, Threshold, below, row
from tests.bench.reference import rounds
from tests.bench.transcripts import Call, read_calls, write_transcripts
from tests.bench.workspace import Workspace

_FILES, _SESSIONS, _CALLS = 400, 30, 120
_ENTRIES_OF_PROJECT, _ROLES, _ENTRIES_OF_ROLE = 150, 20, 1000
_ROUNDS, _SECONDS = 41, 12.0
_ECHOD = str(Path(sys.executable).with_name("echod"))
_BARE = (sys.executable, "-c", "pass")
_MAX_NEEDLESS = Threshold(below(0).sign, 0.0200001, proof=True)
_TOPICS = ("cache", "upload", "schema", "login", "report", "export", "queue", "index")


def measure(space: Workspace) -> Figures:
    """Offers in made-up sessions, and in those of a corpus; the time of a hook that offers and of a silent one."""
    project, state = space.directory("project"), space.directory("state")
    files = [f"src/part_{number % 20}/module_{number}.py" for number in range(_FILES)]
    for file in files:
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        (project / file).write_text("value = 1\n" * 40)
    chance = random.Random(5)
    cited = chance.sample(files, 60)
    _write_entries(project / ".rune/echoes/workers", _ENTRIES_OF_PROJECT, cited, chance)
    _index(project, state)
    transcripts = space.directory("transcripts")
    write_transcripts(transcripts, project, files, sessions=_SESSIONS, calls=_CALLS)
    calls = [call for file in sorted(transcripts.iterdir()) for call in read_calls(file)]
    rows = list(_replay("made-up sessions", calls, state, project))
    rows += _corpus_rows(space)
    for number in range(_ROLES):
        _write_entries(project / f".rune/echoes/role{number}", _ENTRIES_OF_ROLE, files, chance)
    _index(project, state)
    rows += _timings(space, state, project, cited[0], files)
    return Figures(tuple(rows))


def _write_entries(role: Path, count: int, files: Sequence[str], chance: random.Random) -> None:
    role.mkdir(parents=True)
    text = "".join(
        f"## Inscribed \u2014 {chance.choice(_TOPICS)} rule {number} of {role.name} (2026-10-01)\n**Source**: `r{number}`\n"
        f"**Evidence**: `{chance.choice(files)}:{number % 30 + 1}`\n\n"
        f"- {_learning(number, chance)}\n\n"
        for number in range(count)
    )
    (role / "MEMORY.md").write_text(text)
    os.utime(role / "MEMORY.md", (1, 1))


def _learning(number: int, chance: random.Random) -> str:
    topic = chance.choice(_TOPICS)
    return chance.choice((
        f"The {topic} is written before the {chance.choice(_TOPICS)} is read, else {number} is lost.",
        f"`make {topic}-{number}` hangs while the {topic} is open.",
        f"`TypeError` in the {topic} {number} means that the old format was read.",
        f"ERR_{topic.upper()}_{number} comes from a second {topic}.",
    ))  # fmt: skip


def _index(project: Path, state: Path) -> None:
    finder = DocumentFinder(state / "search.db")
    finder.refresh([MemorySource(store) for store in find_stores(project)])
    finder.close()


def _replay(what: str, calls: Iterable[Call], state: Path, project: Path) -> Iterable[Row]:
    """Yield what the hooks would have shown, with everything switched on."""
    environ = {"HOME": str(state), "ECHOD_HOOKS__RECALL": "all"}
    total = offers = needless = size = 0
    sessions: set[str] = set()
    for call in calls:
        total += 1
        sessions.add(call.session)
        for event in ("pre-tool-use", *(("post-tool-use-failure",) if call.error else ())):
            payload = {
                "session_id": call.session, "cwd": call.directory, "tool_name": call.tool, "tool_input": call.given,
                "error": call.error,
            }  # fmt: skip
            output = recall.answer(event, json.dumps(payload).encode(), str(state), environ, "linux")
            if output:
                offers += 1
                size += len(json.loads(output)["hookSpecificOutput"]["additionalContext"].encode())
                needless += _is_needless(output, call, project)
    yield Row(f"{what}: calls with an offer", offers / max(1, total), "", note=f"{offers} of {total} calls")
    note = "it names neither the file, nor a word of the command, nor of the error"
    yield Row(f"{what}: needless offers", needless / max(1, total), "", bar=_MAX_NEEDLESS, note=note)
    yield Row(f"{what}: bytes a session", size / max(1, len(sessions)), "bytes", note=f"{len(sessions)} sessions")


def _is_needless(output: bytes, call: Call, project: Path) -> bool:
    """Return whether an offer has nothing to do with its call, by a rule that does not know how it was chosen."""
    text = json.loads(output)["hookSpecificOutput"]["additionalContext"]
    file = call.given.get("file_path")
    if isinstance(file, str):
        relative = os.path.relpath(file, project)
        if relative in text:
            return False
    command = [word for word in str(call.given.get("command", "")).split() if len(word) > 3]
    if len([word for word in command if word in text]) >= 2:
        return False
    words = {word.strip(".,:;'\"()") for word in (call.error or "").split() if len(word) > 5}
    return not any(word in text for word in words)


def _corpus_rows(space: Workspace) -> Iterable[Row]:
    """Replay the transcripts of a corpus against the memory of the same corpus, where there is one."""
    root = os.environ.get("MEMORY_CORPUS")
    files = sorted(Path(root).glob("**/*.jsonl")) if root else []
    calls = [call for file in files for call in read_calls(file)]
    if not calls:
        yield Row("transcripts of the corpus", 0, "calls", note="MEMORY_CORPUS has none")
        return
    project, state = space.directory("replayed"), space.directory("replayed-state")
    for number, memory in enumerate(sorted(Path(root or "").glob("**/MEMORY.md"))[:40]):
        role = project / f".rune/echoes/role{number}"
        role.mkdir(parents=True)
        (role / "MEMORY.md").write_bytes(memory.read_bytes())
        os.utime(role / "MEMORY.md", (1, 1))
    _index(project, state)
    here = [call._replace(directory=str(project), given=_moved(call, project)) for call in calls]
    for call in here:
        if isinstance(file := call.given.get("file_path"), str):
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).touch()
    yield from _replay("transcripts of the corpus", here, state, project)


def _moved(call: Call, project: Path) -> dict[str, object]:
    """Return the input of a call as if its directory were the project."""
    file = call.given.get("file_path")
    if not isinstance(file, str):
        return call.given
    relative = os.path.relpath(file, call.directory) if file.startswith("/") else file
    return {**call.given, "file_path": str(project / relative.replace("../", ""))}


def _timings(space: Workspace, state: Path, project: Path, cited: str, files: Sequence[str]) -> Iterable[Row]:
    home = {
        "HOME": str(space.disk),
        "ECHOD_STATE_DIR": str(state),
        "ECHOD_HOOKS__RECALL": "all",
        "PATH": "/usr/bin:/bin",
    }
    silent = str(project / files[0].replace("module_0", "module_none"))
    Path(silent).touch()
    bare: list[float] = []
    took: dict[str, list[float]] = {"an offer": [], "silent": [], "a failed command": []}
    for number in rounds(_ROUNDS + 1, _SECONDS):
        each = {
            "an offer": _seconds(
                "pre-tool-use", "Edit", {"file_path": str(project / cited)}, f"s{number}", home, project
            ),
            "silent": _seconds("pre-tool-use", "Edit", {"file_path": silent}, f"s{number}", home, project),
            "a failed command": _seconds(
                "post-tool-use-failure", "Bash", {"command": "node x"}, f"f{number}", home, project
            ),
        }
        begin = time.perf_counter()
        subprocess.run(_BARE, input=b"", env=home, capture_output=True, check=True)
        if number:
            bare.append(time.perf_counter() - begin)
            for name, seconds in each.items():
                took[name].append(seconds)
    shown = len({offer.session for offer in list_offers(state) if offer.session.startswith("s")})
    entries = _ROLES * _ENTRIES_OF_ROLE + _ENTRIES_OF_PROJECT
    for name, runs in took.items():
        ratios = [one / reference for one, reference in zip(runs, bare, strict=True)]
        yield row(f"hook, {name}, {entries:,} entries", ratios, "x", bar=below(2), note=f"{shown} sessions with offers")


def _seconds(
    event: str, tool: str, given: dict[str, str], session: str, environ: dict[str, str], project: Path
) -> float:
    error = "Exit code 1\nTypeError: unsupported operand in the login of 5\n" + "  at line 3 of something\n" * 100
    payload = {"session_id": session, "cwd": str(project), "tool_name": tool, "tool_input": given, "error": error}
    data = json.dumps(payload).encode()
    begin = time.perf_counter()
    subprocess.run((_ECHOD, "hook", event), input=data, env=environ, capture_output=True, check=True)
    return time.perf_counter() - begin

"""Transcripts of agents' sessions: made-up ones, and those of a corpus, as the calls that hooks would see.

A call is what the payload of `PreToolUse` has, and the error if it failed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_MAX_BYTES = 64 * 1024 * 1024


class Call(NamedTuple):
    """A call of a tool in a session: its name, its input, its directory, and the error if it failed."""

    session: str
    directory: str
    tool: str
    given: dict[str, Any]
    error: str | None


def read_calls(file: Path) -> Iterator[Call]:
    """Yield the calls of a transcript in order. Lines and records of other kinds are passed over."""
    if file.stat().st_size > _MAX_BYTES:
        return
    pending: dict[str, Call] = {}
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            message = record.get("message") if isinstance(record, dict) else None
            content = message.get("content") if isinstance(message, dict) else None
            if not isinstance(content, list):
                continue
            for block in content:
                if not isinstance(block, dict):
                    continue
                if block.get("type") == "tool_use" and isinstance(block.get("input"), dict):
                    pending[str(block.get("id"))] = Call(
                        str(record.get("sessionId") or file.stem), str(record.get("cwd") or "/"), str(block.get("name")),
                        block["input"], None,
                    )  # fmt: skip
                elif block.get("type") == "tool_result" and (call := pending.pop(str(block.get("tool_use_id")), None)):
                    yield call._replace(error=_text(block.get("content")) if block.get("is_error") else None)
    yield from pending.values()


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


_COMMANDS = (
    "ls -la", "git status", "git diff --stat", "rg -n TODO src", "python -m pytest -q", "npm run build", "cat {file}",
    "git commit -m 'change'", "make lint", "docker compose up -d", "npm install", "sed -n 1,40p {file}",
)  # fmt: skip
_ERRORS = (
    "Exit code 1\nFAILED tests/test_{n}.py::test_it - AssertionError: assert {n} == 4",
    "Exit code 2\nModuleNotFoundError: No module named 'module_{n}'",
    "Exit code 1\nerror TS2304: Cannot find name 'value_{n}'.",
    "String to replace not found in file.\nString: value_{n}",
    "Exit code 127\n/bin/sh: tool_{n}: command not found",
    "Exit code 1\nTypeError: unsupported operand type(s) for +: 'int' and 'str'",
)


def write_transcripts(directory: Path, project: Path, files: list[str], *, sessions: int, calls: int) -> None:
    """Write made-up transcripts of sessions in a project. Each edits some files, runs commands, and fails at times."""
    chance = random.Random(7)
    for number in range(sessions):
        session = f"{number:08x}-0000-4000-8000-000000000000"
        worked_on = chance.sample(files, min(6, len(files)))
        records: list[dict[str, Any]] = [{"type": "summary", "summary": "Made up", "leafUuid": "x"}]
        for step in range(calls):
            name, given = _make_call(chance, project, worked_on)
            identity = f"toolu_{number}_{step}"
            shared = {"sessionId": session, "cwd": str(project), "isSidechain": False, "version": "2.1.332"}
            use = {"type": "tool_use", "id": identity, "name": name, "input": given}
            records.append({**shared, "type": "assistant", "message": {"role": "assistant", "content": [use]}})
            failed = chance.random() < 0.08
            text = chance.choice(_ERRORS).format(n=chance.randrange(500)) if failed else "ok"
            result = {"type": "tool_result", "tool_use_id": identity, "content": text, "is_error": failed}
            records.append({**shared, "type": "user", "message": {"role": "user", "content": [result]}})
        (directory / f"{session}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def _make_call(chance: random.Random, project: Path, files: list[str]) -> tuple[str, dict[str, Any]]:
    file = str(project / chance.choice(files))
    kind = chance.random()
    if kind < 0.3:
        return "Read", {"file_path": file}
    if kind < 0.55:
        return "Edit", {"file_path": file, "old_string": "a", "new_string": "b"}
    return "Bash", {"command": chance.choice(_COMMANDS).format(file=file)}

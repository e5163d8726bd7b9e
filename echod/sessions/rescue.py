"""Reconstruct sessions whose transcripts the host has deleted: their prompts are still in its `history.jsonl`.

A line is `{"display", "timestamp" (ms), "project", "sessionId", "pastedContents"}`. The host never sweeps that file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import os_reason
from echod.files import open_regular
from echod.memory.conversation.model import (
    Speaker,
    TranscriptMessage,
    Utterance,
    clean_text,
    one_line,
    parse_timestamp,
    record_key,
)
from echod.sessions.dialects import LineReader
from echod.sessions.roots import SessionError

HISTORY: Final = "history.jsonl"

_PASTED: Final = re.compile(r"\[Pasted text #(\d++)[^\[\]]*\]")


class LostSession(NamedTuple):
    """The prompts of a session in the host's history, in order. `directory` is where it ran."""

    session_id: str
    directory: Path
    messages: tuple[TranscriptMessage, ...]


def read_history(claude_home: Path) -> tuple[LostSession, ...]:
    """Return the sessions in the host's history, in the order of their first prompts. None without a history.

    Raises:
        SessionError: the history cannot be read.
    """
    path = claude_home / HISTORY
    sessions: dict[str, tuple[Path, list[TranscriptMessage]]] = {}
    try:
        with open_regular(path) as file:
            for line in LineReader(file, 0).lines():
                if line.data and (prompt := _read_prompt(line.data)) is not None:
                    session_id, directory, message = prompt
                    sessions.setdefault(session_id, (directory, []))[1].append(message)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {os_reason(error)}.") from error
    return tuple(LostSession(session, directory, tuple(found)) for session, (directory, found) in sessions.items())


def _read_prompt(data: bytes) -> tuple[str, Path, TranscriptMessage] | None:
    try:
        record = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, Mapping):
        return None
    session, directory, display = record.get("sessionId"), record.get("project"), record.get("display")
    if not (isinstance(session, str) and session and isinstance(directory, str) and isinstance(display, str)):
        return None
    text = clean_text("".join(_with_pasted(display, record.get("pastedContents"))))
    if not text.strip() or "\0" in directory:
        return None
    key = record_key(f"history\0{session}\0{record.get('timestamp')}\0{display}")
    item = Utterance(Speaker.USER, text)
    message = TranscriptMessage(key, "", parse_timestamp(record.get("timestamp")), Speaker.USER, (item,))
    return one_line(session), Path(directory), message


def _with_pasted(display: str, pasted: object) -> Iterator[str]:
    """Yield a prompt with the texts that were pasted into it."""
    done = 0
    for match in _PASTED.finditer(display):
        content = pasted.get(match[1]) if isinstance(pasted, Mapping) else None
        text = content.get("content") if isinstance(content, Mapping) else None
        yield display[done : match.start()]
        yield text if isinstance(text, str) else match[0]
        done = match.end()
    yield display[done:]

"""Find the transcripts of agents on this machine and the project of each, and reconstruct those that were deleted.

Claude Code keeps them in `{home}/projects/{slug}/{session}.jsonl`. The slug of a directory is not invertible, so the
project is taken from the records (`cwd`). Files of sub-agents belong to their session and are no transcripts of their
own. Codex keeps its rollouts in `{codex home}/sessions/**/rollout-*.jsonl`, compressed ones as `.jsonl.zst`.

Where the host deleted a transcript, the session's prompts are still in its `history.jsonl`. A line is `{"display",
"timestamp" (ms), "project", "sessionId", "pastedContents"}`. The host never sweeps that file.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import os_reason
from echod.files import open_regular, read_regular
from echod.lazy import lazy_pattern
from echod.log import get_logger
from echod.memory.conversation.model import (
    Speaker,
    TranscriptMessage,
    Utterance,
    clean_text,
    one_line,
    parse_timestamp,
    record_key,
    shorten,
)
from echod.projects.discovery import main_worktree_path
from echod.sessions.dialects import LineReader, UnreadableTranscriptError, open_transcript, peek, session_id_of
from echod.sessions.roots import SessionError

log = get_logger(__name__)

HOST_DEFAULT_DAYS: Final = 30
"""For so many days Claude Code keeps transcripts unless its settings contain another number."""

_MAX_SETTINGS_BYTES: Final = 1 << 20
_MAX_ROLLOUT_DEPTH: Final = 4
_ROLLOUT: Final = "rollout-"
_SUFFIXES: Final = {"": (".jsonl",), _ROLLOUT: (".jsonl", ".jsonl.zst")}
_AGENT_PREFIX: Final = "agent-"
_TITLE_CHARACTERS: Final = 120
_SLUG_LENGTH: Final = 200
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class Transcript(NamedTuple):
    """A transcript on the disk: its project, its size in bytes, and when it was last changed."""

    path: Path
    session: str
    project: Path
    size: int
    mtime_ns: int

    @property
    def changed_at(self) -> float:
        """When it was last changed (Unix seconds)."""
        return self.mtime_ns / 1e9


class TranscriptFinder:
    """Finds the transcripts of projects. Remembers the project of each file, so one look reads only new files."""

    def __init__(self, claude_home: Path, codex_home: Path | None = None) -> None:
        self._claude_home = claude_home
        self._codex_home = codex_home
        self._directories: dict[tuple[str, int], tuple[str, str]] = {}

    def find(self, projects: Collection[Path]) -> tuple[Transcript, ...]:
        """Return the transcripts of these projects, the oldest first. Those of other projects are left alone.

        Raises:
            OSError: a directory with transcripts cannot be listed, which does not mean that it is empty.
        """
        if not projects:
            return ()
        roots = set(projects)
        found = []
        seen: set[tuple[str, int]] = set()
        for path, status in self._files():
            key = (str(path), status.st_ino)
            seen.add(key)
            project = self._project_of(path, key, roots)
            if project is not None:
                session = self._directories[key][1] or path.stem
                found.append(Transcript(path, session, project, status.st_size, status.st_mtime_ns))
        for key in self._directories.keys() - seen:
            del self._directories[key]
        return tuple(sorted(found, key=lambda transcript: (transcript.mtime_ns, str(transcript.path))))

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        yield from _transcripts_below(self._claude_home / "projects", depth=1, prefix="")
        if self._codex_home is not None:
            yield from _transcripts_below(self._codex_home / "sessions", depth=_MAX_ROLLOUT_DEPTH, prefix=_ROLLOUT)

    def _project_of(self, path: Path, key: tuple[str, int], roots: set[Path]) -> Path | None:
        directory, _ = self._directories.get(key, ("", ""))
        if not directory:
            directory, session = _read_directory(path)
            self._directories[key] = (directory, session)
        if not directory:
            return min((root for root in roots if path.parent.name == project_slug(root)), default=None)
        try:
            start = main_worktree_path(Path(directory))
        except (OSError, ValueError):
            return None
        return next((above for above in (start, *start.parents) if above in roots), None)


def list_transcript_files(claude_home: Path) -> tuple[Path, ...]:
    """Return the transcripts of all sessions of Claude Code, of whatever project."""
    return tuple(path for path, _ in _transcripts_below(claude_home / "projects", depth=1, prefix=""))


class SubAgentTranscript(NamedTuple):
    """The transcript of a sub-agent, and what the archive calls it."""

    path: Path
    title: str


def find_sub_agents(transcript: Path, session_id: str) -> tuple[SubAgentTranscript, ...]:
    """Return the transcripts of the sub-agents of a session, the oldest first.

    They are in the directory of the session. Older versions wrote them beside its transcript, for all sessions.
    """
    own = transcript.with_suffix("") / "subagents"
    found = []
    for path in (*own.rglob(f"{_AGENT_PREFIX}*.jsonl"), *transcript.parent.glob(f"{_AGENT_PREFIX}*.jsonl")):
        try:
            status = path.stat(follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                continue
            if path.parent == transcript.parent and _read_session(path) != session_id:
                continue
        except OSError:  # deleted just now, or it cannot be read, which the archiver sees and counts
            status = None
        found.append((0 if status is None else status.st_mtime_ns, SubAgentTranscript(path, _sub_agent_title(path))))
    return tuple(transcript for _, transcript in sorted(found))


def _read_session(path: Path) -> str:
    with open_regular(path) as file:
        return peek(file).session_id


def _sub_agent_title(path: Path) -> str:
    """Return the kind and the task of a sub-agent, as the host noted them; its id without a note."""
    try:
        values = json.loads(read_regular(path.with_suffix(".meta.json"), _MAX_SETTINGS_BYTES))
    except (OSError, ValueError, RecursionError):
        values = None
    fields = values if isinstance(values, Mapping) else {}
    words = [text for key in ("agentType", "description") if isinstance(text := fields.get(key), str) and text.strip()]
    return shorten(one_line(", ".join(words)), _TITLE_CHARACTERS) or path.stem.removeprefix(_AGENT_PREFIX)


def _read_directory(path: Path) -> tuple[str, str]:
    """Return the working directory and the session that a transcript names; "" where it names none."""
    try:
        with open_transcript(path) as file:
            facts = peek(file)
    except (OSError, UnreadableTranscriptError) as error:
        log.info("transcript_unreadable", path=str(path), reason=str(error))
        return "", ""
    return (facts.cwd if facts.cwd.startswith(os.sep) and "\0" not in facts.cwd else ""), session_id_of(path, facts)


def _transcripts_below(directory: Path, depth: int, prefix: str) -> Iterator[tuple[Path, os.stat_result]]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        name = entry.name
        try:
            if entry.is_dir(follow_symlinks=False) and depth:
                # Below a session's own directory are its sub-agents.
                yield from _transcripts_below(Path(entry.path), depth - 1, prefix)
            elif name.endswith(_SUFFIXES[prefix]) and name.startswith(prefix) and not name.startswith(_AGENT_PREFIX):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and status.st_size:
                    yield Path(entry.path), status
        except FileNotFoundError:  # deleted just now
            continue


def project_slug(directory: Path) -> str:
    """Return the name that Claude Code gives to the transcripts of a directory."""
    path = str(directory)
    units = path.encode("utf-16-le", "surrogatepass")
    codes = [int.from_bytes(units[i : i + 2], "little") for i in range(0, len(units), 2)]
    slug = "".join(chr(code) if code < 128 and chr(code).isalnum() else "-" for code in codes)  # noqa: PLR2004
    if len(slug) <= _SLUG_LENGTH:
        return slug
    value = 0
    for code in codes:
        value = (31 * value + code) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    return f"{slug[:_SLUG_LENGTH]}-{_base36(abs(signed))}"


def _base36(value: int) -> str:
    digits = ""
    while value:
        value, digit = divmod(value, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def host_retention_days(claude_home: Path) -> int:
    """Return for how many days Claude Code keeps transcripts, by its settings. It may delete them earlier."""
    try:
        settings = json.loads(read_regular(claude_home / "settings.json", _MAX_SETTINGS_BYTES))
    except (OSError, ValueError, RecursionError):
        return HOST_DEFAULT_DAYS
    days = settings.get("cleanupPeriodDays") if isinstance(settings, Mapping) else None
    return days if isinstance(days, int) and not isinstance(days, bool) and days >= 0 else HOST_DEFAULT_DAYS


HISTORY: Final = "history.jsonl"

_PASTED: Final = lazy_pattern(r"\[Pasted text #(\d++)[^\[\]]*\]")


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

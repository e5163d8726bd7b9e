"""Forget a session: delete its archives and every trace of them, and see what the host still has of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import os_reason
from echod.files import open_regular, read_regular, sync_directory, write_private_durable
from echod.memory.conversation.archive import EDGE_BYTES, ArchiveHeader, parse_header
from echod.memory.conversation.index import remove_entry, remove_row
from echod.memory.conversation.model import archive_name
from echod.sessions.dialects import LineReader
from echod.sessions.journal import RootJournal, RootRecord
from echod.sessions.receipts import (
    Decision,
    read_receipt,
    receipt_path,
    receipts_version,
    sync_log,
    write_decision,
)
from echod.sessions.roots import EPHEMERAL, INDEX, SessionError, SessionRoot
from echod.state.session_log import SessionLog, SourceState

UNFINISHED: Final = ".echod/forgetting.json"
"""The session that is being forgotten, from before the first deletion until after the last."""


class ForgottenSession(NamedTuple):
    """The archives of a session that are, or were, forgotten, and the files of the host that still have it."""

    session_id: str
    archives: tuple[int, ...]
    held_by_host: tuple[str, ...] = ()


def read_archive_header(root: SessionRoot, number: int) -> ArchiveHeader | None:
    """Return the front matter of an archive; None if it has none.

    Raises:
        SessionError: the archive cannot be read.
    """
    path = root.archive_path(number)
    try:
        with open_regular(path, follow_symlinks=False) as file:
            return parse_header(file.read(EDGE_BYTES).decode("utf-8", "replace"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {os_reason(error)}.") from error


def find_session(root: SessionRoot, words: str) -> ForgottenSession:
    """Return the session with an id, a unique beginning of one, or an archive of a number.

    Raises:
        SessionError: there is none, or several match.
    """
    by_session: dict[str, list[int]] = {}
    for number in root.archives():
        header = read_archive_header(root, number)
        receipt = read_receipt(root, number)
        session = receipt.session_id if receipt is not None else header.session_id if header is not None else ""
        by_session.setdefault(session or archive_name(number), []).append(number)
    if words.isdecimal() and (found := next((s for s, numbers in by_session.items() if int(words) in numbers), None)):
        return ForgottenSession(found, tuple(by_session[found]))
    matches = [session for session in by_session if session == words] or [
        session for session in by_session if session.startswith(words)
    ]
    if len(matches) > 1:
        raise SessionError(f"{len(matches)} sessions begin with {words}. Type more of the id.")
    if not matches:
        text = f"No archive in {root.conversations} is of a session {words}. List them: echod sessions list"
        raise SessionError(text)
    return ForgottenSession(matches[0], tuple(by_session[matches[0]]))


def forget(journal: RootJournal, session_log: SessionLog, session: ForgottenSession, job: int, now: float) -> None:
    """Delete the archives of a session with their rows, entries, receipts and earlier contents.

    It is never archived again unless the user names it. The caller holds the directory.

    Raises:
        SessionError: a file cannot be changed. Repeat the command to finish.
    """
    intent = {"session_id": session.session_id, "archives": list(session.archives), "job": job, "at": now}
    write_private_durable(journal.root.memory / UNFINISHED, json.dumps(intent).encode())
    _erase(journal, session_log, intent)


def finish_forgetting(journal: RootJournal, session_log: SessionLog) -> None:
    """Complete what a kill interrupted. The caller holds the directory."""
    path = journal.root.memory / UNFINISHED
    try:
        intent = json.loads(read_regular(path, EDGE_BYTES))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise SessionError(f"{path} cannot be read. Delete it, and forget the session again.") from error
    _erase(journal, session_log, intent)


def _erase(journal: RootJournal, session_log: SessionLog, intent: dict[str, object]) -> None:
    root, session_id = journal.root, str(intent["session_id"])
    archives = intent["archives"]
    numbers = [int(number) for number in archives] if isinstance(archives, list) else []
    root.keep_number()
    receipts = [receipt for number in numbers if (receipt := read_receipt(root, number)) is not None]
    sources = {part.path for receipt in receipts for part in receipt.sources if part.path}
    stamps = tuple((path, *_stamp(Path(path))) for path in sorted(sources))
    at = float(str(intent["at"]))
    write_decision(root, Decision(session_id, SourceState.FORGOTTEN, at, stamps))
    index, window = root.read_text(INDEX), root.read_text(EPHEMERAL)
    for number in numbers:
        index, window = remove_row(index, number), remove_entry(window, archive_name(number))
    write_private_durable(root.memory / INDEX, index.encode())
    write_private_durable(root.memory / EPHEMERAL, window.encode())
    journal.forget(session_id, numbers)
    for number in numbers:
        root.archive_path(number).unlink(missing_ok=True)
        (root.memory / receipt_path(number)).unlink(missing_ok=True)
    sync_directory(root.conversations)
    done = f"forgot {len(numbers)} archives of a session"
    journal.commit(RootRecord(0, int(str(intent["job"])), "forget", at, done, (), undoable=False), {})
    (root.memory / UNFINISHED).unlink(missing_ok=True)
    sync_log(root, session_log)
    session_log.mark_sources(root.key, session_id, SourceState.FORGOTTEN, "it was forgotten")
    assert session_log.root_version(root.key) == receipts_version(root)  # noqa: S101  `sync_log` has just made it so


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def files_of_host(session_id: str, claude_home: Path, paths: Iterable[Path]) -> tuple[str, ...]:
    """Return what the host still has of a session, as phrases with paths."""
    return tuple(_files_of_host(session_id, claude_home, paths))


def _files_of_host(session_id: str, claude_home: Path, paths: Iterable[Path]) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        if path.exists():
            yield f"the transcript {path}"
        if (beside := path.with_suffix("")).is_dir():
            yield f"its sub-agents and tool outputs in {beside}"
    history = claude_home / "history.jsonl"
    try:
        with open_regular(history) as file:
            needle = json.dumps(session_id).encode()
            number = sum(line.data is not None and needle in line.data for line in LineReader(file, 0).lines())
    except OSError:
        return
    if number:
        yield f"{number} prompts in {history}"

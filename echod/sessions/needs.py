"""Find the sessions of a project that have to be archived, from names, sizes and times of their transcripts."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import os_reason
from echod.log import get_logger
from echod.sessions.receipts import Receipt, SummaryKind, read_receipts, receipts_version
from echod.sessions.roots import EXPIRY_WARNING_DAYS, SessionError, SessionProjects, SessionRoot
from echod.sessions.transcripts import Transcript, TranscriptFinder
from echod.state.jobs import JobKind, Need
from echod.state.session_log import SessionHint, SessionLog, SourceRecord, SourceState
from echod.store.layout import Store, find_stores_in_resolved_root

log = get_logger(__name__)

MAX_SUMMARY_ATTEMPTS: Final = 5
_SUMMARY_PAUSE_SECONDS: Final = 600.0
_SUMMARY_PAUSE_FACTOR: Final = 4.0
_FRESH_SECONDS: Final = 2.0
_DAY_SECONDS: Final = 86_400.0
_HINT_TOLERANCE_SECONDS: Final = 5.0
"""A host may write a line after it has reported the end of a session."""


class WaitingSession(NamedTuple):
    """A session with something to archive: its newest transcript, and when it is due (Unix seconds)."""

    transcript: Transcript
    due: float


class HostState(NamedTuple):
    """The sessions of a project with something to archive, and for how many days the host keeps transcripts."""

    project: Path
    enabled: bool
    waiting: Sequence[WaitingSession]
    host_days: int

    def expiring(self, now: float) -> int:
        """Return how many of the waiting sessions are within three days of their deletion, or beyond it."""
        limit = (self.host_days - EXPIRY_WARNING_DAYS) * _DAY_SECONDS
        return sum(now - waiting.transcript.changed_at >= limit for waiting in self.waiting)


class SessionNeedFinder:
    """Finds what has to be archived. Looks at the disk at most every two seconds. Thread-safe.

    Args:
        projects: the projects whose conversations are archived.
        finder: finds transcripts.
        session_log: how far they were read; None if nothing was ever recorded.
        idle_seconds: after so much time without a change a session counts as ended.
        summarises: whether the user has a command for summaries.
    """

    def __init__(
        self,
        projects: SessionProjects,
        finder: TranscriptFinder,
        session_log: SessionLog | None,
        *,
        idle_seconds: float,
        summarises: bool,
    ) -> None:
        self._projects = projects
        self._finder = finder
        self._log = session_log
        self._idle_seconds = idle_seconds
        self._summarises = summarises
        self._looked_at = 0.0
        self._looked_for: frozenset[Path] = frozenset()
        self._found: Mapping[Path, tuple[Transcript, ...]] = {}
        self._pending: dict[str, tuple[str, tuple[Receipt, ...]]] = {}
        self._lock = threading.Lock()

    def find(self, store: Store, mode: str, now: float) -> tuple[Need, ...]:
        """Return the needs of a project whose conversations are archived. Only its first store counts."""
        if not _is_first(store):
            return ()
        root = self._projects.root(store.project)
        needs: dict[tuple[JobKind, str], Need] = {}
        waiting = self.waiting(store.project, now)
        hints = self._hints([one.transcript.session for one in waiting])
        for session, due in waiting:
            hint = hints.get(session.session, SessionHint())
            kind, reason = JobKind.ARCHIVE, "a session that ended or is idle"
            if hint.compacting_at is not None and due > now:
                kind, reason, due = JobKind.CHECKPOINT, "the host compacts the session", now  # noqa: PLW2901
            stamp = f"{session.path} {session.size} {session.mtime_ns} {mode}"
            need = Need(kind, store.key, session.session, _fingerprint(stamp), reason, due)
            needs[kind, session.session] = need
        for receipt in self._pending_summaries(root):
            key = (JobKind.ARCHIVE, receipt.session_id)
            if key not in needs:
                pause = _SUMMARY_PAUSE_SECONDS * _SUMMARY_PAUSE_FACTOR ** max(0, receipt.attempts - 1)
                due = receipt.attempted_at + pause if receipt.attempts else now
                stamp = f"summary {receipt.archive} {receipt.attempts} {receipt.at} {mode}"
                needs[key] = Need(*key[:1], store.key, key[1], _fingerprint(stamp), "its summary is missing", due)
        return tuple(needs.values())

    def waiting(self, project: Path, now: float) -> tuple[WaitingSession, ...]:
        """Return the sessions of a project with something that is not archived, the oldest first."""
        root = self._projects.root(project)
        sources = {} if self._log is None else self._log.list_sources(root.key)
        transcripts = [one for one in self.transcripts(project, now) if _is_new(one, sources.get(str(one.path)))]
        hints = self._hints([transcript.session for transcript in transcripts])
        return tuple(
            WaitingSession(one, self._due(one, hints.get(one.session, SessionHint()), now)) for one in transcripts
        )

    def transcripts(self, project: Path, now: float) -> tuple[Transcript, ...]:
        """Return the transcripts of a project, the oldest first.

        Raises:
            SessionError: they cannot be listed, which does not mean that there are none.
        """
        with self._lock:
            if project not in self._looked_for or not 0 <= now - self._looked_at < _FRESH_SECONDS:
                wanted = self._looked_for | {project}
                found: dict[Path, list[Transcript]] = {}
                try:
                    for transcript in self._finder.find(wanted):
                        found.setdefault(transcript.project, []).append(transcript)
                except OSError as error:
                    text = f"{error.filename} cannot be listed: {os_reason(error)}. No session there is archived."
                    raise SessionError(text) from error
                self._found = {one: tuple(transcripts) for one, transcripts in found.items()}
                self._looked_for, self._looked_at = wanted, now
            return self._found.get(project, ())

    def look_again(self) -> None:
        """Look at the disk at the next question: a session has just ended, or everything is inspected again."""
        with self._lock:
            self._looked_for = frozenset()

    def transcripts_of(self, project: Path, session: str, now: float) -> tuple[Transcript, ...]:
        """Return the transcripts of one session, the oldest first."""
        return tuple(one for one in self.transcripts(project, now) if one.session == session)

    def is_idle(self, transcript: Transcript, now: float) -> bool:
        """Return whether a session has ended or was idle for long enough."""
        return self.due(transcript, now) <= now

    def due(self, transcript: Transcript, now: float) -> float:
        """Return when a session counts as ended, in Unix seconds."""
        return self._due(transcript, self._hints([transcript.session]).get(transcript.session, SessionHint()), now)

    def _due(self, transcript: Transcript, hint: SessionHint, now: float) -> float:
        changed = min(transcript.changed_at, now)
        if hint.ended_at is not None and hint.ended_at >= changed - _HINT_TOLERANCE_SECONDS:
            return now
        return changed + self._idle_seconds

    def _hints(self, sessions: list[str]) -> Mapping[str, SessionHint]:
        return {} if self._log is None or not sessions else self._log.hints(sessions)

    def _pending_summaries(self, root: SessionRoot) -> Iterator[Receipt]:
        if not self._summarises or not root.exists:
            return
        try:
            version = receipts_version(root)
            known = self._pending.get(root.key)
            if known is None or known[0] != version:
                pending = tuple(one for one in read_receipts(root) if one.summary is SummaryKind.PENDING)
                known = self._pending[root.key] = (version, pending)
        except SessionError as error:
            log.warning("receipts_unreadable", reason=str(error))
            return
        yield from (receipt for receipt in known[1] if receipt.attempts < MAX_SUMMARY_ATTEMPTS)


def _is_first(store: Store) -> bool:
    stores = find_stores_in_resolved_root(store.project)
    return not stores or stores[0] == store


def _is_new(transcript: Transcript, known: SourceRecord | None) -> bool:
    if known is None:
        return True
    if known.state is SourceState.FORGOTTEN:
        return False
    if known.mtime_ns == 0:  # read from a receipt, which knows only how far the transcript was read
        return transcript.size != known.offset
    return (transcript.size, transcript.mtime_ns) != (known.size, known.mtime_ns)


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]

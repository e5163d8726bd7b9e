"""Archive one session: decide whether its archive is new, goes on, or is not needed, and write it with its index.

The order in one change is: the archive, its receipt, the row in ARCHIVE.md, the entry in EPHEMERAL.md. All are written
or none (`journal`). A summary by the user's command comes afterwards, as a change of its own, so that no conversation
waits for a model.

The answer is searched for secrets like everything else. `echod.runtime.system` runs it. A module of its own,
so that commands that only list archives do not load it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from echod.errors import os_reason
from echod.files import file_version
from echod.log import get_logger
from echod.memory.conversation.archive import ArchiveSummary, BodyWriter
from echod.memory.conversation.digest import ConversationDigest, SummaryAnswerError, parse_summary, summary_prompt
from echod.memory.conversation.model import (
    ArchiveOrigin,
    NotATranscriptError,
    Speaker,
    TranscriptMessage,
    utc_timestamp,
)
from echod.runtime.system import UserCommandError
from echod.sessions.archive_writer import ArchiveDraft, ArchiveWriter, BaseArchive, SessionOutcome
from echod.sessions.dialects import (
    LineReader,
    UnreadableTranscriptError,
    open_transcript,
    peek,
    session_id_of,
    tail_digest,
)
from echod.sessions.forget import finish_forgetting
from echod.sessions.ingest import Ingester, Intake, without_secrets
from echod.sessions.journal import ChangedMeanwhileError, RootJournal, RootRecord, Tracer, ignore_step
from echod.sessions.receipts import (
    Decision,
    SourceRange,
    SummaryKind,
    read_decisions,
    read_receipt,
    session_receipts,
    sync_log,
    write_decision,
)
from echod.sessions.roots import SessionError, SessionRoot
from echod.sessions.transcripts import SubAgentTranscript, find_sub_agents
from echod.state.session_log import SessionLog, SourceRecord, SourceState

Summarizer = Callable[[str], str]
"""Returns the answer to a prompt. Raises `UserCommandError`."""


def summarize_digest(
    summarizer: Summarizer, digest: ConversationDigest
) -> tuple[ArchiveSummary, tuple[str, ...]] | str:
    """Return the summary and topics of a conversation by the user's command, or why there is none."""
    try:
        found = parse_summary(summarizer(summary_prompt(digest.condensed)))
    except (UserCommandError, SummaryAnswerError) as error:
        return str(error)
    summary = ArchiveSummary(
        without_secrets(found.text).text,
        tuple(without_secrets(text).text for text in found.decisions),
        tuple(without_secrets(text).text for text in found.actions),
    )
    return summary, tuple(without_secrets(topic).text for topic in found.topics)


log = get_logger(__name__)

EVICTED: Final = ".echod/evicted.md"
"""Entries that left EPHEMERAL.md although no archive has their conversation."""

_MAX_NUMBERING_ATTEMPTS: Final = 5
_MAX_SUMMARY_ATTEMPTS: Final = 5


class SessionSource(NamedTuple):
    """A session to archive.

    Attributes:
        path: its transcript.
        project: the root of the project; "" if the user named the transcript.
        is_complete: whether nothing is added to a last line that has no end.
        requested: whether the user named it, which overrides an earlier decision to forget it.
    """

    path: Path
    project: str = ""
    is_complete: bool = True
    requested: bool = False


_Read = tuple[SourceRange, tuple[int, int]]
"""The part of a file that was read, with the file's size and its modification time in nanoseconds."""


def _part_read(path: Path, file: BinaryIO, start: int, reader: LineReader, status: os.stat_result) -> _Read:
    tail = tail_digest(file, reader.offset)
    return SourceRange(str(path), start, reader.offset, reader.sha256(), tail), (status.st_size, status.st_mtime_ns)


class Archiver:
    """Writes the archives of one directory.

    Args:
        root: the directory.
        session_log: the database.
        clock: returns Unix seconds.
        summarizer: the user's command; None without one.
        trace: called before each step of a change.
    """

    def __init__(
        self,
        root: SessionRoot,
        session_log: SessionLog,
        clock: Callable[[], float],
        *,
        summarizer: Summarizer | None = None,
        trace: Tracer = ignore_step,
    ) -> None:
        self.root = root
        self.journal = RootJournal(root, trace=trace)
        self._log = session_log
        self._clock = clock
        self._summarizer = summarizer
        self._writer = ArchiveWriter(root, self.journal, session_log, clock, summarises=summarizer is not None)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the directory, complete interrupted changes, and bring the database in line.

        Raises:
            SessionError: the directory cannot be used.
        """
        self.root.require()
        with self.root.locked():
            self.journal.recover()
            finish_forgetting(self.journal, self._log)
            sync_log(self.root, self._log)
            yield

    def archive(self, source: SessionSource, kind: ArchiveOrigin, job: int | None) -> SessionOutcome:
        """Archive what is new of a session. A session that goes on keeps its number.

        Raises:
            SessionError: the transcript cannot be read or is none, or the directory cannot be used.
        """
        with self.opened(), _open_transcript(source.path) as (file, status):
            return self._archive_file(source, kind, job, file, status)

    def _archive_file(
        self, source: SessionSource, kind: ArchiveOrigin, job: int | None, file: BinaryIO, status: os.stat_result
    ) -> SessionOutcome:
        facts = peek(file)
        session_id = session_id_of(source.path, facts)
        known = self._log.find_source(self.root.key, str(source.path))
        if (refusal := self._refusal(session_id, source)) is not None:
            return SessionOutcome(session_id, None, refusal)
        base = self._find_base(session_id)
        start = self._start_of(known, base, file, file.seek(0, os.SEEK_END))
        intake = self._begin(base, Path(source.project or facts.cwd).name, source.project or facts.cwd)
        reader = LineReader(file, start)
        with tempfile.TemporaryFile(dir=self.root.private) as body, self._log.key_lookup(self.root.key) as known_key:
            ingester = Ingester(intake, known_key)
            try:
                for text in ingester.read_lines(reader, is_complete=source.is_complete):
                    body.write(text.encode())
                if kind is ArchiveOrigin.SESSION and source.is_complete:
                    for text in ingester.flush_held():
                        body.write(text.encode())
            except NotATranscriptError as error:
                if start or not status.st_size:
                    return self._skip(source, session_id, status, reader.offset, "it has no typed prompt")
                raise SessionError(f"{source.path} is no transcript: {error}.") from error
            read = [_part_read(source.path, file, start, reader, status)]
            for sub_agent in find_sub_agents(source.path, session_id):
                read += self._read_sub_agent(sub_agent, base, ingester, body, is_complete=source.is_complete)
            ranges = tuple(part for part, _ in read)
            at = intake.digest.ended
            draft = ArchiveDraft(
                intake, body, base, kind, source.project, ranges,
                utc_timestamp(self._clock() if at is None else at), intake.digest.extractive_summary(),
            )  # fmt: skip
            records = [
                SourceRecord(
                    self.root.key, part.path, source.project, session_id, SourceState.ARCHIVED, "", None,
                    stamp[0], stamp[1], part.end, part.tail, self._clock(),
                )
                for part, stamp in read
            ]  # fmt: skip
            return self._finish(draft, session_id, records, job)

    def _read_sub_agent(
        self,
        sub_agent: SubAgentTranscript,
        base: BaseArchive | None,
        ingester: Ingester,
        body: BinaryIO,
        *,
        is_complete: bool,
    ) -> Iterator[_Read]:
        """Append what is new of a sub-agent. One that cannot be read keeps no session from its archive."""
        path = sub_agent.path
        try:
            with _open_transcript(path) as (file, status):
                known = self._log.find_source(self.root.key, str(path))
                start = self._start_of(known, base, file, file.seek(0, os.SEEK_END))
                reader = LineReader(file, start)
                texts = ingester.read_sub_agent(reader, sub_agent.title, is_complete=is_complete)
                body.writelines(text.encode() for text in texts)
                if reader.offset > start:
                    yield _part_read(path, file, start, reader, status)
        except SessionError as error:
            log.warning("sub_agent_unreadable", path=str(path), reason=str(error))
            ingester.count_unreadable()

    def archive_messages(
        self, session_id: str, messages: Iterable[TranscriptMessage], digest: ConversationDigest, job: int | None
    ) -> SessionOutcome:
        """Archive the message list of a host. `digest` has the times and the project that the host knows.

        Raises:
            SessionError: the directory cannot be used.
        """
        with self.opened():
            base = self._find_base(session_id)
            intake = self._begin(base, digest.project, digest.cwd)
            intake.agent = "host"
            intake.digest.see_time(digest.started)
            intake.digest.see_time(digest.ended)
            with tempfile.TemporaryFile(dir=self.root.private) as body, self._log.key_lookup(self.root.key) as known:
                for text in Ingester(intake, known).read_messages(messages):
                    body.write(text.encode())
                draft = ArchiveDraft(
                    intake, body, base, ArchiveOrigin.SESSION, "", (),
                    utc_timestamp(self._clock()), intake.digest.plain_summary(),
                )  # fmt: skip
                return self._finish(draft, session_id, (), job)

    def archive_prompts(
        self, session_id: str, messages: Iterable[TranscriptMessage], project: Path, origin: str, job: int | None
    ) -> SessionOutcome:
        """Archive the prompts of a session whose transcript was deleted. `origin` is the file that still has them.

        Raises:
            SessionError: the directory cannot be used.
        """
        with self.opened():
            if (refusal := self._refusal(session_id, SessionSource(Path(), requested=False))) is not None:
                return SessionOutcome(session_id, None, refusal)
            intake = self._begin(None, project.name, str(project))
            intake.agent = "history"
            with tempfile.TemporaryFile(dir=self.root.private) as body, self._log.key_lookup(self.root.key) as known:
                for text in Ingester(intake, known).read_messages(messages):
                    body.write(text.encode())
                at = intake.digest.ended
                draft = ArchiveDraft(
                    intake, body, None, ArchiveOrigin.SESSION, str(project), (),
                    utc_timestamp(self._clock() if at is None else at), intake.digest.extractive_summary(), origin,
                )  # fmt: skip
                return self._finish(draft, session_id, (), job)

    # Decisions

    def _refusal(self, session_id: str, source: SessionSource) -> str | None:
        decision = read_decisions(self.root).get(session_id)
        if decision is None:
            return None
        if source.requested:
            write_decision(self.root, None, session_id=session_id)
            return None
        if decision.state is SourceState.FORGOTTEN:
            return "it was forgotten (echod sessions forget)"
        stamp = _stamp_of(source.path)
        if any(known[0] == str(source.path) and known[1:] == stamp for known in decision.sources):
            return "its archive was undone, and it has not changed since"
        write_decision(self.root, None, session_id=session_id)
        return None

    def _find_base(self, session_id: str) -> BaseArchive | None:
        numbers = self._log.archives_of(self.root.key, session_id)
        receipts = [one for one in session_receipts(self.root, session_id, numbers) if one.agent != "history"]
        if not session_id or not receipts:
            return None
        newest = receipts[-1]
        in_place = newest.source == ArchiveOrigin.SESSION and self._writer.body_range(newest.archive) is not None
        return BaseArchive(newest, in_place)

    def _start_of(self, known: SourceRecord | None, base: BaseArchive | None, file: BinaryIO, size: int) -> int:
        """Return from where to read on: the end of what was archived, if that part of the file is still the same."""
        if known is None or base is None or known.state is not SourceState.ARCHIVED or known.offset > size:
            return 0
        return known.offset if tail_digest(file, known.offset) == known.tail else 0

    def _begin(self, base: BaseArchive | None, project: str, cwd: str) -> Intake:
        if base is None:
            return Intake(ConversationDigest(project=project, cwd=cwd), BodyWriter())
        receipt = base.receipt
        speaker = Speaker(receipt.last_speaker) if base.in_place and receipt.last_speaker else None
        intake = Intake(ConversationDigest.from_json(receipt.digest), BodyWriter(speaker))
        intake.last_group = receipt.last_group
        intake.load_held(receipt.held)
        return intake

    def _skip(
        self, source: SessionSource, session_id: str, status: os.stat_result, offset: int, reason: str
    ) -> SessionOutcome:
        record = SourceRecord(
            self.root.key, str(source.path), source.project, session_id, SourceState.SKIPPED, reason, None,
            status.st_size, status.st_mtime_ns, offset, "", self._clock(),
        )  # fmt: skip
        self._log.put_source(record)
        return SessionOutcome(session_id, None, reason)

    def _finish(
        self, draft: ArchiveDraft, session_id: str, records: Sequence[SourceRecord], job: int | None
    ) -> SessionOutcome:
        intake, base = draft.intake, draft.base
        if not intake.messages_out:
            if base is not None and not base.receipt.listed and draft.source is ArchiveOrigin.SESSION:
                return self._writer.list_checkpoint(draft, base.receipt, records, job)
            reason = "nothing is new" if base or intake.continued else "it has no typed prompt"
            state = SourceState.ARCHIVED if base else SourceState.SKIPPED
            archive = base.receipt.archive if base else None
            for record in records:
                self._log.put_source(record._replace(state=state, reason=reason, archive=archive))
            return SessionOutcome(session_id, None, reason)
        if not intake.digest.prompts and not intake.continued:
            reason = "it has no typed prompt"
            for record in records:
                self._log.put_source(record._replace(state=SourceState.SKIPPED, reason=reason))
            return SessionOutcome(session_id, None, reason)
        for _ in range(_MAX_NUMBERING_ATTEMPTS):
            try:
                return self._writer.write(draft, session_id, records, job)
            except ChangedMeanwhileError as error:
                log.info("archive_number_taken", reason=str(error))
        raise SessionError(f"Other programs keep writing in {self.root.conversations}. Try again.")

    def undo(self, record: RootRecord, job: int) -> None:
        """Undo a change, and leave the session alone until its transcript changes. The caller holds the directory.

        Raises:
            SessionError: it cannot be undone any more.
        """
        numbers = [] if record.archive is None else [record.archive]
        receipts = [receipt for number in numbers if (receipt := read_receipt(self.root, number)) is not None]
        self.root.keep_number()
        self.journal.undo(record, job=job, now=self._clock())
        removed = [receipt for receipt in receipts if read_receipt(self.root, receipt.archive) != receipt]
        for receipt in removed:
            paths = {part.path for part in receipt.sources if part.path}
            stamps = tuple((path, *stamp) for path in sorted(paths) if (stamp := _stamp_of(Path(path))))
            write_decision(self.root, Decision(receipt.session_id, SourceState.UNDONE, self._clock(), stamps))
        for number in numbers:
            present = read_receipt(self.root, number)
            if present is not None and present not in receipts:
                write_decision(self.root, None, session_id=present.session_id)
        sync_log(self.root, self._log)

    # Summaries

    def summarise_pending(self, job: int | None, session_id: str | None = None) -> int:
        """Ask the user's command for the summaries that are missing, and return how many were written.

        `session_id` limits it to one session. The directory is not held while the command runs.
        """
        if self._summarizer is None or not self.root.exists:
            return 0
        written = 0
        for number in self.root.archives():
            receipt = read_receipt(self.root, number)
            if receipt is None or receipt.summary != SummaryKind.PENDING or receipt.attempts >= _MAX_SUMMARY_ATTEMPTS:
                continue
            if session_id not in (None, receipt.session_id):
                continue
            answer = summarize_digest(self._summarizer, ConversationDigest.from_json(receipt.digest))
            with self.opened():
                written += self._writer.write_summary(number, receipt, answer, job)
        return written


def _stamp_of(path: Path) -> tuple[int, int] | None:
    try:
        _, size, mtime_ns, _ = file_version(path.stat())
    except OSError:
        return None
    return size, mtime_ns


@contextmanager
def _open_transcript(path: Path) -> Iterator[tuple[BinaryIO, os.stat_result]]:
    try:
        status = path.stat()
        file = open_transcript(path)
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {os_reason(error)}.") from error
    except UnreadableTranscriptError as error:
        raise SessionError(f"{path} cannot be read: {error}.") from error
    with file:
        yield file, status


def content_session_id(messages: Iterable[TranscriptMessage]) -> str:
    """Return an id for a message list that has none."""
    digest = hashlib.sha256(b"".join(message.key.to_bytes(8, "big", signed=True) for message in messages))
    return f"host-{digest.hexdigest()[:12]}"

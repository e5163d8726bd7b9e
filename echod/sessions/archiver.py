"""Archive one session: decide whether its archive is new, goes on, or is not needed, and write it with its index.

The order in one change is: the archive, its receipt, the row in ARCHIVE.md, the entry in EPHEMERAL.md. All are written
or none (`journal`). A summary by the user's command comes afterwards, as a change of its own, so that no conversation
waits for a model.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from echod.errors import os_reason
from echod.files import file_version, open_regular
from echod.log import get_logger
from echod.memory.conversation.archive import (
    EDGE_BYTES,
    ArchiveHeader,
    ArchiveSummary,
    archive_name,
    find_body,
    render_head,
    render_tail,
)
from echod.memory.conversation.body import BodyWriter
from echod.memory.conversation.digest import ConversationDigest
from echod.memory.conversation.index import entry_archive, find_row, put_entry, render_entry, set_row
from echod.memory.conversation.model import (
    ArchiveSource,
    NotATranscriptError,
    Speaker,
    TranscriptMessage,
    format_session_duration,
    utc_timestamp,
)
from echod.sessions.forget import finish_forgetting
from echod.sessions.ingest import Ingester, Intake, copy_chunks, peek, session_id_of
from echod.sessions.journal import ChangedMeanwhileError, RootJournal, RootRecord, Staged, Tracer, ignore_step
from echod.sessions.lines import CHUNK_BYTES, LineReader, tail_digest
from echod.sessions.receipts import (
    Decision,
    Receipt,
    SourceRange,
    SummaryKind,
    read_decisions,
    read_receipt,
    receipt_path,
    receipts_version,
    session_receipts,
    sync_log,
    write_decision,
)
from echod.sessions.roots import CONVERSATIONS, EPHEMERAL, INDEX, SessionError, SessionRoot
from echod.sessions.summaries import Summarizer, summarize_digest
from echod.state.session_log import SessionLog, SourceRecord, SourceState

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


class SessionOutcome(NamedTuple):
    """The result for one session. `archive` is None if nothing was written; `text` is a sentence for the user."""

    session_id: str
    archive: int | None
    text: str
    receipt: Receipt | None = None


class _Base(NamedTuple):
    """The newest archive of a session: its receipt, and whether it can be continued in place."""

    receipt: Receipt
    in_place: bool


@dataclass(frozen=True, slots=True)
class _Draft:
    """A conversation that was read, before it has a number."""

    intake: Intake
    body: BinaryIO
    base: _Base | None
    source: ArchiveSource
    project: str
    ranges: tuple[SourceRange, ...]
    date: str
    summary: str
    reconstructed: str = ""


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

    def archive(self, source: SessionSource, kind: ArchiveSource, job: int | None) -> SessionOutcome:
        """Archive what is new of a session. A session that goes on keeps its number.

        Raises:
            SessionError: the transcript cannot be read or is none, or the directory cannot be used.
        """
        with self.opened(), _open_transcript(source.path) as file:
            return self._archive_file(source, kind, job, file)

    def _archive_file(
        self, source: SessionSource, kind: ArchiveSource, job: int | None, file: BinaryIO
    ) -> SessionOutcome:
        status = os.fstat(file.fileno())
        facts = peek(file)
        session_id = session_id_of(source.path, facts)
        known = self._log.find_source(self.root.key, str(source.path))
        if (refusal := self._refusal(session_id, source)) is not None:
            return SessionOutcome(session_id, None, refusal)
        base = self._find_base(session_id)
        start = self._start_of(known, base, file, status.st_size)
        intake = self._begin(base, Path(source.project or facts.cwd).name, source.project or facts.cwd)
        reader = LineReader(file, start)
        with tempfile.TemporaryFile(dir=self.root.private) as body, self._log.key_lookup(self.root.key) as known_key:
            ingester = Ingester(intake, known_key)
            try:
                for text in ingester.read_lines(reader, is_complete=source.is_complete):
                    body.write(text.encode())
                if kind is ArchiveSource.SESSION and source.is_complete:
                    for text in ingester.flush_held():
                        body.write(text.encode())
            except NotATranscriptError as error:
                if start or not status.st_size:
                    return self._skip(source, session_id, status, reader.offset, "it has no typed prompt")
                raise SessionError(f"{source.path} is no transcript: {error}.") from error
            tail = tail_digest(file, reader.offset)
            ranges = (SourceRange(str(source.path), start, reader.offset, reader.sha256(), tail),)
            at = intake.digest.ended
            draft = _Draft(
                intake, body, base, kind, source.project, ranges,
                utc_timestamp(self._clock() if at is None else at), intake.digest.extractive_summary(),
            )  # fmt: skip
            record = SourceRecord(
                self.root.key, str(source.path), source.project, session_id, SourceState.ARCHIVED, "", None,
                status.st_size, status.st_mtime_ns, reader.offset, ranges[0].tail, self._clock(),
            )  # fmt: skip
            return self._finish(draft, session_id, record, job)

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
                draft = _Draft(
                    intake, body, base, ArchiveSource.SESSION, "", (),
                    utc_timestamp(self._clock()), intake.digest.plain_summary(),
                )  # fmt: skip
                return self._finish(draft, session_id, None, job)

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
                draft = _Draft(
                    intake, body, None, ArchiveSource.SESSION, str(project), (),
                    utc_timestamp(self._clock() if at is None else at), intake.digest.extractive_summary(), origin,
                )  # fmt: skip
                return self._finish(draft, session_id, None, job)

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

    def _find_base(self, session_id: str) -> _Base | None:
        numbers = tuple(self.root.archives())
        receipts = [one for one in session_receipts(self.root, session_id, numbers) if one.agent != "history"]
        if not session_id or not receipts:
            return None
        newest = receipts[-1]
        in_place = newest.source == ArchiveSource.SESSION and self._body_range(newest.archive) is not None
        return _Base(newest, in_place)

    def _body_range(self, number: int) -> tuple[int, int] | None:
        try:
            with open_regular(self.root.archive_path(number), follow_symlinks=False) as file:
                size = os.fstat(file.fileno()).st_size
                beginning = file.read(EDGE_BYTES)
                file.seek(max(0, size - EDGE_BYTES))
                return find_body(beginning, file.read(EDGE_BYTES), size)
        except OSError as error:
            raise SessionError(f"{self.root.archive_path(number)} cannot be read: {os_reason(error)}.") from error

    def _start_of(self, known: SourceRecord | None, base: _Base | None, file: BinaryIO, size: int) -> int:
        """Return from where to read on: the end of what was archived, if that part of the file is still the same."""
        if known is None or base is None or known.state is not SourceState.ARCHIVED or known.offset > size:
            return 0
        return known.offset if tail_digest(file, known.offset) == known.tail else 0

    def _begin(self, base: _Base | None, project: str, cwd: str) -> Intake:
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

    def _finish(self, draft: _Draft, session_id: str, record: SourceRecord | None, job: int | None) -> SessionOutcome:
        intake, base = draft.intake, draft.base
        if not intake.messages_out:
            if base is not None and not base.receipt.listed and draft.source is ArchiveSource.SESSION:
                return self._list_checkpoint(draft, base.receipt, record, job)
            reason = "nothing is new" if base or intake.continued else "it has no typed prompt"
            state = SourceState.ARCHIVED if base else SourceState.SKIPPED
            if record is not None:
                archive = base.receipt.archive if base else None
                self._log.put_source(record._replace(state=state, reason=reason, archive=archive))
            return SessionOutcome(session_id, None, reason)
        if not intake.digest.prompts and not intake.continued:
            if record is not None:
                reason = "it has no typed prompt"
                self._log.put_source(record._replace(state=SourceState.SKIPPED, reason=reason))
            return SessionOutcome(session_id, None, "it has no typed prompt")
        for _ in range(_MAX_NUMBERING_ATTEMPTS):
            try:
                return self._write(draft, session_id, record, job)
            except ChangedMeanwhileError as error:
                log.info("archive_number_taken", reason=str(error))
        raise SessionError(f"Other programs keep writing in {self.root.conversations}. Try again.")

    # Writing

    def _write(self, draft: _Draft, session_id: str, record: SourceRecord | None, job: int | None) -> SessionOutcome:
        receipt = self._receipt(draft, session_id, job)
        header = self._header(draft, receipt)
        in_place = draft.base is not None and draft.base.receipt.archive == receipt.archive
        archive = self.journal.stage_chunks(self._archive_chunks(draft, header, in_place=in_place))
        contents: dict[str, Staged | None] = {
            f"{CONVERSATIONS}/{archive_name(receipt.archive)}": archive,
            receipt_path(receipt.archive): self.journal.stage_bytes(receipt.encode()),
        }
        row_before = self._stage_row(header, contents)
        entry = ""
        if draft.source is ArchiveSource.SESSION:
            entry = render_entry(header._replace(message_count=draft.intake.digest.messages), draft.summary)
            self._stage_entry(entry, contents)
        verb = "continued" if in_place else "archived" if draft.source is ArchiveSource.SESSION else "checkpointed"
        summary = f"{verb} session {session_id} as {archive_name(receipt.archive)}"
        change = RootRecord(
            0, job, "archive" if draft.source is ArchiveSource.SESSION else "checkpoint", self._clock(), summary, (),
            receipt.archive, session_id, entry=entry, row_before=row_before,
        )  # fmt: skip
        self.journal.commit(change, contents)
        self._record(receipt, record, draft.intake.keys)
        counts = f"{receipt.messages} messages, {sum(receipt.redactions.values())} secrets removed"
        text = f"{verb} as {archive_name(receipt.archive)} ({counts})"
        return SessionOutcome(session_id, receipt.archive, text, receipt)

    def _record(self, receipt: Receipt, record: SourceRecord | None, keys: Iterable[int]) -> None:
        source = None if record is None else record._replace(archive=receipt.archive)
        version = receipts_version(self.root)
        self._log.record_archive(source, self.root.key, version, dict.fromkeys(keys, receipt.archive))

    def _receipt(self, draft: _Draft, session_id: str, job: int | None) -> Receipt:
        intake, base = draft.intake, draft.base
        in_place = base is not None and base.in_place and draft.source is ArchiveSource.SESSION
        earlier = base.receipt if base is not None and in_place else None
        before = 0 if base is None else int(base.receipt.digest.get("messages", 0))
        continues = None if base is None else base.receipt.archive
        if base is None and intake.continued:
            continues = max(intake.continued)
        own = Receipt(
            archive=self._next_number() if earlier is None else earlier.archive,
            job=job,
            session_id=session_id,
            source=draft.source.value,
            agent=intake.agent,
            project=draft.project,
            at=self._clock(),
            sources=draft.ranges,
            messages=intake.digest.messages - before,
            records=intake.records,
            messages_in=intake.messages_in,
            messages_out=intake.messages_out,
            prompts=intake.prompts,
            skipped=dict(intake.skipped),
            redactions=dict(intake.redactions),
            summary=SummaryKind.EXTRACTED if self._summarizer is None or draft.reconstructed else SummaryKind.PENDING,
            continues=continues if earlier is None else earlier.continues,
            listed=draft.source is ArchiveSource.SESSION,
            digest=intake.digest.to_json(),
            last_speaker=intake.last_speaker,
            last_group=intake.last_group,
            held=intake.held_to_json(),
            keys=tuple(intake.keys),
        )
        return own if earlier is None else _merged(earlier, own)

    def _next_number(self) -> int:
        try:
            return self.root.highest_number() + 1
        except SessionError as error:  # the index cannot be read, which must not keep a conversation from its archive
            log.warning("index_unreadable", reason=str(error))
            return max([0, *self.root.archives()]) + 1

    def _header(self, draft: _Draft, receipt: Receipt) -> ArchiveHeader:
        digest = draft.intake.digest
        return ArchiveHeader(
            log=receipt.archive,
            date=draft.date,
            session_id=receipt.session_id,
            message_count=receipt.messages,
            duration=format_session_duration(digest.started, digest.ended),
            source=receipt.source,
            topics=digest.topics,
            continues=receipt.continues,
            reconstructed=draft.reconstructed,
        )

    def _archive_chunks(self, draft: _Draft, header: ArchiveHeader, *, in_place: bool) -> Iterator[bytes]:
        yield render_head(header, ArchiveSummary(draft.summary)).encode()
        if in_place:
            yield from self._present_body(header.log)
        yield from copy_chunks(draft.body, 0, draft.body.seek(0, os.SEEK_END), CHUNK_BYTES)
        yield render_tail(draft.intake.digest.tags).encode()

    def _present_body(self, number: int) -> Iterator[bytes]:
        found = self._body_range(number)
        assert found is not None  # noqa: S101  `_find_base` has checked it, and the directory is locked
        with open_regular(self.root.archive_path(number), follow_symlinks=False) as file:
            yield from copy_chunks(file, *found, CHUNK_BYTES)

    def _stage_row(self, header: ArchiveHeader, contents: dict[str, Staged | None]) -> str | None:
        """Stage ARCHIVE.md with the row. A file that cannot be read is left alone; `rebuild` makes it later."""
        try:
            index = self.root.read_text(INDEX)
        except SessionError as error:
            log.warning("index_unreadable", reason=str(error))
            return None
        contents[INDEX] = self.journal.stage_bytes(set_row(index, header).encode())
        return find_row(index, header.log)

    def _stage_entry(self, entry: str, contents: dict[str, Staged | None]) -> None:
        """Stage EPHEMERAL.md with the entry. Entries that leave it without an archive are kept elsewhere."""
        try:
            present = self.root.read_text(EPHEMERAL)
        except SessionError as error:
            log.warning("ephemeral_unreadable", reason=str(error))
            return
        window = put_entry(present, entry, self.root.config().entries)
        contents[EPHEMERAL] = self.journal.stage_bytes(window.text.encode())
        archives = {archive_name(number) for number in self.root.archives()}
        lost = [evicted for evicted in window.evicted if entry_archive(evicted) not in archives]
        if lost:
            kept = self.root.read_text(EVICTED)
            contents[EVICTED] = self.journal.stage_bytes((kept + "".join(f"{one}\n\n" for one in lost)).encode())

    def _list_checkpoint(
        self, draft: _Draft, receipt: Receipt, record: SourceRecord | None, job: int | None
    ) -> SessionOutcome:
        """Put an entry into EPHEMERAL.md for a session that ended right after its checkpoint."""
        header = self._header(draft, receipt)._replace(message_count=draft.intake.digest.messages)
        listed = replace(receipt, listed=True, job=job)
        contents: dict[str, Staged | None] = {receipt_path(receipt.archive): self.journal.stage_bytes(listed.encode())}
        entry = render_entry(header, draft.summary)
        self._stage_entry(entry, contents)
        name = archive_name(receipt.archive)
        text = f"session {receipt.session_id} ended, and {name} has all of it"
        change = RootRecord(
            0, job, "archive", self._clock(), text, (), receipt.archive, receipt.session_id, entry=entry
        )
        self.journal.commit(change, contents)
        self._record(listed, record, ())
        return SessionOutcome(receipt.session_id, receipt.archive, f"ended; {name} has all of it", listed)

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
                written += self._write_summary(number, receipt, answer, job)
        return written

    def _write_summary(
        self, number: int, receipt: Receipt, answer: tuple[ArchiveSummary, Sequence[str]] | str, job: int | None
    ) -> bool:
        present = read_receipt(self.root, number)
        if present is None or present.digest != receipt.digest:
            return False  # it went on meanwhile, and is summarised as a whole the next time
        attempted = replace(present, attempts=present.attempts + 1, attempted_at=self._clock())
        if isinstance(answer, str):
            log.warning("summary_failed", archive=number, reason=answer, attempts=attempted.attempts)
            path = receipt_path(number)
            change = RootRecord(0, None, "summary-failed", self._clock(), f"no summary for {number:03}: {answer}", ())
            self.journal.commit(change, {path: self.journal.stage_bytes(attempted.encode())})
            self._record(attempted, None, ())
            return False
        return self._replace_summary(replace(attempted, summary=SummaryKind.MODEL), answer, job)

    def _replace_summary(self, receipt: Receipt, answer: tuple[ArchiveSummary, Sequence[str]], job: int | None) -> bool:
        summary, topics = answer
        found = self._body_range(receipt.archive)
        if found is None:
            return False
        digest = ConversationDigest.from_json(receipt.digest)
        at = digest.ended if receipt.agent != "host" else receipt.at
        header = ArchiveHeader(
            receipt.archive, utc_timestamp(receipt.at if at is None else at), receipt.session_id, receipt.messages,
            format_session_duration(digest.started, digest.ended), receipt.source, tuple(topics) or digest.topics,
            receipt.continues,
        )  # fmt: skip
        path = self.root.archive_path(receipt.archive)
        with open_regular(path, follow_symlinks=False) as file:
            rest = copy_chunks(file, found[0], os.fstat(file.fileno()).st_size, CHUNK_BYTES)
            with_lists = receipt.source == ArchiveSource.SESSION
            head = render_head(header, summary, with_lists=with_lists).encode()
            archive = self.journal.stage_chunks(_chain(head, rest))
        contents: dict[str, Staged | None] = {
            f"{CONVERSATIONS}/{archive_name(receipt.archive)}": archive,
            receipt_path(receipt.archive): self.journal.stage_bytes(receipt.encode()),
        }
        row_before = self._stage_row(header, contents)
        entry = ""
        if receipt.listed and archive_name(receipt.archive) in self.root.read_text(EPHEMERAL):
            entry = render_entry(header._replace(message_count=digest.messages), summary.text)
            self._stage_entry(entry, contents)
        text = f"summarised {archive_name(receipt.archive)} with the user's command"
        change = RootRecord(
            0, job, "summarise", self._clock(), text, (), receipt.archive, receipt.session_id,
            entry=entry, row_before=row_before,
        )  # fmt: skip
        self.journal.commit(change, contents)
        self._record(receipt, None, ())
        return True


def _chain(head: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _merged(earlier: Receipt, own: Receipt) -> Receipt:
    """Return the receipt of an archive that went on."""
    return replace(
        own,
        sources=_joined_ranges((*earlier.sources, *own.sources)),
        messages=earlier.messages + own.messages,
        records=earlier.records + own.records,
        messages_in=earlier.messages_in + own.messages_in,
        messages_out=earlier.messages_out + own.messages_out,
        prompts=earlier.prompts + own.prompts,
        skipped=dict(Counter(earlier.skipped) + Counter(own.skipped)),
        redactions=dict(Counter(earlier.redactions) + Counter(own.redactions)),
        keys=(*earlier.keys, *own.keys),
    )


def _joined_ranges(ranges: Sequence[SourceRange]) -> tuple[SourceRange, ...]:
    """Return the ranges without those of a file that was later read again from its beginning."""
    return tuple(
        part
        for number, part in enumerate(ranges)
        if not any(later.path == part.path and later.start == 0 for later in ranges[number + 1 :])
    )


def _stamp_of(path: Path) -> tuple[int, int] | None:
    try:
        _, size, mtime_ns, _ = file_version(path.stat())
    except OSError:
        return None
    return size, mtime_ns


@contextmanager
def _open_transcript(path: Path) -> Iterator[BinaryIO]:
    try:
        file = open_transcript(path)
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {os_reason(error)}.") from error
    with file:
        yield file


def open_transcript(path: Path) -> BinaryIO:
    """Open a transcript for reading.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    return open_regular(path)


def content_session_id(messages: Iterable[TranscriptMessage]) -> str:
    """Return an id for a message list that has none."""
    digest = hashlib.sha256(b"".join(message.key.to_bytes(8, "big", signed=True) for message in messages))
    return f"host-{digest.hexdigest()[:12]}"

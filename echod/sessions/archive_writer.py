"""Write one archive with its receipt, its row and its entry as one change, and replace its summary."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, Final, NamedTuple

from echod.errors import os_reason
from echod.files import open_regular
from echod.log import get_logger
from echod.memory.conversation.archive import (
    EDGE_BYTES,
    ArchiveHeader,
    ArchiveSummary,
    find_body,
    render_head,
    render_tail,
)
from echod.memory.conversation.digest import ConversationDigest
from echod.memory.conversation.index import entry_archive, find_row, put_entry, render_entry, set_row
from echod.memory.conversation.model import ArchiveOrigin, archive_name, format_session_duration, utc_timestamp
from echod.memory.text import pluralize
from echod.sessions.dialects import CHUNK_BYTES
from echod.sessions.ingest import Intake, copy_chunks
from echod.sessions.journal import RootJournal, RootRecord, Staged
from echod.sessions.receipts import (
    Receipt,
    SourceRange,
    SummaryKind,
    read_receipt,
    receipt_path,
    receipts_version,
)
from echod.sessions.roots import CONVERSATIONS, EPHEMERAL, INDEX, SessionError, SessionRoot
from echod.state.session_log import SessionLog, SourceRecord

log = get_logger(__name__)

EVICTED: Final = ".echod/evicted.md"
"""Entries that left EPHEMERAL.md although no archive has their conversation."""


class SessionOutcome(NamedTuple):
    """The result for one session. `archive` is None if nothing was written; `text` is a sentence for the user."""

    session_id: str
    archive: int | None
    text: str
    receipt: Receipt | None = None


class BaseArchive(NamedTuple):
    """The newest archive of a session: its receipt, and whether it can be continued in place."""

    receipt: Receipt
    in_place: bool


@dataclass(frozen=True, slots=True)
class ArchiveDraft:
    """A conversation that was read, before it has a number."""

    intake: Intake
    body: BinaryIO
    base: BaseArchive | None
    source: ArchiveOrigin
    project: str
    ranges: tuple[SourceRange, ...]
    date: str
    summary: str
    reconstructed: str = ""


class ArchiveWriter:
    """Writes the archives of one directory, which the caller holds.

    Args:
        summarises: whether the user has a command for summaries, so that those of new archives are pending.
    """

    def __init__(
        self,
        root: SessionRoot,
        journal: RootJournal,
        session_log: SessionLog,
        clock: Callable[[], float],
        *,
        summarises: bool,
    ) -> None:
        self.root = root
        self.journal = journal
        self._log = session_log
        self._clock = clock
        self._summarises = summarises

    def body_range(self, number: int) -> tuple[int, int] | None:
        """Return where the messages of an archive begin and end; None if it no longer has its structure."""
        try:
            with open_regular(self.root.archive_path(number), follow_symlinks=False) as file:
                size = os.fstat(file.fileno()).st_size
                beginning = file.read(EDGE_BYTES)
                file.seek(max(0, size - EDGE_BYTES))
                return find_body(beginning, file.read(EDGE_BYTES), size)
        except OSError as error:
            raise SessionError(f"{self.root.archive_path(number)} cannot be read: {os_reason(error)}.") from error

    def write(
        self, draft: ArchiveDraft, session_id: str, records: Sequence[SourceRecord], job: int | None
    ) -> SessionOutcome:
        """Write an archive. Raises ChangedMeanwhileError if its number was taken; nothing was changed then."""
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
        if draft.source is ArchiveOrigin.SESSION and not draft.reconstructed:
            entry = render_entry(header._replace(message_count=draft.intake.digest.messages), draft.summary)
            self._stage_entry(entry, contents)
        verb = "continued" if in_place else "archived" if draft.source is ArchiveOrigin.SESSION else "checkpointed"
        summary = f"{verb} session {session_id} as {archive_name(receipt.archive)}"
        change = RootRecord(
            0, job, "archive" if draft.source is ArchiveOrigin.SESSION else "checkpoint", self._clock(), summary, (),
            receipt.archive, session_id, entry=entry, row_before=row_before,
        )  # fmt: skip
        self.journal.commit(change, contents)
        self.record(receipt, records, draft.intake.keys)
        counts = (
            f"{pluralize(receipt.messages, 'message')}, {pluralize(sum(receipt.redactions.values()), 'secret')} removed"
        )
        text = f"{verb} as {archive_name(receipt.archive)} ({counts})"
        return SessionOutcome(session_id, receipt.archive, text, receipt)

    def record(self, receipt: Receipt, records: Iterable[SourceRecord], keys: Iterable[int]) -> None:
        """Bring the database in line with a receipt that was just written."""
        sources = tuple(record._replace(archive=receipt.archive) for record in records)
        version = receipts_version(self.root)
        archives = {receipt.archive: receipt.session_id}
        self._log.record_archive(sources, self.root.key, version, archives, dict.fromkeys(keys, receipt.archive))

    def _receipt(self, draft: ArchiveDraft, session_id: str, job: int | None) -> Receipt:
        intake, base = draft.intake, draft.base
        in_place = base is not None and base.in_place and draft.source is ArchiveOrigin.SESSION
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
            summary=SummaryKind.EXTRACTED if not self._summarises or draft.reconstructed else SummaryKind.PENDING,
            continues=continues if earlier is None else earlier.continues,
            listed=draft.source is ArchiveOrigin.SESSION,
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

    def _header(self, draft: ArchiveDraft, receipt: Receipt) -> ArchiveHeader:
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

    def _archive_chunks(self, draft: ArchiveDraft, header: ArchiveHeader, *, in_place: bool) -> Iterator[bytes]:
        yield render_head(header, ArchiveSummary(draft.summary)).encode()
        if in_place:
            yield from self._present_body(header.log)
        yield from copy_chunks(draft.body, 0, draft.body.seek(0, os.SEEK_END), CHUNK_BYTES)
        yield render_tail(draft.intake.digest.tags).encode()

    def _present_body(self, number: int) -> Iterator[bytes]:
        found = self.body_range(number)
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

    def list_checkpoint(
        self, draft: ArchiveDraft, receipt: Receipt, records: Sequence[SourceRecord], job: int | None
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
        self.record(listed, records, ())
        return SessionOutcome(receipt.session_id, receipt.archive, f"ended; {name} has all of it", listed)

    def write_summary(
        self, number: int, receipt: Receipt, answer: tuple[ArchiveSummary, Sequence[str]] | str, job: int | None
    ) -> bool:
        """Replace the summary of an archive by the answer of the user's command, or record its failure (a text)."""
        present = read_receipt(self.root, number)
        if present is None or present.digest != receipt.digest:
            return False  # it went on meanwhile, and is summarised as a whole the next time
        attempted = replace(present, attempts=present.attempts + 1, attempted_at=self._clock())
        if isinstance(answer, str):
            log.warning("summary_failed", archive=number, reason=answer, attempts=attempted.attempts)
            path = receipt_path(number)
            change = RootRecord(0, None, "summary-failed", self._clock(), f"no summary for {number:03}: {answer}", ())
            self.journal.commit(change, {path: self.journal.stage_bytes(attempted.encode())})
            self.record(attempted, (), ())
            return False
        return self._replace_summary(replace(attempted, summary=SummaryKind.MODEL), answer, job)

    def _replace_summary(self, receipt: Receipt, answer: tuple[ArchiveSummary, Sequence[str]], job: int | None) -> bool:
        summary, topics = answer
        found = self.body_range(receipt.archive)
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
            with_lists = receipt.source == ArchiveOrigin.SESSION
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
        self.record(receipt, (), ())
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

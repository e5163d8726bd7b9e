"""Recover a role after a crash: sweep staged files without a record, then finish every intent.

Intents are finished oldest first. Sweeping comes first: afterwards the commits of the recovery itself would have files
that look the same. A crash inside recovery is the same case again.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from echod.log import get_logger
from echod.store.commit.apply import apply_record
from echod.store.commit.context import CommitContext, CommitStep
from echod.store.errors import as_store_error
from echod.store.journal.records import CommitRecord, RecordState

log = get_logger(__name__)

_STAGED_NAME = re.compile(r"\..+\.echod-(?P<journal_id>[0-9a-f]{6})-(?P<seq>\d{6,})-\d+(?:\.old)?")


class DeferredRecovery(NamedTuple):
    """A role whose recovery must wait, with the reason. Other roles are not affected."""

    role: str
    reason: str


class RecoveryReport(NamedTuple):
    """The result of a recovery: finished commits, the number of swept staged files, roles that must wait."""

    redone: tuple[CommitRecord, ...] = ()
    swept_files: int = 0
    deferred: tuple[DeferredRecovery, ...] = ()


def recover_role(context: CommitContext) -> RecoveryReport:
    """Finish everything that is half done in a role.

    Raises:
        StoreError: a record is damaged, or the file system failed. Everything remains for the next attempt.
    """
    records = context.journal.open_records()
    # The time to list a directory grows with its files, so it is listed only if a kill may have left staged files.
    may_have_staged_files = context.journal.staging_recorded() or not context.journal.staged_files_swept
    swept = _sweep_staged_files(context, records) if may_have_staged_files else 0
    context.trace(CommitStep.SWEPT)
    redone = []
    for record in records:
        if record.state is RecordState.INTENT:
            context.trace(CommitStep.REDOING)
            redone.append(apply_record(context, record))
            log.info("commit_redone", role=str(context.role.path), seq=record.seq, kind=record.kind)
    return RecoveryReport(tuple(redone), swept)


def _sweep_staged_files(context: CommitContext, records: tuple[CommitRecord, ...]) -> int:
    known_seqs = {record.seq for record in records}
    swept = 0
    with as_store_error("list", context.directory.root.path):
        for directory in (context.directory.root, *context.directory.subdirectories()):
            for name in directory.list_names():
                match = _STAGED_NAME.fullmatch(name)
                if match is None or match["journal_id"] != context.journal.journal_id:
                    continue
                if int(match["seq"]) not in known_seqs:
                    directory.unlink(name)
                    swept += 1
    context.journal.clear_staging()
    context.journal.staged_files_swept = True
    return swept

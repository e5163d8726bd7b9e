"""After a crash: sweep stages that never got a record, then finish every intent, oldest first.

Sweeping comes first: afterwards a recovery's own commits would have files that look the same. A crash inside
recovery is the same case again.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from echod.log import get_logger
from echod.store.commit.apply import apply_record
from echod.store.commit.context import CommitContext
from echod.store.commit.steps import CommitStep
from echod.store.errors import as_store_error
from echod.store.journal.records import CommitRecord, RecordState

log = get_logger(__name__)

_STAGED_NAME = re.compile(r"\..+\.echod-(?P<tag>[0-9a-f]{6})-(?P<seq>\d{6,})-\d+(?:\.old)?")


class DeferredRecovery(NamedTuple):
    """A role whose recovery has to wait; `reason` is the sentence why. Other roles are not held up."""

    role: str
    reason: str


class RecoveryReport(NamedTuple):
    """What a recovery found: commits it finished, stages it swept, roles that must wait."""

    redone: tuple[CommitRecord, ...] = ()
    swept_files: int = 0
    deferred: tuple[DeferredRecovery, ...] = ()


def recover_role(context: CommitContext) -> RecoveryReport:
    """Bring a role to a state in which nothing is half done.

    Raises:
        StoreError: a record is damaged, or the file system failed; everything stays for the next time.
    """
    records = context.journal.open_records()
    # Looking through a directory takes time for every file in it, so it is done only where a kill may have left some.
    swept = (
        _sweep_staged_files(context, records)
        if context.journal.staging_recorded() or not context.journal.staged_files_swept
        else 0
    )
    context.trace(CommitStep.SWEPT)
    redone = []
    for record in records:
        if record.state is RecordState.INTENT:
            context.trace(CommitStep.REDOING)
            redone.append(apply_record(context, record))
            log.info("commit_redone", role=str(context.directory.role.path), seq=record.seq, kind=record.kind)
    return RecoveryReport(tuple(redone), swept)


def _sweep_staged_files(context: CommitContext, records: tuple[CommitRecord, ...]) -> int:
    known_seqs = {record.seq for record in records}
    swept = 0
    with as_store_error("look through", context.directory.root.path):
        for directory in (context.directory.root, *context.directory.subdirectories()):
            for name in directory.list_names():
                match = _STAGED_NAME.fullmatch(name)
                if match and match["tag"] == context.journal.journal_id and int(match["seq"]) not in known_seqs:
                    directory.unlink(name)
                    swept += 1
    context.journal.clear_staging()
    context.journal.staged_files_swept = True
    return swept

"""After a crash: sweep stages that never got a record, then finish every intent, oldest first.

Sweeping comes first: afterwards a recovery's own commits would have files that look the same. A crash inside
recovery is the same case again.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from echod.log import get_logger
from echod.store.commit.apply import apply
from echod.store.commit.context import Desk
from echod.store.commit.steps import Step
from echod.store.errors import told
from echod.store.journal.records import Record, RecordState

log = get_logger(__name__)

_OURS = re.compile(r"\..+\.echod-(?P<tag>[0-9a-f]{6})-(?P<seq>\d{6,})-\d+(?:\.old)?")


class Parked(NamedTuple):
    """A role whose recovery has to wait; `reason` is the sentence why. Other roles are not held up."""

    role: str
    reason: str


class Recovery(NamedTuple):
    """What a recovery found: commits it finished, stages it swept, roles that must wait."""

    redone: tuple[Record, ...] = ()
    swept: int = 0
    parked: tuple[Parked, ...] = ()


def recover_role(desk: Desk) -> Recovery:
    """Bring a role to a state in which nothing is half done.

    Raises:
        StoreFault: a record is damaged, or the file system failed; everything stays for the next time.
    """
    records = desk.journal.open_records()
    # Looking through a directory takes time for every file in it, so it is done only where a kill may have left some.
    swept = _sweep(desk, records) if desk.journal.noted_staging() or not desk.journal.swept else 0
    desk.trace(Step.SWEPT)
    redone = []
    for record in records:
        if record.state is RecordState.INTENT:
            desk.trace(Step.REDOING)
            redone.append(apply(desk, record))
            log.info("commit_redone", role=str(desk.ground.role.path), seq=record.seq, kind=record.kind)
    return Recovery(tuple(redone), swept)


def _sweep(desk: Desk, records: tuple[Record, ...]) -> int:
    known = {record.seq for record in records}
    swept = 0
    with told("look through", desk.ground.home.path):
        for directory in (desk.ground.home, *desk.ground.made()):
            for name in directory.names():
                match = _OURS.fullmatch(name)
                if match and match["tag"] == desk.journal.tag and int(match["seq"]) not in known:
                    directory.unlink(name)
                    swept += 1
    desk.journal.clear_staging()
    desk.journal.swept = True
    return swept

"""Which entries a person forgot and did not bring back: the archives of what was removed tell it.

It holds as long as the archive stands, and an entry is known again whatever became of its layer, dates and confidence.
Of the journal only what was undone is asked, and that it does not forget.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from echod.memory.alignment import Key
from echod.memory.document import parse_block
from echod.memory.entry_matching import Likeness
from echod.memory.model import Block
from echod.memory.policy import Rule, read_archive
from echod.memory.policy.archive import REMOVED, ArchivedEntry
from echod.memory.presence import likeness_of
from echod.store.commit.context import Desk
from echod.store.snapshot import MAX_FILE_BYTES

_FILE = re.compile(rf"{REMOVED}-(\d{{4}})(?:-(\d+))?\.md")
_TELLING = (Rule.FORGOTTEN, Rule.RESTORED)


def still_forgotten(desk: Desk, blocks: Mapping[Key, Block]) -> set[Key]:
    """Those of these blocks that are forgotten entries."""
    if not blocks:
        return set()
    gone = _forgotten(desk)
    return {key for key, block in blocks.items() if gone and likeness_of(block) in gone}


def _forgotten(desk: Desk) -> set[Likeness]:
    events = [event for name in _files(desk) for event in _read(desk, name) if event.rule in _TELLING]
    if not events:
        return set()
    undone = desk.journal.undoings.jobs()
    last = {event.id: event.rule for event in events if event.job not in undone}
    return {
        likeness_of(parse_block(event.text))
        for event in events
        if event.rule == Rule.FORGOTTEN and last.get(event.id) == Rule.FORGOTTEN
    }


def _files(desk: Desk) -> list[str]:
    """The archives of what was removed, in the order in which they were written."""
    if desk.ground.home.stat("archive") is None:
        return []
    directory, _ = desk.ground.place(desk.ground.path_of("archive/x"))
    found = [match for name in directory.names() if (match := _FILE.fullmatch(name))]
    return [m[0] for m in sorted(found, key=lambda m: (int(m[1]), int(m[2] or 1)))]


def _read(desk: Desk, name: str) -> tuple[ArchivedEntry, ...]:
    directory, _ = desk.ground.place(desk.ground.path_of("archive/x"))
    return read_archive(directory.read(name, MAX_FILE_BYTES)).entries

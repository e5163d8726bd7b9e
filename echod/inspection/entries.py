"""What a memory file holds that a person may be asked about; files that have not changed are not read again.

Of each file little is remembered: hundreds of them, read and taken apart, would be most of the service's memory. What
is seldom asked for is read again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from echod.files import Remembered, Stamp, plain_stamp
from echod.inspection.counts import Counted, read_document
from echod.memory.model import SIZE_LIMIT, Layer
from echod.store.layout import Role

if TYPE_CHECKING:
    from echod.memory.model import Document
    from echod.memory.policy import OverLimit, Policy
    from echod.state.entries import EntryLog


class Seen(NamedTuple):
    """An entry of a memory file.

    Attributes:
        says: digest of what it says, apart from its metadata.
        phrase: what makes it read like an instruction to agents; None if nothing does.
    """

    id: str
    title: str
    plain_title: str
    layer: Layer | None
    says: str
    phrase: str | None


class Glance(NamedTuple):
    """A memory file.

    Attributes:
        at: when it was written (Unix seconds).
        lines: its lines.
        staying: those that no rule ever takes out, pinned entries aside.
        suspicious: its entries that read like instructions to agents.
    """

    at: float = 0.0
    lines: int = 0
    staying: int = 0
    suspicious: tuple[Seen, ...] = ()


class Outlook(NamedTuple):
    """What pruning would do to a file today.

    Attributes:
        summary: the plan in a line.
        lines_before: lines of the file now.
        lines_after: lines of the file then.
        over_limit: why it is still too long then; None if it is not.
    """

    summary: str
    lines_before: int
    lines_after: int
    over_limit: OverLimit | None


class Looks:
    """Remembers what it saw in a store; one for each."""

    def __init__(self, counted: Counted) -> None:
        self._counted = counted
        self._suspicious: Remembered[tuple[Seen, ...]] = Remembered()
        self._outlooks: Remembered[Outlook | None] = Remembered()

    def forget_unasked(self) -> None:
        """Forget what nobody asked for since the last time."""
        for remembered in (self._suspicious, self._outlooks):
            remembered.forget_unasked()

    def at(self, role: Role) -> Glance:
        """A role's memory file; nothing where it cannot be read or understood, which is told elsewhere."""
        stamp, count = self._counted.at(role.memory)
        if stamp is None or count.lines is None:
            return Glance()
        suspicious: tuple[Seen, ...] = ()
        if count.speaks:
            with suppress(OSError):
                suspicious = self._suspicious.of(role.memory, stamp, lambda: _suspicious(role))
        return Glance(stamp[2] / 1e9, count.lines, count.staying, suspicious)

    def outlook(self, role: Role, entries: EntryLog | None, policy: Policy, today: date) -> Outlook | None:
        """What pruning would do to a role's memory file; None where it cannot be read or understood."""
        stamp = seen_stamp(role.memory)

        def planned() -> Outlook | None:
            # These take long to load, and most files are short.
            from echod.inspection.entry_facts import facts_of  # noqa: PLC0415
            from echod.memory.policy import Facts, plan_prune  # noqa: PLC0415

            document = read_document(role.memory)
            if document is None:
                return None
            facts = Facts() if entries is None else facts_of(role, entries, policy, today, document)
            plan = plan_prune(role.name, document, facts, policy, today)
            return Outlook(plan.summary, plan.lines_before, plan.lines_after, plan.over_limit)

        try:
            return None if stamp is None else self._outlooks.of(role.memory, (stamp, today, policy), planned)
        except OSError:
            return None


def entries_of(role: Role, document: Document) -> Mapping[str, Seen]:
    """The entries of a role's memory file by id."""
    return {seen.id: seen for seen in _entries(role, document)}


def seen_stamp(file: Path) -> Stamp | None:
    """The stamp of a plain file of a size that is read; None for anything else, and where that cannot be seen."""
    try:
        return plain_stamp(file, SIZE_LIMIT)
    except OSError:
        return None


def _suspicious(role: Role) -> tuple[Seen, ...]:
    document = read_document(role.memory)
    return () if document is None else tuple(seen for seen in _entries(role, document) if seen.phrase is not None)


def _entries(role: Role, document: Document) -> Iterator[Seen]:
    # These take long to load, and it is rare that an entry is looked at.
    from echod.memory.identity import entry_ids, normalise_title  # noqa: PLC0415
    from echod.memory.prompt_injection import speaks_to_agents  # noqa: PLC0415
    from echod.memory.similarity import bare_title, learning_of  # noqa: PLC0415

    for identity, block in zip(entry_ids(role.name, document), document.blocks, strict=True):
        if identity is not None and block.entry is not None:
            yield Seen(
                identity,
                block.entry.title,
                normalise_title(bare_title(learning_of(block, block.entry).title)),
                block.entry.layer,
                hashlib.sha256(block.text[block.entry.body.start : block.entry.body.end].encode()).hexdigest(),
                speaks_to_agents(block.text),
            )

"""What a memory file holds that a person may be asked about; files that have not changed are not read again.

Of each file little is remembered: hundreds of them, read and taken apart, would be most of the service's memory. What
is seldom asked for is read again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import MappingProxyType

from echod.jobs.facts import facts_of
from echod.jobs.stamps import Stamp, plain_stamp
from echod.memory.document import Document, Layer, parse
from echod.memory.identity import entry_ids, normalise_title
from echod.memory.policy import Facts, OverLimit, Policy, plan_prune
from echod.memory.policy.lines import document_lines, room
from echod.memory.policy.standing import PROTECTED_LAYERS, stays_open
from echod.memory.similarity import bare_title, learning_of
from echod.memory.suspicion import may_speak_to_agents, speaks_to_agents
from echod.state.entries import EntryLog
from echod.store.layout import Role

_Version = tuple[Stamp, date, Policy]


@dataclass(frozen=True, slots=True)
class Seen:
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


@dataclass(frozen=True, slots=True)
class Glance:
    """A memory file: when it was written (Unix seconds), its lines, and what reads like an instruction to agents."""

    at: float = 0.0
    lines: int = 0
    suspicious: tuple[Seen, ...] = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """A memory file: its entries by id, and how it reads."""

    entries: Mapping[str, Seen] = field(default_factory=lambda: MappingProxyType({}))
    document: Document | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
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
    """Remembers what it saw; one for a process."""

    def __init__(self) -> None:
        self._glances: dict[Path, tuple[Stamp, Glance]] = {}
        self._staying: dict[Path, tuple[Stamp, int]] = {}
        self._outlooks: dict[Path, tuple[_Version, Outlook]] = {}

    def at(self, role: Role) -> Glance:
        """A role's memory file; nothing where it cannot be read or understood, which is told elsewhere."""
        stamp = _stamp(role.memory)
        if stamp is None:
            return Glance()
        known = self._glances.get(role.memory)
        if known is None or known[0] != stamp:
            known = self._glances[role.memory] = (stamp, _glance(role, stamp))
        return known[1]

    def into(self, role: Role) -> Contents:
        """The entries of a role's memory file, read anew; nothing as above."""
        document = None if _stamp(role.memory) is None else _document(role.memory)
        if document is None:
            return Contents()
        return Contents({seen.id: seen for seen in _entries(role, document)}, document)

    def staying(self, role: Role) -> int:
        """Lines of a memory file that no rule ever takes out, pinned entries aside."""
        stamp = _stamp(role.memory)
        if stamp is None:
            return 0
        known = self._staying.get(role.memory)
        if known is None or known[0] != stamp:
            document = _document(role.memory)
            known = self._staying[role.memory] = (stamp, 0 if document is None else _staying(document))
        return known[1]

    def outlook(self, role: Role, entries: EntryLog | None, policy: Policy, today: date) -> Outlook | None:
        """What pruning would do to a role's memory file; None where it cannot be read or understood."""
        stamp = _stamp(role.memory)
        if stamp is None:
            return None
        version = (stamp, today, policy)
        known = self._outlooks.get(role.memory)
        if known is None or known[0] != version:
            document = self.into(role).document
            if document is None:
                return None
            facts = Facts() if entries is None else facts_of(role, entries, policy, today, document)
            plan = plan_prune(role.name, document, facts, policy, today)
            found = Outlook(plan.summary, plan.lines_before, plan.lines_after, plan.over_limit)
            known = self._outlooks[role.memory] = (version, found)
        return known[1]


def _glance(role: Role, stamp: Stamp) -> Glance:
    try:
        data = role.memory.read_bytes()
    except OSError:
        return Glance()
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    suspicious: tuple[Seen, ...] = ()
    if may_speak_to_agents(data.decode(errors="replace")):
        document = parse(data)
        if isinstance(document, Document) and any(b.entry and speaks_to_agents(b.text) for b in document.blocks):
            suspicious = tuple(seen for seen in _entries(role, document) if seen.phrase is not None)
    return Glance(stamp[2] / 1e9, lines, suspicious)


def _document(memory: Path) -> Document | None:
    try:
        document = parse(memory.read_bytes())
    except OSError:
        return None
    return document if isinstance(document, Document) else None


def _staying(document: Document) -> int:
    lines, entries = room(document.preamble), 0
    above_is_open = False
    for block in document.blocks:
        entries += block.entry is not None
        if block.entry is None or block.entry.layer is None or block.entry.layer in PROTECTED_LAYERS or above_is_open:
            lines += room(block.text)
        above_is_open = stays_open(block.text)
    # The last entry of a file stays whatever it is.
    return document_lines(document) if entries <= 1 else lines


def _entries(role: Role, document: Document) -> Iterator[Seen]:
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


def _stamp(file: Path) -> Stamp | None:
    """None for what is no plain file of a size that is read."""
    try:
        return plain_stamp(file)
    except OSError:
        return None

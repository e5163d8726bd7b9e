"""What the policy of consolidation decides, as values. How it decides is told in `consolidate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from echod.memory.doubt import Doubt
from echod.memory.layers import Layer
from echod.memory.policy.archive import ArchivedEntry


@dataclass(frozen=True, slots=True)
class TakenUp:
    """A finding, and the id of the entry that holds it; `claimed` is the layer it asked for and only a person may give.

    It became that entry, or, as a duplicate, counts as one reference to it.
    """

    key: str
    id: str
    title: str
    claimed: Layer | None


@dataclass(frozen=True, slots=True)
class Superseded:
    """An entry that gave way to a finding which says that it replaces it.

    Attributes:
        key: the finding.
        by: the id of the entry that holds what the finding says.
        title: the title of the entry that gave way.
        archived: that entry, as the archive keeps it.
        own_key: the finding that it was itself, where it was new too and never stood in the file.
    """

    key: str
    by: str
    title: str
    archived: ArchivedEntry
    own_key: str | None


@dataclass(frozen=True, slots=True)
class Undecided:
    """A finding says that it replaces a title, but a person has to say what gives way.

    Attributes:
        key: the finding.
        id: the id of the entry that holds what it says.
        target: the title that it names, normalised.
        doubt: why nothing gave way.
    """

    key: str
    id: str
    target: str
    doubt: Doubt


@dataclass(frozen=True, slots=True)
class Consumed:
    """A findings file that is done with: its name, the keys of all its findings, its text without secrets."""

    name: str
    keys: tuple[str, ...]
    kept: bytes


@dataclass(frozen=True, slots=True)
class Begun:
    """A findings file of which a part was taken up, since it holds more than that: its name, the keys of the part."""

    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A findings file to set aside: its name, the reason in a sentence, its bytes without secrets."""

    name: str
    reason: str
    kept: bytes


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What the policy decided.

    Attributes:
        memory: the new bytes of the memory file; None if they are the old ones.
        added: one for each new entry, in the order in which they stand.
        duplicates: one for each finding that is in the memory already, or twice in the findings.
        superseded: one for each entry that gives way to a finding, in the order in which they stood.
        undecided: one for each finding that says what it replaces where a person has to decide that.
        known: keys of findings that were consumed before and are passed over.
        consumed: every findings file that is done with, in name order.
        begun: the one that holds more than may be taken up at once, if any.
        quarantined: every findings file that cannot be understood.
        renumbered: old id -> new id of the entries that stay under another id, because a repeat of theirs gave way.
    """

    memory: bytes | None
    added: tuple[TakenUp, ...]
    duplicates: tuple[TakenUp, ...]
    superseded: tuple[Superseded, ...]
    undecided: tuple[Undecided, ...]
    known: tuple[str, ...]
    consumed: tuple[Consumed, ...]
    begun: tuple[Begun, ...]
    quarantined: tuple[Quarantined, ...]
    renumbered: Mapping[str, str]

    @property
    def claims(self) -> tuple[tuple[TakenUp, Layer], ...]:
        """The findings that claim a layer that only a person gives, each with that layer."""
        return tuple((one, one.claimed) for one in (*self.added, *self.duplicates) if one.claimed is not None)

    @property
    def summary(self) -> str:
        """All of it in one line."""
        known, aside = len(self.duplicates) + len(self.known), len(self.quarantined)
        asked = len(self.undecided) + len(self.claims)
        parts = [
            f"{count} {what}"
            for count, what in (
                (len(self.added), "added"),
                (len(self.superseded), "superseded"),
                (known, "already known"),
                (aside, "file set aside" if aside == 1 else "files set aside"),
                (asked, "for you to review"),
            )
            if count
        ]
        parts += [f"the rest of {file.name} follows" for file in self.begun]
        return ", ".join(parts) or "nothing new"

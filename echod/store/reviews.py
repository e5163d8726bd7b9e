"""What a person should look at: the engine notes it in the journal and goes on; nothing waits for the answer."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from echod.store.private import append_line


@dataclass(frozen=True, slots=True)
class Review:
    """One thing to look at.

    Attributes:
        at: Unix seconds.
        kind: `reverted`, `doubtful`, `reapplied-often`, `git` or `unmergeable`.
        role: the role's name.
        text: a sentence: what happened, what echod did, where the text is.
        titles: headings of the blocks it is about.
    """

    at: float
    kind: str
    role: str
    text: str
    titles: tuple[str, ...] = ()


def note(root: Path, review: Review) -> None:
    """Add a review item to a role's journal."""
    append_line(root / "reviews", json.dumps(asdict(review)))


def noted(root: Path) -> tuple[Review, ...]:
    """The review items of a role's journal, oldest first."""
    try:
        lines = (root / "reviews").read_text().splitlines()
    except FileNotFoundError:
        return ()
    found = []
    for line in lines:
        try:
            raw = json.loads(line)
            found.append(Review(**{**raw, "titles": tuple(raw["titles"])}))
        except (ValueError, TypeError, KeyError):
            continue  # torn by a power cut
    return tuple(found)

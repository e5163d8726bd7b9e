"""What redaction returns: spans with a kind, never the text of a secret, and the text without them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands in the original text, as character offsets (end exclusive), and what kind it is."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text in which each of `spans` (offsets in the original) was replaced by `[REDACTED:kind]`."""

    text: str
    spans: tuple[Secret, ...]


def marker(kind: str) -> str:
    """What stands in the place of a secret."""
    return f"[REDACTED:{kind}]"


def replace(text: str, spans: Iterable[Secret]) -> Redaction:
    """Replace spans that do not overlap; all text outside them is kept.

    Raises:
        ValueError: two spans overlap.
    """
    ordered = tuple(sorted(spans, key=lambda span: span.start))
    if any(left.end > right.start for left, right in pairwise(ordered)):
        raise ValueError("spans overlap")
    pieces: list[str] = []
    done = 0
    for span in ordered:
        pieces += (text[done : span.start], marker(span.kind))
        done = span.end
    pieces.append(text[done:])
    return Redaction("".join(pieces), ordered)

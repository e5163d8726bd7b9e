"""The values of redaction: secrets as spans of a text, and the view that the rules search.

A `Secret` has a kind and offsets, never its text. In a `TextView`, disguises are undone and redacted parts are masked.
Its offsets map back to the original, so that a span always names exact characters of it. `find_all` finds the few
places of a text that deserve a rule's closer look, at the speed of substring search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.text import normalize_characters

_DOTTED_I = "\u0130"  # the one character whose lower case is longer than itself

MASK = "\uffff"
"""Replaces a character that no rule may match or look through (a Unicode noncharacter)."""

_MARKER = lazy_pattern(r"\[REDACTED:[A-Za-z_-]{1,32}\]")
# Signs that editors and word processors write where a rule expects the plain one. Each is one character.
_TYPOGRAPHY = {"\u00a0": " ", "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'", "\u201a": "'"}
_ESCAPED_BREAK = lazy_pattern(r"\\[nrt]")


class Secret(NamedTuple):
    """The position of a secret in the original text (character offsets, end exclusive), and its kind."""

    kind: str
    start: int
    end: int


class Redaction(NamedTuple):
    """A text in which each of `spans` (offsets in the original) was replaced by `[REDACTED:kind]`."""

    text: str
    spans: tuple[Secret, ...]


def redaction_marker(kind: str) -> str:
    """Return the text that replaces a secret."""
    return f"[REDACTED:{kind}]"


def replace_spans(text: str, spans: Iterable[Secret]) -> Redaction:
    """Replace spans by their markers; all text outside of them is kept. Overlapping spans are a `ValueError`."""
    ordered = tuple(sorted(spans, key=lambda span: span.start))
    if any(left.end > right.start for left, right in pairwise(ordered)):
        raise ValueError("spans overlap")
    pieces: list[str] = []
    done = 0
    for span in ordered:
        pieces += (text[done : span.start], redaction_marker(span.kind))
        done = span.end
    pieces.append(text[done:])
    return Redaction("".join(pieces), ordered)


def lower_same_length(text: str) -> str:
    """Return the text in lower case, with every character at its old offset."""
    return text.replace(_DOTTED_I, "I").lower()


def find_all(text: str, needle: str) -> Iterator[int]:
    """Yield the offsets of a needle in order, without overlaps."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle))


def without_overlaps(secrets: Iterable[Secret]) -> list[Secret]:
    """Return the secrets in order, without overlaps.

    Of two that overlap, the one that starts earlier is kept, and of equal starts the first one given.
    """
    result: list[Secret] = []
    end = 0
    secrets = list(secrets)
    if not secrets:
        return result  # as in nearly every text
    for secret in sorted(secrets, key=lambda secret: secret.start):
        if secret.start >= end:
            result.append(secret)
            end = secret.end
    return result


@dataclass(frozen=True, slots=True)
class TextView:
    """Text for the rules. `offsets[i]` is the original offset of character `i`; None where all offsets are equal."""

    text: str
    offsets: Sequence[int] | None

    def masked(self, spans: Iterable[Secret]) -> TextView:
        """Return this view with the given spans masked; lengths do not change."""
        pieces: list[str] = []
        done = 0
        for span in sorted(spans, key=lambda span: span.start):
            pieces += (self.text[done : span.start], MASK * (span.end - span.start))
            done = span.end
        pieces.append(self.text[done:])
        return replace(self, text="".join(pieces))

    def lines_containing(self, spans: Iterable[Secret]) -> TextView:
        """Return only the lines that contain the given spans: in all other lines nothing has changed for the rules."""
        pieces: list[str] = []
        offsets: list[int] = []
        done = 0
        for span in sorted(spans, key=lambda span: span.start):
            start = max(done, self.text.rfind("\n", done, span.start) + 1)
            if span.end <= done:
                continue
            end = self.text.find("\n", span.end)
            done = len(self.text) if end < 0 else end + 1
            pieces.append(self.text[start:done])
            offsets.extend(range(start, done) if self.offsets is None else self.offsets[start:done])
        return TextView("".join(pieces), offsets)

    def to_original(self, span: Secret) -> Secret:
        """Return the same secret with offsets in the original."""
        if self.offsets is None:
            return span
        return Secret(span.kind, self.offsets[span.start], self.offsets[span.end - 1] + 1)


def build_text_view(text: str) -> TextView:
    """Return the view of a text: disguises undone, markers of earlier redactions masked."""
    folded, offsets = normalize_characters(text)
    if not folded.isascii():
        for sign, plain in _TYPOGRAPHY.items():  # most texts have none, and that check is fast
            folded = folded.replace(sign, plain)
    if "[REDACTED:" in folded:
        folded = _MARKER.sub(lambda match: MASK * len(match[0]), folded)
    if "\\" in folded:
        # Memory that passed through tab-separated hooks has a literal \n at each line end.
        folded = _ESCAPED_BREAK.sub("  ", folded)
    return TextView(folded, offsets)

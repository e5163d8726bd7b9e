"""What the rules look at: the text with tricks undone and with what is already redacted walled off.

Offsets in a view can be led back to the original, so that a span always names exact characters of it.

What redaction returns: spans with a kind, never the text of a secret, and the text without them.

Finding the few places of a text that are worth a rule's closer look, at the speed of substring search.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from echod.memory.obfuscation import normalize_characters

_DOTTED_I = "\u0130"
"""The one character whose lower case is longer than itself."""

MASK = "\uffff"
"""Stands for a character that no rule may match or look through (a Unicode noncharacter)."""

_MARKER = re.compile(r"\[REDACTED:[A-Za-z_-]{1,32}\]")
# What editors and word processors put where a rule expects the plain sign; one character each.
_TYPOGRAPHY = {"\u00a0": " ", "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'", "\u201a": "'"}
_ESCAPED_BREAK = re.compile(r"\\[nrt]")


class Secret(NamedTuple):
    """Where a secret stands in the original text, as character offsets (end exclusive), and what kind it is."""

    kind: str
    start: int
    end: int


class Redaction(NamedTuple):
    """A text in which each of `spans` (offsets in the original) was replaced by `[REDACTED:kind]`."""

    text: str
    spans: tuple[Secret, ...]


def redaction_marker(kind: str) -> str:
    """What stands in the place of a secret."""
    return f"[REDACTED:{kind}]"


def replace_spans(text: str, spans: Iterable[Secret]) -> Redaction:
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
        pieces += (text[done : span.start], redaction_marker(span.kind))
        done = span.end
    pieces.append(text[done:])
    return Redaction("".join(pieces), ordered)


def lower_same_length(text: str) -> str:
    """The text in lower case, every character at its place."""
    return text.replace(_DOTTED_I, "I").lower()


def find_all(text: str, needle: str) -> Iterator[int]:
    """Where a needle stands, in order, not overlapping."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle))


def without_overlaps(secrets: Iterable[Secret]) -> list[Secret]:
    """The secrets in order; of two that overlap the one that starts earlier, of equal starts the one named first."""
    result: list[Secret] = []
    end = 0
    for secret in sorted(secrets, key=lambda secret: secret.start):
        if secret.start >= end:
            result.append(secret)
            end = secret.end
    return result


@dataclass(frozen=True, slots=True)
class TextView:
    """Text for the rules; `origin[i]` is where character `i` stands in the original, None where they agree."""

    text: str
    offsets: Sequence[int] | None

    def masked(self, spans: Iterable[Secret]) -> TextView:
        """This view with the given spans walled off, lengths unchanged."""
        pieces: list[str] = []
        done = 0
        for span in sorted(spans, key=lambda span: span.start):
            pieces += (self.text[done : span.start], MASK * (span.end - span.start))
            done = span.end
        pieces.append(self.text[done:])
        return replace(self, text="".join(pieces))

    def lines_containing(self, spans: Iterable[Secret]) -> TextView:
        """Only the lines in which the given spans stand: nothing has changed for the rules in any other."""
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
        """The same secret with offsets in the original."""
        if self.offsets is None:
            return span
        return Secret(span.kind, self.offsets[span.start], self.offsets[span.end - 1] + 1)


def build_text_view(text: str) -> TextView:
    """The view of a text: tricks undone, markers of earlier redactions walled off."""
    folded, offsets = normalize_characters(text)
    if not folded.isascii():
        for sign, plain in _TYPOGRAPHY.items():  # mostly there is none, which is seen fast
            folded = folded.replace(sign, plain)
    if "[REDACTED:" in folded:
        folded = _MARKER.sub(lambda match: MASK * len(match[0]), folded)
    if "\\" in folded:
        # Memory that went through tab-separated hooks holds a literal \n where a line ended.
        folded = _ESCAPED_BREAK.sub("  ", folded)
    return TextView(folded, offsets)

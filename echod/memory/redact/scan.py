"""Finding the few places of a text that are worth a rule's closer look, at the speed of substring search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from echod.memory.redact.values import Secret

_DOTTED_I = "\u0130"
"""The one character whose lower case is longer than itself."""


def lowered(text: str) -> str:
    """The text in lower case, every character at its place."""
    return text.replace(_DOTTED_I, "I").lower()


def places(text: str, needle: str) -> Iterator[int]:
    """Where a needle stands, in order, not overlapping."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + len(needle))


def first_of_overlapping(secrets: Iterable[Secret]) -> list[Secret]:
    """The secrets in order; of two that overlap the one that starts earlier, of equal starts the one named first."""
    kept: list[Secret] = []
    end = 0
    for secret in sorted(secrets, key=lambda secret: secret.start):
        if secret.start >= end:
            kept.append(secret)
            end = secret.end
    return kept

"""Adapt words for sentences: capitals, full stops, plurals. Below 60 lines because every layer imports it."""

from __future__ import annotations


def capitalize(text: str) -> str:
    """Return the text with its first letter in upper case. Unlike `str.capitalize`, the rest stays as it is."""
    return f"{text[:1].upper()}{text[1:]}"


def without_full_stop(sentence: str) -> str:
    """Return a sentence without the full stop at its end, to be continued in another sentence."""
    return sentence.rstrip(".")


def pluralize(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, as `1 entry` or `2 entries`.

    Args:
        number: the number.
        noun: the singular.
        plural: the plural; None for the noun with an s.
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"

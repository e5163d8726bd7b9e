"""Versions compared as versions: 1.10.0 comes after 1.9.0, 2.0.0-rc.1 before 2.0.0."""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import zip_longest

_VERSION = re.compile(
    r"v?(\d{1,18}(?:\.\d{1,18}){0,7})"
    r"(?:-([0-9A-Za-z-]{1,40}(?:\.[0-9A-Za-z-]{1,40}){0,7}))?"
    r"(?:\+\S{1,80})?",
    re.ASCII,
)

_Preview = tuple[tuple[int, int, str], ...]


class Order(StrEnum):
    """How one version stands to another; `UNKNOWN` where one of them is none that can be compared."""

    OLDER = "older"
    SAME = "same"
    NEWER = "newer"
    UNKNOWN = "unknown"


def is_version(text: str) -> bool:
    """Whether it can be compared: numbers with dots, then perhaps a preview (`-rc.1`) and a build (`+7`)."""
    return _VERSION.fullmatch(text.strip()) is not None


def compare(one: str, other: str) -> Order:
    """How `one` stands to `other`. The build (`+7`) does not count, and missing numbers are zero."""
    if one.strip() == other.strip():
        return Order.SAME
    first, second = _parsed(one), _parsed(other)
    if first is None or second is None:
        return Order.UNKNOWN
    for a, b in zip_longest(first[0], second[0], fillvalue=0):
        if a != b:
            return Order.NEWER if a > b else Order.OLDER
    if first[1] == second[1]:
        return Order.SAME
    if not first[1] or not second[1]:
        return Order.OLDER if first[1] else Order.NEWER
    return Order.NEWER if first[1] > second[1] else Order.OLDER


def _parsed(text: str) -> tuple[tuple[int, ...], _Preview] | None:
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        return None
    numbers = tuple(map(int, found[1].split(".")))
    return numbers, tuple(map(_part, found[2].split("."))) if found[2] else ()


def _part(text: str) -> tuple[int, int, str]:
    """A part of a preview: numbers by their value and before words, words by their letters."""
    return (0, int(text), "") if text.isdigit() else (1, 0, text)

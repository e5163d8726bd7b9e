"""Numbers with their units in one spelling: `30 seconds`, `30s` and `thirty seconds` are the same number."""

from __future__ import annotations

import re
from collections.abc import Iterator

_UNITS = {
    unit: names.split()[0]
    for names in (
        "ms msec millisecond milliseconds",
        "s sec secs second seconds",
        "min mins minute minutes",
        "h hr hrs hour hours",
        "d day days",
        "week weeks",
        "month months",
        "year years",
        "b byte bytes",
        "kb kib kilobyte kilobytes",
        "mb mib megabyte megabytes",
        "gb gib gigabyte gigabytes",
        "px pixel pixels",
        "% percent",
        "x times",
    )
    for unit in names.split()
}
_WORDS = {
    "zero": "0",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "eleven": "11",
    "twelve": "12",
    "twenty": "20",
    "thirty": "30",
    "sixty": "60",
    "hundred": "100",
    "thousand": "1000",
    "once": "1x",
    "twice": "2x",
    "double": "2x",
    "triple": "3x",
    "half": "1/2",
}
_NUMBER = re.compile(
    r"(?P<sign>(?<![\w)\]-])-(?=\d))?(?P<digits>\d+(?:[.,]\d+)*)(?P<attached>[^\W\d_]+|%)?(?:[ -](?P<loose>[a-z]+|%))?"
    rf"|\b(?P<word>{'|'.join(_WORDS)})\b(?:[ -](?P<counted>[a-z]+))?"
)
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")


def numbers_in(folded: str) -> Iterator[str]:
    """The numbers of a folded text in order, each with its unit if it has one."""
    return (_canonical(match)[0] for match in _NUMBER.finditer(folded))


def with_plain_numbers(folded: str) -> str:
    """The folded text with every number in its one spelling."""
    return _NUMBER.sub(lambda match: " ".join(filter(None, _canonical(match))), folded)


def _canonical(match: re.Match[str]) -> tuple[str, str]:
    """The number with its unit, and the word after it that turned out to be no unit."""
    following = match["counted"] or match["loose"] or ""
    unit = match["attached"] or ""
    if unit:
        unit = _UNITS.get(unit, unit)
    elif following in _UNITS:
        unit, following = _UNITS[following], ""
    number = _WORDS[match["word"]] if match["word"] else (match["sign"] or "") + _THOUSANDS.sub("", match["digits"])
    return number + unit, following

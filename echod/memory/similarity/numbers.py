"""Numbers with their units in one spelling: `30 seconds`, `30s` and `thirty seconds` are the same number."""

from __future__ import annotations

import re
from collections.abc import Iterator

_UNITS = {
    unit: names.split()[0]
    for names in (
        "ns nanosecond nanoseconds",
        "us \u03bcs microsecond microseconds",
        "ms msec millisecond milliseconds",
        "s sec secs second seconds",
        "min mins minute minutes",
        "h hr hrs hour hours",
        "d day days",
        "week weeks",
        "month months",
        "year years",
        "b byte bytes",
        "kb kilobyte kilobytes",
        "kib kibibyte kibibytes",
        "mb megabyte megabytes",
        "mib mebibyte mebibytes",
        "gb gigabyte gigabytes",
        "gib gibibyte gibibytes",
        "tb terabyte terabytes",
        "tib tebibyte tebibytes",
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
    "thirteen": "13",
    "fourteen": "14",
    "fifteen": "15",
    "sixteen": "16",
    "seventeen": "17",
    "eighteen": "18",
    "nineteen": "19",
    "twenty": "20",
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "seventy": "70",
    "eighty": "80",
    "ninety": "90",
    "dozen": "12",
    "hundred": "100",
    "thousand": "1000",
    "million": "1000000",
    "billion": "1000000000",
    "trillion": "1000000000000",
    "once": "1x",
    "twice": "2x",
    "thrice": "3x",
    "double": "2x",
    "triple": "3x",
    "half": "1/2",
    "quarter": "1/4",
}
_EACH = ("every", "each", "per")
_UNIT = rf"(?:{'|'.join(sorted(_UNITS.keys() - {'%'}, key=len, reverse=True))})(?![^\W_])"
# What follows and is no unit stays outside: it may be a number itself (`twenty-five`, `5 million`).
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w)\]-])-(?=\d))?(?P<digits>\d+(?:[.,]\d+)*)"
    rf"(?:(?P<attached>[^\W\d_]+|%)|[ -](?P<loose>{_UNIT}|%))?"
    rf"|\b(?P<word>{'|'.join(_WORDS)})s?\b(?:[ -](?P<counted>{_UNIT}|%))?"
    rf"|\b(?:{'|'.join(_EACH)})[ ](?P<each>{_UNIT})"
)
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")


def numbers_in(folded: str) -> Iterator[str]:
    """The numbers of a folded text in order, each with its unit if it has one; `every minute` is one of them."""
    return (_canonical(match) for match in _NUMBER.finditer(folded))


def with_plain_numbers(folded: str) -> str:
    """The folded text with every number in its one spelling."""
    return _NUMBER.sub(_canonical, folded)


def _canonical(match: re.Match[str]) -> str:
    unit = match["attached"] or match["loose"] or match["counted"] or match["each"] or ""
    unit = _UNITS.get(unit, unit)
    if match["each"]:
        return f"1{unit}"
    number = _WORDS[match["word"]] if match["word"] else (match["sign"] or "") + _THOUSANDS.sub("", match["digits"])
    return number + unit

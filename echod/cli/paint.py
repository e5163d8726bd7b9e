"""Colours for a terminal. They repeat what the words and marks say, so that nothing is lost without them."""

from __future__ import annotations

import re
from typing import Final

_RED, _GREEN, _YELLOW, _RESET = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"

_COLOURS: Final = (
    (re.compile(r"^([^\S\n]*+)(!)(?= )", re.MULTILINE), _RED),
    (re.compile(r"^([^\S\n]*+)(ok)(?=  )", re.MULTILINE), _GREEN),
    (re.compile(r"^([^\S\n]*+)(>)(?= )", re.MULTILINE), _GREEN),
    (re.compile(r"^(echod )(is healthy)", re.MULTILINE), _GREEN),
    (re.compile(r"^(echod )(needs a look)", re.MULTILINE), _YELLOW),
    (re.compile(r"^(echod )(is not running|does not answer)", re.MULTILINE), _RED),
    (re.compile(r"^( {4}\S+ +\d+/\d+ lines )(OVER)\b", re.MULTILINE), _RED),
)


def colorize(screen: str) -> str:
    """A screen with its marks in colour; widths stay what they are."""
    for pattern, colour in _COLOURS:
        screen = pattern.sub(rf"\g<1>{colour}\g<2>{_RESET}", screen)
    return screen

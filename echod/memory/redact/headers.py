"""Credentials in the places that programs have for them: Authorization headers, `curl -u`, `sshpass -p`, netrc."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from echod.memory.redact.innocent import is_code, is_mixed, is_placeholder, is_word, looks_random
from echod.memory.redact.scan import first_of_overlapping, lowered, places
from echod.memory.redact.values import Secret


@dataclass(frozen=True, slots=True)
class Place:
    """A pattern with a group `value`, matched where one of the words stands; `accepts` looks at the value."""

    kind: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool]


_SHORTEST_BEARER = 6
_TOKEN = r"(?P<value>[A-Za-z0-9._~+/=:-]{6,2048})"  # noqa: S105 - a pattern
_PASSWORD = r"\"(?P<quoted>[^\"\n\uffff]{1,128})\"|'(?P<single>[^'\n\uffff]{1,128})'|(?P<bare>[^\s\"'\uffff]{1,128})"  # noqa: S105


def _is_token(value: str) -> bool:
    return not (is_placeholder(value) or is_word(value) or is_code(value)) and (
        is_mixed(value, at_least=_SHORTEST_BEARER) or looks_random(value, at_least=_SHORTEST_BEARER)
    )


def _is_given(value: str) -> bool:
    return not is_placeholder(value)


PLACES = (
    Place(
        "bearer-token",
        ("authorization",),
        re.compile(
            r"authorization[\"'\]]{0,3}[ \t]{0,4}[:=,][ \t]{0,4}[bf]?[\"'`]?"
            rf"(?:(?:basic|bearer|token|digest|apikey|key|negotiate|bot)[ \t]{{1,4}})?{_TOKEN}",
            re.IGNORECASE,
        ),
        _is_token,
    ),
    Place(
        "bearer-token",
        ("bearer",),
        re.compile(rf"bearer(?:[ \t]{{1,4}}|[ \t]{{0,2}}[:=][ \t]{{0,2}}[\"'`]?){_TOKEN}", re.IGNORECASE),
        _is_token,
    ),
    Place(
        "password",
        (" -u", " --user", " --proxy-user"),
        re.compile(r" -{1,2}[a-z-]{1,10}[ =]{0,2}[\"']?[^\s:\"'@/\uffff]{1,64}:(?P<value>[^\s\"'\uffff/]{1,128})"),
        _is_given,
    ),
    Place(
        "password",
        ("sshpass",),
        re.compile(r"sshpass[ \t]+-p[ \t]{0,2}[\"']?(?P<value>[^\s\"'\uffff]{1,128})", re.IGNORECASE),
        _is_given,
    ),
    Place(
        "password",
        ("login ",),
        re.compile(r"login[ \t]+[^\s\uffff]{1,64}[ \t]+password[ \t]+(?P<value>[^\s\"'\uffff]{1,128})", re.IGNORECASE),
        _is_given,
    ),
)


def find_header_credentials(text: str) -> list[Secret]:
    """Every credential that stands in one of the places."""
    lower = lowered(text)
    return first_of_overlapping(
        Secret(place.kind, match.start("value"), match.start("value") + len(value))
        for place in PLACES
        for word in place.words
        for at in places(lower, word)
        if (match := place.pattern.match(text, at)) and place.accepts(value := match["value"].rstrip(".,:"))
    )

"""Credentials in the places that programs have for them: Authorization headers, `curl -u`, `sshpass -p`, netrc."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from echod.memory.redact.plausibility import is_code, is_description, is_mixed, is_placeholder, is_word, looks_random
from echod.memory.redact.scan import first_of_overlapping, lowered, places
from echod.memory.redact.values import Secret


@dataclass(frozen=True, slots=True)
class Place:
    """A pattern with a group `value`, matched where one of the words stands; `accepts` looks at the value."""

    kind: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool]


_SHORTEST = 6
_SHORTEST_WORD = 16
_TOKEN = rf"(?P<value>[A-Za-z0-9._~+/=:-]{{{_SHORTEST},2048}})"
_GIVEN = r"(?P<value>[^\s\"'`\uffff]{1,128})"
_STANDARD = re.compile(r"[A-Z]{2,5}-?[0-9]{1,5}")  # RFC6750
_RUN = re.compile(r"[A-Za-z0-9]+")


def _is_token(value: str) -> bool:
    """Whether what follows "bearer" is a token and not the next word of a sentence."""
    if is_word(value) and not looks_random(value, at_least=_SHORTEST_WORD):
        return False
    if is_placeholder(value) or is_code(value) or is_description(value) or _STANDARD.fullmatch(value):
        return False
    return any(is_mixed(run, at_least=2) for run in _RUN.findall(value)) or looks_random(value, at_least=_SHORTEST)


def _is_header(value: str) -> bool:
    """Whether what follows "Authorization:" is a credential; there, a long run of letters is one too."""
    if not value.isalpha() or is_placeholder(value):
        return _is_token(value)
    return len(value) >= _SHORTEST_WORD or looks_random(value, at_least=_SHORTEST)


def _is_given(value: str) -> bool:
    return not is_placeholder(value)


def _place(kind: str, words: tuple[str, ...], pattern: str, accepts: Callable[[str], bool]) -> Place:
    return Place(kind, words, re.compile(pattern, re.IGNORECASE), accepts)


_HEADER = r"authorization\\?[\"'\]]{0,3}[ \t]{0,4}[:=,][ \t]{0,4}[bf]?\\?[\"'`]?"

PLACES = (
    _place("bearer-token", ("authorization",), rf"{_HEADER}bearer[ \t]{{1,4}}{_TOKEN}", _is_header),
    _place(
        "bearer-token", ("bearer",), rf"bearer(?:[ \t]{{1,4}}|[ \t]{{0,2}}[:=][ \t]{{0,2}}[\"'`]?){_TOKEN}", _is_token
    ),
    _place(
        "authorization",
        ("authorization",),
        rf"{_HEADER}(?:(?:basic|token|digest|apikey|api-key|key|bot)[ \t]{{1,4}})?{_TOKEN}",
        _is_header,
    ),
    _place(
        "password",
        (" -u", " --user", " --proxy-user"),
        rf" -{{1,2}}[a-z-]{{1,10}}[ =]{{0,2}}[\"']?[^\s:\"'@/\uffff]{{1,64}}:{_GIVEN}",
        _is_given,
    ),
    _place("password", ("sshpass",), rf"sshpass[ \t]+-p[ \t]{{0,2}}[\"']?{_GIVEN}", _is_given),
    _place("password", ("login ",), rf"login[ \t]+[^\s\uffff]{{1,64}}[ \t]+password[ \t]+{_GIVEN}", _is_given),
    _place("token", ("sig=", "x-amz-signature="), r"[a-z-]{3,15}=(?P<value>[A-Za-z0-9%+/_-]{32,256}={0,2})", _is_token),
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

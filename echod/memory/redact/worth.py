"""Whether a value is a secret, given what its name claims and how it stands in the line."""

from __future__ import annotations

import re
from enum import Enum, auto

from echod.memory.redact.names import Claim
from echod.memory.redact.plausibility import (
    is_address,
    is_code,
    is_description,
    is_digest,
    is_hex,
    is_mixed,
    is_placeholder,
    is_sentence,
    is_uuid,
    is_word,
    looks_random,
    without_numbers,
    without_uuids,
)


class Setting(Enum):
    """How a value stands in its line."""

    QUOTED = auto()
    """In quotes: a literal."""
    FIELD = auto()
    """All there is after the name of a field: `PASSWORD=...`, `--password ...`, `;Pwd=...;`."""
    AMID = auto()
    """In the middle of a line or in backticks: it may as well be a word of a sentence or an identifier."""


_WORD_AND_NUMBER = re.compile(r"[A-Za-z]*[a-z][_.-]?[0-9]{3,6}")  # Winter_2026; not SEC-001, not step-2
_SYMBOLS = frozenset("!@#$%^&*+?~=")
_SHORTEST_SECRET = 8
_SHORTEST = {Claim.PHRASE: 3, Claim.PASSWORD: 3, Claim.SECRET: _SHORTEST_SECRET, Claim.TOKEN: 16, Claim.KEY: 20}
_SHORTEST_AMID = 5
_SHORTEST_PIN = 4
_HEX_TOKEN = 20


def is_secret(value: str, claim: Claim, setting: Setting) -> bool:
    """Whether the value that stands beside a name is to be redacted."""
    if len(value) < _SHORTEST[claim]:
        return False
    if claim in {Claim.PHRASE, Claim.PASSWORD}:
        return not _is_innocent(value, setting) and _is_password(value, claim, setting)
    # Most values beside "key" and "token" are words: asking first whether one looks random spares the other questions.
    return _is_token(value, claim, setting) and not _is_innocent(value, setting)


def _is_innocent(value: str, setting: Setting) -> bool:
    if is_placeholder(value) or is_description(value) or is_digest(value) or is_address(value):
        return True
    return setting is not Setting.QUOTED and is_code(value)


def _is_password(value: str, claim: Claim, setting: Setting) -> bool:
    if any(map(str.isspace, value)):
        return setting is Setting.QUOTED and (claim is Claim.PHRASE or not is_sentence(value))
    if value.isdigit():
        return len(value) >= _SHORTEST_PIN and setting is not Setting.AMID
    if setting is not Setting.AMID:
        return True
    if len(value) < _SHORTEST_AMID or is_word(value):
        return False
    if is_mixed(value, at_least=_SHORTEST_AMID) or not _SYMBOLS.isdisjoint(value):
        return True
    return _WORD_AND_NUMBER.fullmatch(value) is not None


def _is_token(value: str, claim: Claim, setting: Setting) -> bool:
    if any(map(str.isspace, value)):
        return False
    if is_uuid(value):
        return claim is Claim.SECRET and setting is not Setting.AMID
    if claim is Claim.SECRET:
        return is_mixed(value, at_least=_SHORTEST_SECRET) or looks_random(value, at_least=_SHORTEST_SECRET)
    if is_hex(value):
        return claim is Claim.TOKEN and setting is not Setting.AMID and len(value) >= _HEX_TOKEN
    if not looks_random(value, at_least=_SHORTEST[claim]):
        return False
    rest = without_uuids(value) if claim is Claim.TOKEN else without_numbers(value)
    return looks_random(rest, at_least=_SHORTEST[claim])

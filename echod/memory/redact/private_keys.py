"""Private keys in text armour (PEM, OpenSSH, PGP), whole or cut off before their end.

The one rule that may take several lines. It never takes a Markdown fence or a heading with them.
"""

from __future__ import annotations

import re

from echod.memory.redact.values import Secret

_LANDMARK = re.compile(
    r"-{4,5} ?(?P<begin>BEGIN) (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"|-{4,5} ?(?P<end>END) (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"|^[ \t>]{0,8}(?:`{3}|~{3}|\#{1,6} )",
    re.MULTILINE,
)
_RUN = re.compile(r"[A-Za-z0-9+/=]{16,}")

_LEAST_MATERIAL = 56
"""Characters of base64: the smallest private key (Ed25519, 48 bytes) has 64; less is a placeholder."""

_LEAST_SHARE = 0.6
"""Of what stands between the marks and is no blank; the rest is headers, quotes and line marks."""


def find_private_keys(text: str) -> list[Secret]:
    """Every armoured private key that holds key material."""
    if "PRIVATE KEY" not in text:
        return []
    found: list[Secret] = []
    begin: re.Match[str] | None = None
    for landmark in _LANDMARK.finditer(text):
        if begin is not None:
            end = _end_of_key(text, begin, landmark)
            if end is not None:
                found.append(Secret("private-key", begin.start(), end))
        begin = landmark if landmark["begin"] else None
    if begin is not None:
        end = _end_of_material(text, begin.end(), len(text))
        if end is not None:
            found.append(Secret("private-key", begin.start(), end))
    return found


def _end_of_key(text: str, begin: re.Match[str], landmark: re.Match[str]) -> int | None:
    end = _end_of_material(text, begin.end(), landmark.start())
    return landmark.end() if end is not None and landmark["end"] else end


def _end_of_material(text: str, start: int, stop: int) -> int | None:
    runs = list(_RUN.finditer(text, start, stop))
    material = sum(len(run[0]) for run in runs)
    if material < _LEAST_MATERIAL:
        return None
    end = runs[-1].end()
    inked = sum(not char.isspace() for char in text[start:end])
    return end if material >= _LEAST_SHARE * inked else None

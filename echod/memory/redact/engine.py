"""Runs the rules over a text, the most certain first; what one rule found is a wall for the next.

The rules are run until none finds anything more. A text that was redacted looks to the rules like the last round's
view of the original (markers are walls too), so redacting it again changes nothing.
"""

from __future__ import annotations

from echod.memory.redact.headers import find_header_credentials
from echod.memory.redact.named import find_named
from echod.memory.redact.patterns import find_shapes
from echod.memory.redact.private_keys import find_private_keys
from echod.memory.redact.spans import look_at
from echod.memory.redact.urls import find_url_credentials
from echod.memory.redact.values import Redaction, Secret, replace

_FAMILIES = (find_private_keys, find_shapes, find_url_credentials, find_header_credentials, find_named)

# One round finds all in practice; a few more only where a redaction uncovers a neighbour. The bound keeps the work
# linear for a text that was made to uncover one secret a round.
_ROUNDS = 8


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Every secret in a text in the order of appearance, not overlapping. Time is linear in the text."""
    view = look_at(text)
    found: list[Secret] = []
    for _ in range(_ROUNDS):
        here: list[Secret] = []
        for family in _FAMILIES:
            secrets = family(view.text)
            if secrets:
                here += secrets
                view = view.behind_walls(secrets)
        if not here:
            break
        found += map(view.in_original, here)
        view = view.lines_of(here)
    return tuple(sorted(found, key=lambda secret: secret.start))


def redact(text: str) -> Redaction:
    """The text with every secret replaced by `[REDACTED:kind]`; nothing else is touched.

    A private key may span lines and is replaced as a whole; all other secrets stand in one line, so headings, fields
    and fences stay where they are. Redacting twice is redacting once.
    """
    return replace(text, find_secrets(text))


def redact_bytes(data: bytes) -> bytes:
    """The same for a whole file; what is no UTF-8 in it is kept byte for byte."""
    return redact(data.decode("utf-8", "surrogateescape")).text.encode("utf-8", "surrogateescape")

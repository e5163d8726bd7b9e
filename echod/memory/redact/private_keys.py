"""Private keys in text armour (PEM, OpenSSH, PGP), whole or cut off before their end.

The one rule that may take several lines. It takes the armour's own lines only, so a Markdown fence around a key stays.
"""

from __future__ import annotations

import re

from echod.memory.redact.values import Secret

# Between the lines of a key stand line breaks, and what quoting adds: blanks, `>`, string quotes, `+`, backslashes.
_BETWEEN = r"[\s\"'\\>+,|]"
_LABEL = r"(?:[A-Z0-9]{1,12}[ ]){0,4}PRIVATE[ ]KEY(?:[ ]BLOCK)?[ ]?-{4,5}"
_LINE = r"[A-Za-z0-9+/=]{16,}+"
_ARMOUR = re.compile(
    rf"""-{{4,5}}[ ]?BEGIN[ ]{_LABEL}
        (?:{_BETWEEN}{{1,64}}[A-Z][A-Za-z0-9-]{{1,30}}:[ ][^\n\uffff]{{0,120}}(?=\n)){{0,8}}    # Proc-Type: 4,ENCRYPTED
        (?P<body>(?:{_BETWEEN}{{0,64}}{_LINE})++)
        (?: (?:{_BETWEEN}{{1,64}}[A-Za-z0-9+/=]{{1,15}}+)? {_BETWEEN}{{0,64}}-{{4,5}}[ ]?END[ ]{_LABEL} )?
    """,
    re.VERBOSE,
)
_LINES = re.compile(_LINE)

_LEAST_MATERIAL = 56
"""Characters of base64: the smallest private key (Ed25519, 48 bytes) has 64; less is a placeholder."""


def find_private_keys(text: str) -> list[Secret]:
    """Every armoured private key that holds key material."""
    if "PRIVATE KEY" not in text:
        return []
    return [
        Secret("private-key", key.start(), key.end())
        for key in _ARMOUR.finditer(text)
        if sum(map(len, _LINES.findall(key["body"]))) >= _LEAST_MATERIAL
    ]

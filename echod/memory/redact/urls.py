"""Credentials inside a URL or a connection string: `scheme://user:password@host`.

Only the credential is taken; the scheme, the user and the host stay, for they carry the knowledge.
"""

from __future__ import annotations

import re

from echod.memory.redact.plausibility import is_placeholder, looks_random
from echod.memory.redact.scan import places
from echod.memory.redact.values import Secret

_AUTHORITY = re.compile(r"[^\s/?#\"'`<>|\\\uffff]{1,512}")
_SHORTEST_TOKEN = 16


def find_url_credentials(text: str) -> list[Secret]:
    """The password of each URL that carries one, or a token in the place of the user."""
    return [
        secret
        for at in places(text, "://")
        if (authority := _AUTHORITY.match(text, at + 3))
        and "@" in authority[0]
        and (secret := _credential(authority[0], at + 3))
    ]


def _credential(authority: str, offset: int) -> Secret | None:
    userinfo, _, _host = authority.rpartition("@")
    user, colon, password = userinfo.partition(":")
    if colon:
        if not password or is_placeholder(password):
            return None
        start = offset + len(user) + 1
        return Secret("connection-string", start, start + len(password))
    if looks_random(user, at_least=_SHORTEST_TOKEN):
        return Secret("connection-string", offset, offset + len(user))
    return None

"""What a name such as `DB_PASSWORD`, `apiKey` or "access token" announces about the value beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from echod.memory.redact.vocabulary import words


class Claim(Enum):
    """How much a name says. The less it says, the more the value itself must look like a secret."""

    PHRASE = auto()
    """A passphrase: any value, several words too."""
    PASSWORD = auto()
    """Any value but the innocent ones."""
    SECRET = auto()
    """A value with letters and digits mixed: API keys, client secrets, access tokens."""
    TOKEN = auto()
    """A long value that looks random; a hexadecimal one only where nothing else stands in its place."""
    KEY = auto()
    """A long value that looks random and is no hexadecimal number: "key" is said of caches and maps too."""


@dataclass(frozen=True, slots=True)
class Name:
    """The kind of secret that a name announces, and how much it claims."""

    kind: str
    claim: Claim


_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_PASSWORDS = ("password", "passwd", "passwort", "pwd")
_PASS_OWNERS = words(
    "db database user mysql pg postgres redis mongo smtp mail ftp ssh admin root basic auth http proxy login my"
    " rabbitmq"
)
_TOKEN_OWNERS = words("access auth api refresh bot bearer personal deploy id session client")
_KEY_OWNERS = words(
    "api access secret private auth authentication encryption signing service account master app application client"
    " consumer shared storage deploy license server session hmac jwt aes subscription webhook bot"
)
_KEY_COMPOUNDS = ("apikey", "secretkey", "accesskey", "privatekey", "authkey", "signingkey", "encryptionkey")
_NOT_SECRET = words("public publishable pub foreign primary")
_SUFFIXES = words(
    "value base base64 b64 hex prod production dev development test testing staging live old new current raw"
)


@lru_cache(maxsize=1024)  # a text says few names, and says them often
def announced_by(text: str) -> Name | None:
    """What a name announces, judged by its last words; None if nothing secret."""
    pieces = [piece.lower() for piece in _PIECE.findall(text)]
    while len(pieces) > 1 and (pieces[-1] in _SUFFIXES or pieces[-1].isdigit()):
        pieces.pop()
    if not pieces or not _NOT_SECRET.isdisjoint(pieces):
        return None
    if pieces[-2:] in (["pass", "word"], ["pass", "phrase"]):
        pieces[-2:] = ["".join(pieces[-2:])]
    last, owner = pieces[-1], pieces[-2] if len(pieces) > 1 else ""
    if text.endswith("--pass"):
        return Name("password", Claim.PASSWORD)
    if last.endswith("s") and not last.endswith("ss"):
        singular = _singular(last[:-1], owner, pieces)
        return None if singular is None else Name(singular.kind, Claim.TOKEN)
    return _singular(last, owner, pieces)


def _singular(last: str, owner: str, pieces: list[str]) -> Name | None:
    if last.endswith("passphrase"):
        return Name("password", Claim.PHRASE)
    if last.endswith(_PASSWORDS) or (last == "pass" and owner in _PASS_OWNERS):
        return Name("password", Claim.PASSWORD)
    if last.endswith("secret"):
        return Name("secret", Claim.SECRET)
    if last.endswith("token"):
        sure = owner in _TOKEN_OWNERS or last != "token"
        return Name("token", Claim.SECRET if sure else Claim.TOKEN)
    if last.endswith(_KEY_COMPOUNDS) or (last == "key" and owner in _KEY_OWNERS):
        return Name(_kind_of_key(last, owner, pieces), Claim.SECRET)
    if last == "key":
        return Name("api-key", Claim.KEY)
    return Name("secret", Claim.TOKEN) if last == "credential" else None


def _kind_of_key(last: str, owner: str, pieces: list[str]) -> str:
    if owner == "private" or last.endswith("privatekey"):
        return "private-key"
    return "aws-secret-key" if "aws" in pieces and "secret" in pieces else "api-key"

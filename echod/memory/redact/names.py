"""What a name such as `DB_PASSWORD`, `apiKey` or "access token" announces about the value beside it.

The words that stand beside "password", "token" and "key" in texts that hold no secret. All in lower case.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple


def words(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


STAND_INS = words("""
    your my our the a an some this that here insert put enter replace replaced with change changed changeit changeme me
    add set fill in example examples sample dummy fake mock placeholder redacted hidden masked removed omitted sanitized
    todo tbd na valid invalid wrong correct secure strong test testing foo bar baz qux abc xyz foobar not real
    yourpassword mypassword
""")
"""A value of these alone stands for a secret: `your-api-key-here`, `changeme`."""

GENERIC = words("""
    key keys apikey token tokens secret secrets password passwords passwd pwd passphrase credential credentials api
    access auth value string text id user username name client private p pw args opts options params kwargs data hash
    hashed salt service account field fields input type schema hasher validator manager provider store
    str bytes
""")
"""Names of secrets and of what holds them: `password=password`, `token = opts`."""

TYPES = words("""
    str string int integer number float bool boolean bytes any object null none nil undefined true false optional void
    unknown never date secretstr char varchar uuid buffer list dict array yes no on off default required
""")
"""What declarations and schemas put there."""

PROSE = words("""
    optional hashing encrypted plain plaintext plain-text missing invalid valid wrong expired expires must should may
    can cannot never always only stored use used uses using reset rotate rotated rotation forgotten forgot changes login
    authentication authorization validation policy strength field fields input prompt prompts length minimum min maximum
    max env environment variable variables config configuration see is are was were be if when for from of to and or as
    at by get read write pass passed sent ok failed fails ignored empty refresh refreshed bearer basic jwt generated
    random static same different removed via it its does do don't needs need has have contains protected authenticated
    verified checked handled managed supported needed unset vault keychain keyring bitwarden lastpass
""")
"""How sentences and notes go on after "password:"."""

SENTENCE = PROSE | words("the please enter your characters character least a an in with this that not on")
"""One of these among words in quotes makes them a message, not a passphrase."""


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


class Name(NamedTuple):
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

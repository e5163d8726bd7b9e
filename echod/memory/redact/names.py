"""What a name such as `DB_PASSWORD`, `apiKey` or "access token" announces about the value beside it.

The words that stand beside "password", "token" and "key" in texts that hold no secret. All in lower case.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_PASSWORD_ENDINGS = ("password", "passwd", "passwort", "pwd")
_KEY_COMPOUNDS = ("apikey", "secretkey", "accesskey", "privatekey", "authkey", "signingkey", "encryptionkey")


def word_set(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


PLACEHOLDER_WORDS = word_set("""
    your my our the a an some this that here insert put enter replace replaced with change changed changeit changeme me
    add set fill in example examples sample dummy fake mock placeholder redacted hidden masked removed omitted sanitized
    todo tbd na valid invalid wrong correct secure strong test testing foo bar baz qux abc xyz foobar not real
    yourpassword mypassword
""")
"""A value of these alone stands for a secret: `your-api-key-here`, `changeme`."""

GENERIC_NAMES = word_set("""
    key keys apikey token tokens secret secrets password passwords passwd pwd passphrase credential credentials api
    access auth value string text id user username name client private p pw args opts options params kwargs data hash
    hashed salt service account field fields input type schema hasher validator manager provider store
    str bytes
""")
"""Names of secrets and of what holds them: `password=password`, `token = opts`."""

TYPE_NAMES = word_set("""
    str string int integer number float bool boolean bytes any object null none nil undefined true false optional void
    unknown never date secretstr char varchar uuid buffer list dict array yes no on off default required
""")
"""What declarations and schemas put there."""

PROSE_WORDS = word_set("""
    optional hashing encrypted plain plaintext plain-text missing invalid valid wrong expired expires must should may
    can cannot never always only stored use used uses using reset rotate rotated rotation forgotten forgot changes login
    authentication authorization validation policy strength field fields input prompt prompts length minimum min maximum
    max env environment variable variables config configuration see is are was were be if when for from of to and or as
    at by get read write pass passed sent ok failed fails ignored empty refresh refreshed bearer basic jwt generated
    random static same different removed via it its does do don't needs need has have contains protected authenticated
    verified checked handled managed supported needed unset vault keychain keyring bitwarden lastpass
""")
"""How sentences and notes go on after "password:"."""

SENTENCE_WORDS = PROSE_WORDS | word_set(
    "the please enter your characters character least a an in with this that not on"
)
"""One of these among words in quotes makes them a message, not a passphrase."""


class NameStrength(Enum):
    """How much a name says. The less it says, the more the value itself must look like a secret."""

    PASSPHRASE = auto()
    """A passphrase: any value, several words too."""
    PASSWORD = auto()
    """Any value but the innocent ones."""
    SECRET = auto()
    """A value with letters and digits mixed: API keys, client secrets, access tokens."""
    TOKEN = auto()
    """A long value that looks random; a hexadecimal one only where nothing else stands in its place."""
    KEY = auto()
    """A long value that looks random and is no hexadecimal number: "key" is said of caches and maps too."""


class SecretName(NamedTuple):
    """The kind of secret that a name announces, and how much it claims."""

    kind: str
    strength: NameStrength


_PASS_QUALIFIERS = word_set(
    "db database user mysql pg postgres redis mongo smtp mail ftp ssh admin root basic auth http proxy login my"
    " rabbitmq"
)
_TOKEN_QUALIFIERS = word_set("access auth api refresh bot bearer personal deploy id session client")
_KEY_QUALIFIERS = word_set(
    "api access secret private auth authentication encryption signing service account master app application client"
    " consumer shared storage deploy license server session hmac jwt aes subscription webhook bot"
)
_PUBLIC_QUALIFIERS = word_set("public publishable pub foreign primary")
_IGNORED_SUFFIXES = word_set(
    "value base base64 b64 hex prod production dev development test testing staging live old new current raw"
)


@lru_cache(maxsize=1024)  # a text says few names, and says them often
def classify_name(text: str) -> SecretName | None:
    """What a name announces, judged by its last words; None if nothing secret."""
    pieces = [piece.lower() for piece in _PIECE.findall(text)]
    while len(pieces) > 1 and (pieces[-1] in _IGNORED_SUFFIXES or pieces[-1].isdigit()):
        pieces.pop()
    if not pieces or not _PUBLIC_QUALIFIERS.isdisjoint(pieces):
        return None
    if pieces[-2:] in (["pass", "word"], ["pass", "phrase"]):
        pieces[-2:] = ["".join(pieces[-2:])]
    last, qualifier = pieces[-1], pieces[-2] if len(pieces) > 1 else ""
    if text.endswith("--pass"):
        return SecretName("password", NameStrength.PASSWORD)
    if last.endswith("s") and not last.endswith("ss"):
        singular = _classify_singular(last[:-1], qualifier, pieces)
        return None if singular is None else SecretName(singular.kind, NameStrength.TOKEN)
    return _classify_singular(last, qualifier, pieces)


def _classify_singular(last: str, qualifier: str, pieces: list[str]) -> SecretName | None:
    if last.endswith("passphrase"):
        return SecretName("password", NameStrength.PASSPHRASE)
    if last.endswith(_PASSWORD_ENDINGS) or (last == "pass" and qualifier in _PASS_QUALIFIERS):
        return SecretName("password", NameStrength.PASSWORD)
    if last.endswith("secret"):
        return SecretName("secret", NameStrength.SECRET)
    if last.endswith("token"):
        unambiguous = qualifier in _TOKEN_QUALIFIERS or last != "token"
        return SecretName("token", NameStrength.SECRET if unambiguous else NameStrength.TOKEN)
    if last.endswith(_KEY_COMPOUNDS) or (last == "key" and qualifier in _KEY_QUALIFIERS):
        return SecretName(_kind_of_key(last, qualifier, pieces), NameStrength.SECRET)
    if last == "key":
        return SecretName("api-key", NameStrength.KEY)
    return SecretName("secret", NameStrength.TOKEN) if last == "credential" else None


def _kind_of_key(last: str, qualifier: str, pieces: list[str]) -> str:
    if qualifier == "private" or last.endswith("privatekey"):
        return "private-key"
    return "aws-secret-key" if "aws" in pieces and "secret" in pieces else "api-key"

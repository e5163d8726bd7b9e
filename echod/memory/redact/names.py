"""Rate how strongly a name (`DB_PASSWORD`, `apiKey`, "access token") implies a secret value beside it.

Also holds the words that occur beside "password", "token" and "key" in texts without a secret. All are in lower case.
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
    """Return the words of a text as a set."""
    return frozenset(text.split())


PLACEHOLDER_WORDS = word_set("""
    your my our the a an some this that here insert put enter replace replaced with change changed changeit changeme me
    add set fill in example examples sample dummy fake mock placeholder redacted hidden masked removed omitted sanitized
    todo tbd na valid invalid wrong correct secure strong test testing foo bar baz qux abc xyz foobar not real
    yourpassword mypassword
""")
"""A value that consists of these alone is a placeholder: `your-api-key-here`, `changeme`."""

GENERIC_NAMES = word_set("""
    key keys apikey token tokens secret secrets password passwords passwd pwd passphrase credential credentials api
    access auth value string text id user username name client private p pw args opts options params kwargs data hash
    hashed salt service account field fields input type schema hasher validator manager provider store
    str bytes
""")
"""Names of secrets and of the things that contain them: `password=password`, `token = opts`."""

TYPE_NAMES = word_set("""
    str string int integer number float bool boolean bytes any object null none nil undefined true false optional void
    unknown never date secretstr char varchar uuid buffer list dict array yes no on off default required
""")
"""Types and defaults that declarations and schemas have as the value."""

PROSE_WORDS = word_set("""
    optional hashing encrypted plain plaintext plain-text missing invalid valid wrong expired expires must should may
    can cannot never always only stored use used uses using reset rotate rotated rotation forgotten forgot changes login
    authentication authorization validation policy strength field fields input prompt prompts length minimum min maximum
    max env environment variable variables config configuration see is are was were be if when for from of to and or as
    at by get read write pass passed sent ok failed fails ignored empty refresh refreshed bearer basic jwt generated
    random static same different removed via it its does do don't needs need has have contains protected authenticated
    verified checked handled managed supported needed unset vault keychain keyring bitwarden lastpass
""")
"""Words with which sentences and notes continue after "password:"."""

SENTENCE_WORDS = PROSE_WORDS | word_set(
    "the please enter your characters character least a an in with this that not on"
)
"""One of these among words in quotes makes them a message, not a passphrase."""


class NameStrength(Enum):
    """How strongly a name implies a secret. The weaker it is, the more the value itself must look like one."""

    PASSPHRASE = auto()
    """A passphrase: any value, even several words."""
    PASSWORD = auto()
    """Any value that is not a known false positive."""
    SECRET = auto()
    """A value that mixes letters and digits: API keys, client secrets, access tokens."""
    TOKEN = auto()
    """A long value that looks random. A hexadecimal one counts only where it is the whole value of a field."""
    KEY = auto()
    """A long value that looks random and is not hexadecimal, because caches and maps have a "key" too."""


class SecretName(NamedTuple):
    """The kind of secret that a name implies, and how strongly."""

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


@lru_cache(maxsize=1024)  # a text has few different names, and repeats them
def classify_name(text: str) -> SecretName | None:
    """Return the secret that a name implies, judged by its last words; None if it implies none."""
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

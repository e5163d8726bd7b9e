"""Secrets that are known by the word that stands next to them: `password: ...`, `API_KEY=...`, `Bearer ...`.

A value is taken when a name announces a secret, something joins the two (`:`, `=`, "is", a table's bar), and the value
is none of the innocents. How strict the look at the value is depends on how much the name says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from echod.memory.redact.innocent import (
    is_code,
    is_hash,
    is_hex,
    is_path,
    is_placeholder,
    is_type_or_prose,
    is_word,
    looks_random,
)
from echod.memory.redact.values import Secret


class Claim(Enum):
    """How much a name says about the value beside it."""

    PASSWORD = "password"  # noqa: S105 - a name for a name
    SECRET = "secret"  # noqa: S105
    TOKEN = "token"  # noqa: S105
    KEY = "key"


@dataclass(frozen=True, slots=True)
class Name:
    """What a name announces: the kind of secret, and how sure."""

    kind: str
    claim: Claim


_WORD = re.compile(r"(?i)pass(?:word|wd|phrase|wort)|pwd|[_-]pass\b|secret|token|credential|key")
_NAME_HEAD = re.compile(r"[A-Za-z0-9_.-]*(?: ?)[A-Za-z0-9_-]*$")
_NAME_TAIL = re.compile(r"[A-Za-z0-9_-]{0,40}")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_HEAD = 48

_JOINT = re.compile(
    r"""["'`\])*_]{0,4}              # what closes the name: a quote, a bracket, Markdown's stars
        [ \t]{0,8}(?:\([^()\n\uffff]{1,40}\)[ \t]{0,2})?
        (?P<op>:=|=>|->|[!=]==?|[:=|>]|\b(?:is|was|to|are)\b:?)
        [ \t]{0,8}\*{0,2}[ \t]{0,2}[({\[]?[rbuf]?
        (?P<value>"[^"\n\uffff]{1,512}"|'[^'\n\uffff]{1,512}'|`[^`\n\uffff]{1,512}`|[^\s"'`<;&\uffff]{1,512})
    """,
    re.VERBOSE,
)
_FLAG = re.compile(
    r"[ \t](?P<value>\"[^\"\n\uffff]{1,512}\"|'[^'\n\uffff]{1,512}'|[^\s\"'`<;&\uffff-][^\s\"'`<;&\uffff]{0,511})"
)
_BESIDE = re.compile(
    r"""[ \t]{1,2}(?:(?:for|of|in|with|value|called|named|the|a|an|from|by)[ \t]){0,3}
        ["'`(\[]?(?P<value>[A-Za-z0-9_\-+/=.~]{20,512})""",
    re.VERBOSE,
)
_AUTHORIZATION = re.compile(
    r"""(?i:\b(?:proxy-)?authorization["'\]]{0,3}[ \t]{0,4}[:=][ \t]{0,4}["'`]?
        (?:(?:basic|bearer|token|digest|apikey|key|negotiate)[ \t]{1,4})?
        |\bbearer(?:[ \t]{1,4}|[ \t]{0,2}[:=][ \t]{0,2}["'`]?))
        (?P<value>[A-Za-z0-9._~+/=:-]{6,4096})""",
    re.VERBOSE,
)
_CURL_USER = re.compile(
    r"(?<![\w-])(?:-u|--user|--proxy-user)[ =]{1,2}[\"']?[^\s:\"'\uffff]{1,64}:(?P<value>[^\s\"'\uffff]{1,128})"
)

_QUALIFIED_KEYS = frozenset(
    "api access secret private auth authentication encryption signing service account master app application client"
    " consumer shared storage deploy license admin server session hmac jwt aes ssh subscription webhook bot".split()
)
_KEY_COMPOUNDS = ("apikey", "secretkey", "accesskey", "privatekey", "authkey", "signingkey", "encryptionkey")
_PUBLIC = frozenset("public publishable pub foreign primary design max min num count".split())
_SUFFIXES = frozenset(
    "value base base64 b64 hex prod production dev development test staging live old new current raw".split()
)


def find_named(text: str) -> list[Secret]:
    """Every secret that a name, a header or an option next to it gives away."""
    candidates = [*_headers(text), *_assignments(text)]
    found: list[Secret] = []
    end = 0
    for secret in sorted(candidates, key=lambda secret: secret.start):
        if secret.start >= end:
            found.append(secret)
            end = secret.end
    return found


def _headers(text: str) -> Iterator[Secret]:
    for match in _AUTHORIZATION.finditer(text):
        value = match["value"].rstrip(".,:")
        if _header_value(value):
            yield Secret("bearer-token", match.start("value"), match.start("value") + len(value))
    for match in _CURL_USER.finditer(text):
        if not is_placeholder(match["value"]):
            yield Secret("password", match.start("value"), match.end("value"))


def _header_value(value: str) -> bool:
    if is_placeholder(value) or is_word(value) or is_code(value):
        return False
    return any(char.isdigit() for char in value) or looks_random(value)


def _assignments(text: str) -> Iterator[Secret]:
    for word in _WORD.finditer(text):
        tail = _NAME_TAIL.match(text, word.end())
        after = word.end() if tail is None else tail.end()
        line = text.rfind("\n", max(0, word.start() - _LONGEST_HEAD), word.start()) + 1
        head_start = max(line, word.start() - _LONGEST_HEAD)
        head = _NAME_HEAD.search(text, head_start, word.start())
        before = "" if head is None else head[0]
        name = _name(before + text[word.start() : after])
        if name is None:
            continue
        secret = _beside(text, before, after, name)
        if secret is not None:
            yield secret


def _name(text: str) -> Name | None:
    pieces = [piece.lower() for piece in _PIECE.findall(text)]
    while len(pieces) > 1 and (pieces[-1] in _SUFFIXES or pieces[-1].isdigit()):
        pieces.pop()
    if not pieces or not _PUBLIC.isdisjoint(pieces):
        return None
    last, before = pieces[-1], pieces[-2] if len(pieces) > 1 else ""
    if last.endswith(("password", "passwd", "passphrase", "passwort", "pwd")) or (last == "pass" and before):
        return Name("password", Claim.PASSWORD)
    if last.endswith("secret"):
        return Name("secret", Claim.SECRET)
    if last.endswith("token"):
        return Name("token", Claim.SECRET if before in {"access", "auth", "refresh", "bot", "api"} else Claim.TOKEN)
    if last.endswith(_KEY_COMPOUNDS) or (last == "key" and before in _QUALIFIED_KEYS):
        kind = "aws-secret-key" if "aws" in pieces and "secret" in pieces else "api-key"
        return Name("private-key" if before == "private" else kind, Claim.SECRET)
    if last == "key":
        return Name("api-key", Claim.KEY)
    return Name("secret", Claim.TOKEN) if last in {"credential", "credentials"} else None


def _beside(text: str, before: str, after: int, name: Name) -> Secret | None:
    joint = _JOINT.match(text, after)
    if joint is not None:
        return _judge(joint, name, prose=joint["op"].strip(":").isalpha(), line_end=_ends_line(text, joint.end()))
    if before.startswith("-") or "--" in before:
        flag = _FLAG.match(text, after)
        if flag is not None:
            return _judge(flag, name, prose=False, line_end=True)
    beside = _BESIDE.match(text, after)
    if (
        beside is not None
        and looks_random(beside["value"], at_least=20)
        and not _is_known_number(beside["value"], name)
    ):
        return Secret(name.kind, beside.start("value"), beside.start("value") + len(_trimmed(beside["value"])))
    return None


def _ends_line(text: str, position: int) -> bool:
    end = text.find("\n", position, position + 80)
    rest = text[position : end if end >= 0 else position + 80].strip()
    return not rest or rest.startswith(("#", "//", "|", "`", ";", "&", "}", ",", "<"))


def _judge(match: re.Match[str], name: Name, *, prose: bool, line_end: bool) -> Secret | None:
    raw = match["value"]
    start = match.start("value")
    quoted = raw[0] in "\"'`" and len(raw) > 1 and raw[-1] == raw[0]
    value = raw[1:-1] if quoted else _trimmed(raw)
    start += quoted
    if _is_secret(value, name, quoted=quoted, prose=prose, line_end=line_end):
        return Secret(name.kind, start, start + len(value))
    return None


def _trimmed(value: str) -> str:
    value = re.split(r",(?=\s|$|\w+[:=])", value, maxsplit=1)[0]
    while value and (value[-1] in ".,:*|" or (value[-1] in ")]}" and not set(value) & set("([{"))):
        value = value[:-1]
    return value


def _is_secret(value: str, name: Name, *, quoted: bool, prose: bool, line_end: bool) -> bool:
    if not value or is_placeholder(value) or is_code(value) or is_type_or_prose(value) or is_path(value):
        return False
    if name.claim is Claim.PASSWORD:
        if len(value) < 3 or (" " in value and not quoted):  # noqa: PLR2004
            return False
        if is_word(value):
            return (quoted and " " not in value) or (line_end and not prose)
        return " " not in value or any(char.isdigit() for char in value)
    if " " in value or _is_known_number(value, name):
        return False
    if name.claim is Claim.SECRET:
        mixed = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
        return looks_random(value, at_least=8) or (
            mixed and len(value) >= 8 and re.fullmatch(r"\w+", value) is not None
        )  # noqa: PLR2004
    return looks_random(value, at_least=16)


def _is_known_number(value: str, name: Name) -> bool:
    return is_hash(value) or (is_hex(value) and name.claim is Claim.KEY)

"""Secrets that are given away by a name beside them: `password: ...`, `API_KEY=...`, "the access token is ...".

First the places where such a word stands, then the whole name, then what joins it to a value, then the value; `names`
and `worth` decide. All in one line, and every step looks at a bounded number of characters.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from echod.memory.redact.names import Claim, Name, announced_by
from echod.memory.redact.plausibility import Setting, is_secret
from echod.memory.redact.spans import Secret, first_of_overlapping, lowered, places

_STEMS = ("passw", "passphrase", "pwd", "_pass", "-pass", "secret", "token", "credential", "key")
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_-."
_LONGEST_HEAD = 48
_TAIL = re.compile(r"[A-Za-z0-9_-]{0,40}")

_VALUE = r"""
    (?P<value>
        \\"[^"\\\n\uffff]{1,256}+\\"
      | "[^"\\\n\uffff]{0,256}+(?:\\[^\n\uffff][^"\\\n\uffff]{0,256}+){0,8}+"(?![ \t]*:)
      | '[^'\\\n\uffff]{0,256}+(?:\\[^\n\uffff][^'\\\n\uffff]{0,256}+){0,8}+'(?![ \t]*:)
      | `[^`\n\uffff]{1,256}+`
      | (?:[^\s"'`<;&|\uffff]{1,64}+ | <(?![/A-Za-z]) | &(?![\w.-]{1,32}=) | ;(?!\s|[\w ]{1,32}=|$)){1,3}+
    )
"""
_JOINED = re.compile(
    rf"""
    (?: >                                                # <password>...</password>
      | \\?["'`\])*_]{{0,4}}[ \t]{{0,8}}                 # what closes the name
        (?:\([^()\n\uffff]{{1,40}}\)[ \t]{{0,2}})?       # API key (staging): ...
        (?P<operator> :[ \t]{{0,2}}[A-Za-z_][\w.\[\], ]{{0,40}}=(?![=>])   # password: str = ...
                    | := | => | -> | [!=]==? | [:=|]
                    | \b(?:is|was|are|to)\b:? | (?<=["'`]), | \((?=["']) )
        [ \t]{{0,8}}\*{{0,2}}[ \t]{{0,2}}(?P<opener>[(\[]?)(?:[rbfu]{{1,2}}(?=["']))?
    )
    {_VALUE}
    """,
    re.VERBOSE,
)
_SURE_OPERATORS = frozenset({":", "=", ":=", "=>", "->", "|", None})
_OPTION = re.compile(rf"[ \t]{{1,4}}(?!-){_VALUE}", re.VERBOSE)
_LOOSE = re.compile(
    r"""[ \t]{1,2}(?:(?:for|of|in|with|value|called|named|the|a|an|from|by)[ \t]{1,2}){0,3}
        (?P<value> "[^"\s\uffff]{4,256}+" | '[^'\s\uffff]{4,256}+' | `[^`\s\uffff]{4,256}+`
                 | [(\[]?[A-Za-z0-9_\-+/=.~]{20,256}+ )
        (?![ \t]*:)""",
    re.VERBOSE,
)
_BEGINS_FIELD = re.compile(
    r"(?:[\s>*+|\"'`{\[#-]|(?:export|set|env|ENV|ARG|const|let|var|val|final|static|String|local)[ \t])*"
)
_ENDS_FIELD = re.compile(r"[ \t\r]*(?:$|[#|;&`}]|//|</|-{1,2}[A-Za-z]|\\?[\"'])", re.MULTILINE)
_NEXT_FIELD = re.compile(r",(?=\s|$|[\w\"']+[:=])")
_OPENER = re.compile(r"[(\[{]")
_CLOSER = re.compile(r"[)\]}](?=[)\]},;.:*\s]|$)")
_MORE = re.compile(r"[^\s\"'`<;&|,)\]}\uffff]*")
_ANY_VALUE = frozenset({Claim.PHRASE, Claim.PASSWORD})
_QUOTES = "\"'`"


def find_named(text: str) -> list[Secret]:
    """Every secret that a name in the same line gives away."""
    return first_of_overlapping(_candidates(text))


def _candidates(text: str) -> Iterator[Secret]:
    lower = lowered(text)
    done = 0
    for word in sorted(at for stem in _STEMS for at in places(lower, stem)):
        if word < done:
            continue
        tail = _TAIL.match(text, word)
        name_end = word if tail is None else tail.end()
        secret = _beside(text, word, name_end, done)
        done = name_end if secret is None else max(name_end, secret.end)
        if secret is not None:
            yield secret


def _beside(text: str, word: int, name_end: int, done: int) -> Secret | None:
    joined = _JOINED.match(text, name_end)
    if joined is None and not text.startswith((" ", "\t"), name_end):
        return None
    start = _start_of_name(text, word, done)
    match = joined or (_OPTION if text.startswith("--", start) else _LOOSE).match(text, name_end)
    if match is None:
        return None
    owner = _start_with_owner(text, start, done)
    name = announced_by(text[owner:name_end])
    if name is None:
        return None
    begins = joined is None or _is_field(text, start if name.claim in _ANY_VALUE else owner, joined)
    return _judged(text, match, name, begins=begins and match.re is not _LOOSE)


def _start_of_name(text: str, word: int, done: int) -> int:
    head = text[max(done, word - _LONGEST_HEAD) : word]
    return word - len(head) + len(head.rstrip(_NAME_CHARACTERS))


def _start_with_owner(text: str, start: int, done: int) -> int:
    """Where the one or two words before a name begin: "access" of "access token", "secret access" of "... key"."""
    for _ in range(2):
        if start <= done or text[start - 1] != " ":
            break
        start = _start_of_name(text, start - 1, done)
    return start


def _is_list(match: re.Match[str]) -> bool:
    """Whether a quoted value is one of several, or an argument: it need not belong to the name at all."""
    groups = match.groupdict()
    return groups.get("operator") in {",", "("} or groups.get("opener") == "["


def _is_field(text: str, start: int, joined: re.Match[str]) -> bool:
    operator = joined["operator"]
    if joined[0].startswith("=") and joined.start("value") == joined.start() + 1:
        return True
    sure = operator in _SURE_OPERATORS or (operator.startswith(":") and operator.endswith("="))
    return sure and _begins_field(text, start)


def _begins_field(text: str, start: int) -> bool:
    if text.startswith("--", start):
        return True
    window = text[max(0, start - _LONGEST_HEAD) : start]
    line = window[window.rfind("\n") + 1 :]
    whole = len(line) < len(window) or start <= _LONGEST_HEAD
    return line.rstrip(" ").endswith((";", "&", "?")) or (whole and _BEGINS_FIELD.fullmatch(line) is not None)


def _judged(text: str, match: re.Match[str], name: Name, *, begins: bool) -> Secret | None:
    raw = match["value"]
    start, end = match.span("value")
    setting = Setting.AMID
    if raw.startswith("\\"):
        start, end, setting = start + 2, end - 2, Setting.QUOTED
    elif raw[0] in _QUOTES and len(raw) > 1 and raw[-1] == raw[0]:
        start, end = start + 1, end - 1
        if match.re is not _LOOSE and raw[0] != "`" and not _is_list(match):
            setting = Setting.QUOTED
    else:
        value = _trimmed(raw)
        end = start + len(value)
        if begins and ")" not in raw[len(value) :] and _ENDS_FIELD.match(text, match.end()):
            setting = Setting.FIELD
    if not is_secret(text[start:end], name.claim, setting):
        return None
    more = None if end < match.end() else _MORE.match(text, end)
    return Secret(name.kind, start, end if more is None else more.end())


def _trimmed(value: str) -> str:
    """A bare value without what belongs to the text around it: the next field, closing brackets, a full stop."""
    value = _NEXT_FIELD.split(value, maxsplit=1)[0].lstrip("([")
    closer = _CLOSER.search(value)
    if closer is not None and _OPENER.search(value, 0, closer.start()) is None:
        value = value[: closer.start()]
    return value.rstrip(".,:*")

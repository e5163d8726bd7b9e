"""Find secrets that a name beside them gives away (`password: ...`, `API_KEY=...`).

Also in prose: "the access token is ...". The search first finds the places of such a word, then the whole name, then
what joins it to a value, then the value. `plausibility` rates name and value. All of that is within one line, and every
step reads a bounded number of characters.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from echod.memory.redact.plausibility import NameStrength, SecretName, ValueContext, classify_name, is_secret
from echod.memory.redact.spans import Secret, find_all, lower_same_length, without_overlaps

_NAME_STEMS = ("passw", "passphrase", "pwd", "_pass", "-pass", "secret", "token", "credential", "key")
_SHORT_NAME = re.compile(r"(?<![\w.-])(?:pass|pw)(?=\\?[\"'`*_]{0,4}[ \t]{0,4}[:=|])")
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_-."
_MAX_NAME_PREFIX = 48
_NAME_SUFFIX = re.compile(r"[A-Za-z0-9_-]{0,40}")

_VALUE = r"""
    (?P<value>
        \\"[^"\\\n\uffff]{1,256}+\\"
      | "[^"\\\n\uffff]{0,256}+(?:\\[^\n\uffff][^"\\\n\uffff]{0,256}+){0,8}+"(?![ \t]*:)
      | '[^'\\\n\uffff]{0,256}+(?:\\[^\n\uffff][^'\\\n\uffff]{0,256}+){0,8}+'(?![ \t]*:)
      | `[^`\n\uffff]{1,256}+`
      | (?:[^\s"'`<;&|\uffff]{1,64}+ | <(?![/A-Za-z]) | &(?![\w.-]{1,32}=) | ;(?!\s|[\w ]{1,32}=|$)){1,3}+
    )
"""
_ASSIGNMENT = re.compile(
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
_ASSIGNMENT_OPERATORS = frozenset({":", "=", ":=", "=>", "->", "|", None})
_OPTION_VALUE = re.compile(rf"[ \t]{{1,4}}(?!-){_VALUE}", re.VERBOSE)
_PROSE_VALUE = re.compile(
    r"""[ \t]{1,2}(?:(?:for|of|in|with|value|called|named|the|a|an|from|by)[ \t]{1,2}){0,3}
        (?P<value> "[^"\s\uffff]{4,256}+" | '[^'\s\uffff]{4,256}+' | `[^`\s\uffff]{4,256}+`
                 | [(\[]?[A-Za-z0-9_\-+/=.~]{20,256}+ )
        (?![ \t]*:)""",
    re.VERBOSE,
)
_FIELD_START = re.compile(
    r"(?:[\s>*+|\"'`{\[#-]|(?:export|set|env|ENV|ARG|const|let|var|val|final|static|String|local)[ \t])*"
)
_FIELD_END = re.compile(r"[ \t\r]*(?:$|[#|;&`}]|//|</|-{1,2}[A-Za-z]|\\?[\"'])", re.MULTILINE)
_NEXT_FIELD = re.compile(r",(?=\s|$|[\w\"']+[:=])")
_OPENER = re.compile(r"[(\[{]")
_CLOSER = re.compile(r"[)\]}](?=[)\]},;.:*\s]|$)")
_VALUE_REST = re.compile(r"[^\s\"'`<;&|,)\]}\uffff]*")
_ANY_VALUE_STRENGTHS = frozenset({NameStrength.PASSPHRASE, NameStrength.PASSWORD})
_QUOTES = "\"'`"
_LOGIN_BEFORE = re.compile(r"(?i)(?:\b|_)(?:user(?:name)?|login|admin|root|account|uid|e-?mail)\b[^\n\uffff]*\Z")
_MAX_DEFAULT_DISTANCE = 200  # characters between a name and the default of its value
_MIN_DEFAULT_LENGTH = 6
_EXPANSION = re.compile(r"[\"'`]?[$#]\{\{?[ \t]*[\w.]{1,64}:[-=?]?(?P<value>[^\s}\"'`$\uffff]{1,128})\}")
_REFERENCE_START = re.compile(
    r"!?[\w.$@:]{0,80}(?:\.|\(|\[|->|\?\.)|\$?[A-Za-z_]\w{0,63}[ \t]{1,2}(?:\|\||\?\?|\?:|or\b)|[$%]\{"
)
_DEFAULT = re.compile(
    r"(?:\|\||\?\?|\?:|//|\bor|\belse|,[ \t]{0,2}(?:default[ \t]{0,2}[=:])?|\{)[ \t]{0,4}[bru]?"
    r"[\"'`](?P<value>[^\"'`\n\s\uffff]{1,128})[\"'`](?=[ \t]{0,4}(?:[;,)}\]]|$|#|//|\n))",
    re.MULTILINE,
)


def find_named_secrets(text: str) -> list[Secret]:
    """Return every secret that a name in the same line gives away."""
    return without_overlaps(_iter_named_secrets(text))


def _iter_named_secrets(text: str) -> Iterator[Secret]:
    lower = lower_same_length(text)
    done = 0
    places = [at for stem in _NAME_STEMS for at in find_all(lower, stem)]
    places += [at for name in ("pass", "pw") for at in find_all(lower, name) if _SHORT_NAME.match(lower, at)]
    for word in sorted(places):
        if word < done:
            continue
        tail = _NAME_SUFFIX.match(text, word)
        name_end = word if tail is None else tail.end()
        secret = _find_value(text, word, name_end, done)
        done = name_end if secret is None else max(name_end, secret.end)
        if secret is not None:
            yield secret


def _find_value(text: str, stem_start: int, name_end: int, done: int) -> Secret | None:
    assignment = _ASSIGNMENT.match(text, name_end)
    if assignment is None and not text.startswith((" ", "\t"), name_end):
        return None
    start = _start_of_name(text, stem_start, done)
    match = assignment or (_OPTION_VALUE if text.startswith("--", start) else _PROSE_VALUE).match(text, name_end)
    if match is None:
        return None
    qualified_start = _start_with_qualifiers(text, start, done)
    name = classify_name(text[qualified_start:name_end])
    if name is None:
        return None
    if name.strength is NameStrength.SHORT_PASSWORD and _LOGIN_BEFORE.search(text, max(0, start - 120), start):
        name = SecretName(name.kind, NameStrength.PASSWORD)  # user=admin pass=...
    field_start = start if name.strength in _ANY_VALUE_STRENGTHS else qualified_start
    is_field = assignment is None or _is_field(text, field_start, assignment)
    secret = _secret_if_plausible(text, match, name, is_field=is_field and match.re is not _PROSE_VALUE)
    return secret or (None if assignment is None else _default_of_reference(text, assignment, name))


def _default_of_reference(text: str, assignment: re.Match[str], name: SecretName) -> Secret | None:
    """Return the default behind a reference: `process.env.PW || "..."`, `${PW:-...}`, `getenv("PW", "...")`."""
    start = assignment.start("value")
    line_end = text.find("\n", start, start + _MAX_DEFAULT_DISTANCE)
    end = min(len(text), start + _MAX_DEFAULT_DISTANCE) if line_end < 0 else line_end
    expansion = _EXPANSION.match(text, start, end)
    if expansion is not None:
        return _literal(expansion, name)
    if _REFERENCE_START.match(text, start, end) is None:
        return None
    default = _DEFAULT.search(text, start, end)
    return None if default is None else _literal(default, name)


def _literal(match: re.Match[str], name: SecretName) -> Secret | None:
    value = match["value"]
    if len(value) < _MIN_DEFAULT_LENGTH or not is_secret(value, name.strength, ValueContext.QUOTED):
        return None
    return Secret(name.kind, *match.span("value"))


def _start_of_name(text: str, stem_start: int, done: int) -> int:
    head = text[max(done, stem_start - _MAX_NAME_PREFIX) : stem_start]
    return stem_start - len(head) + len(head.rstrip(_NAME_CHARACTERS))


def _start_with_qualifiers(text: str, start: int, done: int) -> int:
    """Return the start of the one or two words before a name: "access" of "access token", "secret access" of "key"."""
    for _ in range(2):
        if start <= done or text[start - 1] != " ":
            break
        start = _start_of_name(text, start - 1, done)
    return start


def _is_list_or_argument(match: re.Match[str]) -> bool:
    """Return whether a quoted value is one of several, or an argument: it need not belong to the name at all."""
    groups = match.groupdict()
    return groups.get("operator") in {",", "("} or groups.get("opener") == "["


def _is_field(text: str, start: int, assignment: re.Match[str]) -> bool:
    operator = assignment["operator"]
    if assignment[0].startswith("=") and assignment.start("value") == assignment.start() + 1:
        return True
    unambiguous = operator in _ASSIGNMENT_OPERATORS or (operator.startswith(":") and operator.endswith("="))
    return unambiguous and _is_at_field_start(text, start)


def _is_at_field_start(text: str, start: int) -> bool:
    if text.startswith("--", start):
        return True
    window = text[max(0, start - _MAX_NAME_PREFIX) : start]
    line = window[window.rfind("\n") + 1 :]
    whole = len(line) < len(window) or start <= _MAX_NAME_PREFIX
    return line.rstrip(" ").endswith((";", "&", "?")) or (whole and _FIELD_START.fullmatch(line) is not None)


def _secret_if_plausible(text: str, match: re.Match[str], name: SecretName, *, is_field: bool) -> Secret | None:
    raw = match["value"]
    start, end = match.span("value")
    context = ValueContext.INLINE
    if raw.startswith("\\"):
        start, end, context = start + 2, end - 2, ValueContext.QUOTED
    elif raw[0] in _QUOTES and len(raw) > 1 and raw[-1] == raw[0]:
        start, end = start + 1, end - 1
        if match.re is not _PROSE_VALUE and raw[0] != "`" and not _is_list_or_argument(match):
            context = ValueContext.QUOTED
    else:
        value = _trimmed(raw)
        end = start + len(value)
        if is_field and ")" not in raw[len(value) :] and _FIELD_END.match(text, match.end()):
            context = ValueContext.FIELD
    if not is_secret(text[start:end], name.strength, context):
        return None
    rest = None if end < match.end() else _VALUE_REST.match(text, end)
    return Secret(name.kind, start, end if rest is None else rest.end())


def _trimmed(value: str) -> str:
    """Return a bare value without the surrounding text: the next field, closing brackets, a full stop."""
    value = _NEXT_FIELD.split(value, maxsplit=1)[0].lstrip("([")
    closer = _CLOSER.search(value)
    if closer is not None and _OPENER.search(value, 0, closer.start()) is None:
        value = value[: closer.start()]
    return value.rstrip(".,:*")

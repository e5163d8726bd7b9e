"""Find secrets that the layout of a file gives away: netrc, pgpass, cookies, logins before a host, tables.

A secret is within one line here too. Its name may be in lines above it: `machine` in a netrc file, the head
of a table. Every step reads a bounded number of characters around a place that is found by plain search.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from echod.memory.redact.plausibility import (
    NameStrength,
    SecretName,
    ValueContext,
    classify_name,
    has_mixed_run,
    is_hex,
    is_placeholder,
    is_secret,
    is_strong_password,
    is_url_or_path,
    is_uuid,
    looks_random,
)
from echod.memory.redact.spans import Secret, find_all, lower_same_length, without_overlaps

_NETRC_WORD = re.compile(r"(?<![\w-])(?:machine[ \t\n>]{1,8}[\w.:-]{1,253}|default)(?=[ \t\n])")
_NETRC_FIELDS = re.compile(
    r"(?:[ \t>]{0,16}(?:\n[ \t>*-]{0,16}){0,2}(?<=[\s>*-])"
    r"(?:login|user|account|port|protocol)[ \t]{1,8}[^\s\uffff]{1,128}){0,4}"
    r"[ \t>]{0,16}(?:\n[ \t>*-]{0,16}){0,2}(?<=[\s>*-])password[ \t]{1,8}[\"']?(?P<value>[^\s\"'`\uffff]{1,128})"
)
_PGPASS = re.compile(
    r"^(?:[ \t>*-]{0,8})`?[\w.*-]{1,253}:(?:\d{2,5}|\*):[\w*-]{1,63}:[\w*.-]{1,63}:"
    r"(?P<value>[^\s:`\"'/\uffff]{4,128})`?[ \t\r]*$",
    re.MULTILINE,
)
_COOKIE_HEADER = re.compile(r"cookie\\?[\"']?\]?[ \t]{0,2}[:=,(][ \t]{0,2}[bf]?\\?[\"'`]?(?=[\w.-]{1,64}=)")
_COOKIE_OPTION = re.compile(r"(?:-b|--cookie)[ \t=]{1,2}[\"']?(?=[\w.-]{1,64}=)")
_COOKIE = re.compile(r"[ \t]{0,2}(?P<name>[\w.-]{1,64})=(?P<value>[^\s;\"'`\\,\uffff]{0,512}+)(?:;|$|(?=[\"'`\s\\,]))")
_MAX_COOKIES = 24
_SESSION_COOKIES = (
    "jsessionid=", "phpsessid=", "asp.net_sessionid=", "connect.sid=", "laravel_session=", "sessionid=", "sid=",
    "rack.session=", "_session_id=", ".aspxauth=", "session-token=",
)  # fmt: skip
_COOKIE_VALUE = re.compile(r"[^\s;\"'`\\,&)\uffff]{16,512}")
_WORD_BEFORE = re.compile(r"\w")
_PUBLIC_COOKIES = frozenset(
    ["path", "domain", "expires", "max-age", "samesite", "priority", "version", "lang", "locale", "theme",
    "consent", "currency", "country", "timezone", "tz", "_ga", "_gid"]
)  # fmt: skip
_MIN_COOKIE_LENGTH = 12
_MIN_HEX_COOKIE_LENGTH = 20

# root:password@tcp(db:3306)/shop, app:password@db.example.org:5432
_LOGIN_AT_HOST = re.compile(
    r"(?<![\w.:/@%+$~-])(?P<user>[A-Za-z_][\w.-]{0,63}):(?P<value>[^\s:@\"'`<>|/\\(){}\uffff][^\s@\"'`<>|\\\uffff]{2,127})@"
    r"(?P<host>(?:tcp|tcp4|tcp6|unix|udp)\(|(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|localhost\b|\[[0-9a-f:]{2,39}\]"
    r"|[A-Za-z][\w-]{0,62}(?:\.[A-Za-z0-9][\w-]{0,62}){0,8}:\d{2,5}\b"
    r"|[A-Za-z0-9][\w-]{0,62}(?:\.[A-Za-z0-9][\w-]{0,62}){0,8}\.[a-z]{2,12}(?=[\s/?\"'`),;]|$))"
)
_NO_USERS = frozenset(
    ["npm", "jsr", "pkg", "mailto", "sip", "sips", "acct", "workspace", "file", "link", "portal", "patch",
    "git", "github", "gitlab", "http", "https", "node", "python", "docker", "image", "ruby", "golang",
    "alpine", "ubuntu", "debian", "nginx", "redis", "postgres", "mysql", "catalog", "actions", "bitbucket",
    "tag", "ref", "xmpp", "matrix", "user", "users"]
)  # fmt: skip
_ORACLE_THIN = re.compile(r"jdbc:oracle:(?:thin|oci):[\w$#]{1,30}/(?P<value>[^\s\"'@/`\uffff]{1,64})@")

_TABLE_RULE = re.compile(
    r"^[ \t>]{0,8}+\|?+[ \t]*+:?+-++:?+[ \t]*+(?:\|[ \t]*+:?+-++:?+[ \t]*+)*+\|?+[ \t\r]*+$", re.MULTILINE
)
_MAX_TABLE_LINE = 4_000
_LOGIN_COLUMNS = re.compile(r"\b(?:user(?:name)?|login|account|e-?mail|host|server|name)\b", re.IGNORECASE)
_CELL_MARKS = " \t*_`\"'"


def find_layout_secrets(text: str) -> list[Secret]:
    """Return every secret that the layout around it gives away."""
    return without_overlaps(_iter_layout_secrets(text))


def _iter_layout_secrets(text: str) -> Iterator[Secret]:
    lower = lower_same_length(text)
    yield from _netrc(text, lower)
    yield from _cookies(text, lower)
    if "@" in text:
        yield from _logins_at_hosts(text)
    for match in _PGPASS.finditer(text):
        if is_strong_password(match["value"]):
            yield Secret("password", *match.span("value"))
    if "|" in text:
        yield from _tables(text)


def _netrc(text: str, lower: str) -> Iterator[Secret]:
    if "password" not in lower or not ("machine" in lower or "default" in lower):
        return
    for machine in _NETRC_WORD.finditer(lower):
        match = _NETRC_FIELDS.match(text, machine.end())
        if match is not None and not is_placeholder(match["value"]):
            yield Secret("password", *match.span("value"))


def _cookies(text: str, lower: str) -> Iterator[Secret]:
    for keyword, pattern in (("cookie", _COOKIE_HEADER), (" -b ", _COOKIE_OPTION), ("--cookie", _COOKIE_OPTION)):
        for at in find_all(lower, keyword):
            header = pattern.match(lower, at + (keyword[0] == " "))
            position = len(text) if header is None else header.end()
            for _ in range(_MAX_COOKIES):
                cookie = _COOKIE.match(text, position)
                if cookie is None:
                    break
                position = cookie.end()
                if cookie["name"].lower() not in _PUBLIC_COOKIES and _is_cookie_secret(cookie["value"]):
                    yield Secret("token", *cookie.span("value"))
    for name in _SESSION_COOKIES:
        for at in find_all(lower, name):
            value = _COOKIE_VALUE.match(text, at + len(name))
            is_part = name[0].isalpha() and at and _WORD_BEFORE.match(lower, at - 1)
            if value is not None and not is_part and _is_cookie_secret(value[0]):
                yield Secret("token", *value.span())


def _is_cookie_secret(value: str) -> bool:
    if len(value) < _MIN_COOKIE_LENGTH or is_placeholder(value) or is_uuid(value):
        return False
    if is_hex(value):
        return len(value) >= _MIN_HEX_COOKIE_LENGTH
    return looks_random(value, min_length=_MIN_COOKIE_LENGTH) or has_mixed_run(value, min_length=_MIN_COOKIE_LENGTH)


def _logins_at_hosts(text: str) -> Iterator[Secret]:
    for match in _LOGIN_AT_HOST.finditer(text):
        user, value, host = match["user"], match["value"], match["host"]
        if user.lower() in _NO_USERS or is_placeholder(value) or value.startswith(("sha256", "$", "//")):
            continue
        if host.endswith("(") or is_strong_password(value):
            yield Secret("connection-string", *match.span("value"))
    for match in _ORACLE_THIN.finditer(text):
        if not is_placeholder(match["value"]):
            yield Secret("connection-string", *match.span("value"))


def _tables(text: str) -> Iterator[Secret]:
    done = 0
    for rule in _TABLE_RULE.finditer(text):
        if "|" not in rule[0] or rule.start() < done:
            continue
        head_end = rule.start() - 1
        head = text[max(0, text.rfind("\n", 0, max(head_end, 0)) + 1) : max(head_end, 0)]
        if len(head) > _MAX_TABLE_LINE or "|" not in head:
            continue
        cells = _cells(head)
        names = [classify_name(head[start:end]) for start, end in cells]
        if not any(names):
            continue
        is_login = any(_LOGIN_COLUMNS.search(head[start:end]) for start, end in cells)
        context = ValueContext.FIELD if is_login else ValueContext.INLINE
        done = _end_of_table(text, rule.end() + 1)
        yield from _rows(text, rule.end() + 1, done, names, context)


def _end_of_table(text: str, position: int) -> int:
    while position < len(text):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        if end - position > _MAX_TABLE_LINE or "|" not in text[position:end]:
            break
        position = end + 1
    return position


def _rows(
    text: str, position: int, stop: int, names: Sequence[SecretName | None], context: ValueContext
) -> Iterator[Secret]:
    while position < stop:
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        line = text[position:end]
        for name, (first, last) in zip(names, _cells(line), strict=False):
            if name is not None and _is_cell_secret(line[first:last], name, context):
                yield Secret(name.kind, position + first, position + last)
        position = end + 1


def _is_cell_secret(value: str, name: SecretName, context: ValueContext) -> bool:
    if not value or any(map(str.isspace, value)) or "\uffff" in value or is_url_or_path(value):
        return False
    strength = NameStrength.PASSWORD if name.strength is NameStrength.SHORT_PASSWORD else name.strength
    return is_secret(value, strength, context)


def _cells(line: str) -> list[tuple[int, int]]:
    """Return start and end of the text of each cell, without marks around it."""
    body_start = len(line) - len(line.lstrip(" \t>"))
    body_start += line.startswith("|", body_start)
    cells: list[tuple[int, int]] = []
    position = body_start
    for part in line[body_start:].rstrip(" \t\r").removesuffix("|").split("|"):
        bare = part.strip(_CELL_MARKS)
        start = position + part.find(bare) if bare else position
        cells.append((start, start + len(bare)))
        position += len(part) + 1
    return cells

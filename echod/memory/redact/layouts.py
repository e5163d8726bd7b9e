"""Find secrets that their surroundings give away: the layout of a file (netrc, cookies, tables), or a name.

A secret is within one line here too. Its name may be in lines above it: `machine` in a netrc file, the head of a
table. Also in prose: "the access token is ...". The search finds the places of such a word, then the whole name, what
joins it to a value, and the value. `plausibility` rates both. Every step reads a bounded number of characters.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence

from echod.lazy import lazy_pattern
from echod.memory.redact.plausibility import (
    NameStrength,
    SecretName,
    ValueContext,
    classify_name,
    has_mixed_run,
    is_descriptive_word,
    is_hex,
    is_placeholder,
    is_secret,
    is_strange,
    is_strong_password,
    is_url_or_path,
    is_uuid,
    looks_random,
)
from echod.memory.redact.spans import Secret, find_all, lower_same_length, without_overlaps

_NETRC_WORD = lazy_pattern(r"(?<![\w-])(?:machine[ \t\n>]{1,8}[\w.:-]{1,253}|default)(?=[ \t\n])")
_NETRC_FIELDS = lazy_pattern(
    r"(?:[ \t>]{0,16}(?:\n[ \t>*-]{0,16}){0,2}(?<=[\s>*-])"
    r"(?:login|user|account|port|protocol)[ \t]{1,8}[^\s\uffff]{1,128}){0,4}"
    r"[ \t>]{0,16}(?:\n[ \t>*-]{0,16}){0,2}(?<=[\s>*-])password[ \t]{1,8}[\"']?(?P<value>[^\s\"'`\uffff]{1,128})"
)
_PGPASS = lazy_pattern(
    r"(?:^[ \t>*-]{0,8}`?|`)[\w.*-]{1,253}:(?:\d{2,5}|\*):[\w*-]{1,63}:[\w*.-]{1,63}:"
    r"(?P<value>[^\s:`\"'/\uffff]{4,128})(?:`|[ \t\r]*$)",
    re.MULTILINE,
)
_COOKIE_HEADER = lazy_pattern(r"cookie\\?[\"']?\]?[ \t]{0,2}[:=,(][ \t]{0,2}[bf]?\\?[\"'`]?(?=[\w.-]{1,64}=)")
_COOKIE_OPTION = lazy_pattern(r"(?:-b|--cookie)[ \t=]{1,2}[\"']?(?=[\w.-]{1,64}=)")
_COOKIE = lazy_pattern(
    r"[ \t]{0,2}(?P<name>[\w.-]{1,64})=(?P<value>[^\s;\"'`\\,\uffff]{0,512}+)(?:;|$|(?=[\"'`\s\\,]))"
)
_MAX_COOKIES = 24
_SESSION_COOKIES = (
    "jsessionid=", "phpsessid=", "asp.net_sessionid=", "connect.sid=", "laravel_session=", "sessionid=", "sid=",
    "rack.session=", "_session=", "_session_id=", ".aspnetcore.session=", ".aspnetcore.cookies=",
    ".aspnetcore.identity.application=", "_logged_in=", ".aspxauth=", "session-token=",
)  # fmt: skip
_COOKIE_VALUE = lazy_pattern(r"[^\s;\"'`\\,&)\uffff]{16,512}")
_SUFFIXED_COOKIE = lazy_pattern(r"wordpress_(?:logged_in|sec)_\w{1,64}=(?P<value>[^\s;\"'`\\,&)\uffff]{16,512})")
_WORD_BEFORE = lazy_pattern(r"\w")
_PUBLIC_COOKIES = frozenset(
    ["path", "domain", "expires", "max-age", "samesite", "priority", "version", "lang", "locale", "theme",
    "consent", "currency", "country", "timezone", "tz", "_ga", "_gid"]
)  # fmt: skip
_MIN_COOKIE_LENGTH = 12
_MIN_HEX_COOKIE_LENGTH = 20

# root:password@tcp(db:3306)/shop, app:password@db.example.org:5432
_LOGIN_AT_HOST = lazy_pattern(
    r"(?<![\w.:/@%+$~-])(?P<user>[A-Za-z_][\w.-]{0,63}):(?P<value>[^\s:@\"'`<>"
    r"|/\\(){}\uffff][^\s@\"'`<>|\\\uffff]{2,127})@"
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
_ORACLE_THIN = lazy_pattern(r"jdbc:oracle:(?:thin|oci):[\w$#]{1,30}/(?P<value>[^\s\"'@/`\uffff]{1,64})@")

_TABLE_RULE = lazy_pattern(
    r"^[ \t>]{0,8}+\|?+[ \t]*+:?+-++:?+[ \t]*+(?:\|[ \t]*+:?+-++:?+[ \t]*+)*+\|?+[ \t\r]*+$", re.MULTILINE
)
_MAX_TABLE_LINE = 4_000
_LOGIN_COLUMNS = lazy_pattern(r"\b(?:user(?:name)?|login|account|e-?mail|host|server|name)\b", re.IGNORECASE)
_SEPARATED_HEAD = lazy_pattern(
    r"^[\w.-]{1,30}(?P<separator>[,;\t])[\w. -]{1,30}(?:(?P=separator)[\w. -]{1,30}){0,20}$", re.MULTILINE
)
_MAX_LOGIN_DISTANCE = 60
_PROSE_LOGIN = lazy_pattern(
    r"(?<![\w./:@-])[A-Za-z][\w.@-]{0,63}[`\"']?(?:[ \t]?/[ \t]?"
    r"|:[ \t]?)[`\"']?(?P<value>[^\s`\"'/:,;()<>|\uffff]{6,64})"
)
_FOREIGN_WORDS = (
    "contrase\u00f1a", "clave de acceso", "mot de passe", "mdp", "senha", "palavra-passe", "wachtwoord",
    "has\u0142o", "l\u00f6senord", "adgangskode", "passord", "salasana", "heslo", "parola", "\u015fifre", "sifre",
    "m\u1eadt kh\u1ea9u", "kata sandi", "kennwort", "zugangsdaten", "jelsz\u00f3",
    "\u043f\u0430\u0440\u043e\u043b\u044c", "\u043f\u0430\u0440\u043e\u043b\u0430",
    "\u03ba\u03c9\u03b4\u03b9\u03ba\u03cc\u03c2", "\u5bc6\u7801", "\u5bc6\u78bc", "\u53e3\u4ee4",
    "\u30d1\u30b9\u30ef\u30fc\u30c9", "\ube44\ubc00\ubc88\ud638", "\u0631\u0645\u0632 \u0639\u0628\u0648\u0631",
    "\u0643\u0644\u0645\u0629 \u0627\u0644\u0645\u0631\u0648\u0631", "\u05e1\u05d9\u05e1\u05de\u05d4",
    "\u0e23\u0e2b\u0e31\u0e2a\u0e1c\u0e48\u0e32\u0e19", "\u092a\u093e\u0938\u0935\u0930\u094d\u0921",
)  # fmt: skip
_FOREIGN_VALUE = lazy_pattern(
    r"[*_`]{0,2}[ \t]{0,2}(?:[:=\uff1a]|\b(?:ist|lautet|es|est|\u00e9"
    r"|\u00e8|is|jest|\u00e4r|er|je)\b|\u662f|\u4e3a|\u306f|\ub294|\u2014)"
    r"[*_]{0,2}[ \t]{0,2}[`\"']?(?P<value>[^\s`\"',;()<>|\uffff]{6,64})"
)
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
    if "," in text or ";" in text or "\t" in text:
        yield from _separated_tables(text)
    yield from _logins_in_prose(text, lower)
    yield from _foreign_passwords(text, lower)


def _netrc(text: str, lower: str) -> Iterator[Secret]:
    if "password" not in lower or not ("machine" in lower or "default" in lower):
        return
    for machine in _NETRC_WORD.finditer(lower):
        match = _NETRC_FIELDS.match(text, machine.end())
        if match is None or is_placeholder(match["value"]) or is_descriptive_word(match["value"]):
            continue
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

    for at in find_all(lower, "wordpress_"):
        cookie = _SUFFIXED_COOKIE.match(text, at)
        if cookie is not None and _is_cookie_secret(cookie["value"]):
            yield Secret("token", *cookie.span("value"))


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


def _separated_tables(text: str) -> Iterator[Secret]:
    """Yield the secrets below a line of names with commas, semicolons or tabs between them (`user,password`)."""
    done = 0
    for head in _SEPARATED_HEAD.finditer(text):
        separator = head["separator"]
        names = [classify_name(cell) for cell in head[0].split(separator)]
        if head.start() < done or not any(names) or not _LOGIN_COLUMNS.search(head[0]):
            continue
        done = head.end() + 1
        while done < len(text):
            end = text.find("\n", done)
            end = len(text) if end < 0 else end
            line = text[done:end]
            if line.count(separator) != len(names) - 1 or len(line) > _MAX_TABLE_LINE:
                break
            at = done
            for name, cell in zip(names, line.split(separator), strict=True):
                bare = cell.strip(" \t\r\"'`")
                if name is not None and _is_cell_secret(bare, name, ValueContext.FIELD):
                    start = at + cell.find(bare)
                    yield Secret(name.kind, start, start + len(bare))
                at += len(cell) + 1
            done = end + 1


def _logins_in_prose(text: str, lower: str) -> Iterator[Secret]:
    """Yield the password of `Login: admin / ...` and `log in with admin/...`."""
    for word in ("login", "log in", "credential", "creds", "sign in", "to log"):
        for at in find_all(lower, word):
            line = text.rfind("\n", 0, at) + 1
            start = max(line, at - _MAX_LOGIN_DISTANCE) if word == "to log" else at
            end = text.find("\n", at, at + 2 * _MAX_LOGIN_DISTANCE)
            end = min(len(text), at + 2 * _MAX_LOGIN_DISTANCE) if end < 0 else end
            match = _PROSE_LOGIN.search(text, start, end)
            is_whole = match is not None and (match.end() < end or end == len(text) or text[end] == "\n")
            if match is not None and is_whole and is_strange(match["value"]):
                yield Secret("password", *match.span("value"))


def _foreign_passwords(text: str, lower: str) -> Iterator[Secret]:
    for word in _FOREIGN_WORDS:
        for at in find_all(lower, word):
            match = _FOREIGN_VALUE.match(text, at + len(word))
            if match and is_strange(match["value"]):
                yield Secret("password", *match.span("value"))


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


_NAME_STEMS = ("passw", "passphrase", "pwd", "_pass", "-pass", "secret", "token", "credential", "key")
_SHORT_NAME = lazy_pattern(
    r"(?:(?<![\w.-])(?:pass|pw|psk)|(?:(?<=[a-z])|(?<=_))pass)(?=\\?[\"'`*_]{0,4}[ \t]{0,4}[:=|])"
)
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_-."
_MAX_NAME_PREFIX = 48
_NAME_SUFFIX = lazy_pattern(r"[A-Za-z0-9_-]{0,40}")

_VALUE = r"""
    (?P<value>
        \\"[^"\\\n\uffff]{1,256}+\\"
      | "[^"\\\n\uffff]{0,256}+(?:\\[^\n\uffff][^"\\\n\uffff]{0,256}+){0,8}+"(?![ \t]*:)
      | '[^'\\\n\uffff]{0,256}+(?:\\[^\n\uffff][^'\\\n\uffff]{0,256}+){0,8}+'(?![ \t]*:)
      | `[^`\n\uffff]{1,256}+`
      | (?:[^\s"'`<;&|\uffff]{1,64}+ | <(?![/A-Za-z]) | &(?![\w.-]{1,32}=) | ;(?!\s|[\w ]{1,32}=|$)){1,3}+
    )
"""
_ASSIGNMENT = lazy_pattern(
    rf"""
    (?: >                                                # <password>...</password>
      | </(?:td|th|dt|b|strong|code|span)>[ \t]{{0,4}}<(?:td|dd|span|code|b)\b[^<>\n\uffff]{{0,40}}>
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
_OPTION_VALUE = lazy_pattern(rf"[ \t]{{1,4}}(?!-){_VALUE}", re.VERBOSE)
_PROSE_VALUE = lazy_pattern(
    r"""[ \t]{1,2}(?:(?:for|of|in|with|value|called|named|the|a|an|from|by)[ \t]{1,2}){0,3}
        (?P<value> "[^"\s\uffff]{4,256}+" | '[^'\s\uffff]{4,256}+' | `[^`\s\uffff]{4,256}+`
                 | [(\[]?[A-Za-z0-9_\-+/=.~]{20,256}+ )
        (?![ \t]*:)""",
    re.VERBOSE,
)
_PROSE_PASSWORD = lazy_pattern(r"[ \t]{1,2}(?P<value>[^\s\"'`,;()<>|/\uffff]{8,64})(?=[ \t]|[.,;)`]?(?:\s|$))")
_FIELD_START = lazy_pattern(
    r"(?:[\s>*+|\"'`{\[#-]|(?:export|set|env|ENV|ARG|const|let|var|val|final|static|String|local)[ \t])*"
)
_FIELD_END = lazy_pattern(r"[ \t\r]*(?:$|[#|;&`}]|//|</|-{1,2}[A-Za-z]|\\?[\"'])", re.MULTILINE)
_NEXT_FIELD = lazy_pattern(r",(?=\s|$|[\w\"']+[:=])")
_OPENER = lazy_pattern(r"[(\[{]")
_CLOSER = lazy_pattern(r"[)\]}](?=[)\]},;.:*\s]|$)")
_VALUE_REST = lazy_pattern(r"[^\s\"'`<;&|,)\]}\uffff]*")
_ANY_VALUE_STRENGTHS = frozenset({NameStrength.PASSPHRASE, NameStrength.PASSWORD})
_QUOTES = "\"'`"
_LOGIN_BEFORE = lazy_pattern(r"(?i)(?:\b|_)(?:user(?:name)?|login|admin|root|account|uid|e-?mail)\b[^\n\uffff]*\Z")
_MAX_DEFAULT_DISTANCE = 200  # characters between a name and the default of its value
_MIN_DEFAULT_LENGTH = 6
_EXPANSION = lazy_pattern(r"[\"'`]?[$#]\{\{?[ \t]*[\w.]{1,64}:[-=?]?(?P<value>[^\s}\"'`$\uffff]{1,128})\}")
_REFERENCE_START = lazy_pattern(
    r"!?[\w.$@:]{0,80}(?:\.|\(|\[|->|\?\.)|\$?[A-Za-z_]\w{0,63}[ \t]{1,2}(?:\|\||\?\?|\?:|or\b)|[$%]\{"
)
_DEFAULT = lazy_pattern(
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
    places += [at for name in ("pass", "pw", "psk") for at in find_all(lower, name) if _SHORT_NAME.match(lower, at)]
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
    is_option = text.startswith("--", start) or text[max(0, start - 7) : start].endswith(("setenv ", "setx "))
    match = assignment or (_OPTION_VALUE if is_option else _PROSE_VALUE).match(text, name_end)
    if match is None and (match := _PROSE_PASSWORD.match(text, name_end)) and not is_strange(match["value"]):
        return None
    if match is None:
        return None
    qualified_start = _start_with_qualifiers(text, start, done)
    name = classify_name(text[qualified_start:name_end])
    if name is None or (match.re is _PROSE_PASSWORD and name.strength is not NameStrength.PASSWORD):
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

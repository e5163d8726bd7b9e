"""Find credentials by their position in command lines of well-known programs, in calls, and beside a name.

`docker login -p ...`, `mysql -p...`, `curl -u u:...`; `HTTPBasicAuth("bob", "...")`; `{name: DB_PASSWORD, value: ...}`.

The same option means other things to other programs: `-p` is a port, a path, a patch or a password, `-u` a user,
a URL or UTC. An option counts only behind its program and within its command, which ends at a pipe, a semicolon, a
backtick or the end of the line (a backslash there continues it). At most 400 characters of a command are read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.memory.redact.plausibility import (
    ValueContext,
    classify_name,
    has_mixed_run,
    is_code,
    is_descriptive_word,
    is_placeholder,
    is_secret,
    is_strange,
    is_strong_password,
    is_url_or_path,
    is_word,
    looks_random,
)
from echod.memory.redact.spans import Secret, find_all, lower_same_length, without_overlaps

_MAX_COMMAND_LENGTH = 400
_MIN_TOKEN_LENGTH = 16
_GAP = r"(?:[ \t]+|[ \t]*\\\n[ \t]*)"
_COMMAND = lazy_pattern(r"(?:[^\n|;`\uffff\\&]|\\\n?|&(?!&)|\uffff)*+")
_VALUE = (
    r"(?:\"(?P<double>[^\"\n\uffff]{1,128})\"|'(?P<single>[^'\n\uffff]{1,128})'"
    r"|(?P<bare>[^\s\"'`;|&<>()\uffff-][^\s\"'`;|&<>\uffff]{0,127}))"
)
_ATTACHED = (
    r"(?:\"(?P<double>[^\"\n\uffff]{1,128})\"|'(?P<single>[^'\n\uffff]{1,128})'|(?P<bare>[^\s\"'`;|&<>\uffff]{3,128}))"
)
_USER = r"[^\s:\"'`@/%,$+\uffff]{0,64}"


def _option(names: str) -> str:
    """Return the pattern of an option (`p|password`) with its value behind a blank or an equals sign."""
    options = "|".join(f"--{name}" if len(name) > 1 else f"-{name}" for name in names.split("|"))
    return rf"(?<=[ \t\n])(?:{options})(?:=|{_GAP}){_VALUE}"


def _login(names: str, separator: str = ":") -> str:
    """Return the pattern of an option with the value `user:password`; also `-u` among other letters, and attached."""
    letters = "".join(name for name in names.split("|") if len(name) == 1)
    words = "|".join(f"--{name}" for name in names.split("|") if len(name) > 1)
    options = "|".join([*([f"-[A-Za-z]{{0,6}}[{letters}]"] if letters else []), *([words] if words else [])])
    return (
        rf"(?<=[ \t\n])(?:{options})(?:=|{_GAP})?[\"']?{_USER}{separator}"
        rf"(?P<bare>[^\s\"'`;|\uffff]{{1,128}})"
    )


def _positional(words: str) -> str:
    return rf"(?<=[ \t\n]){words}{_GAP}{_VALUE}"


class ClientPattern(NamedTuple):
    """Where the command line of some programs has a credential, and the check of its value."""

    kind: str
    programs: frozenset[str]
    source: str  # compiled on first use: all of them would delay every command
    accepts: Callable[[str], bool]


def _is_given(value: str) -> bool:
    """Return whether a value is written out, and not the name of its source."""
    return not (
        is_placeholder(value) or is_code(value) or is_url_or_path(value) or value.startswith(("-", "@", "$", "//"))
    )


def _is_given_secret(value: str) -> bool:
    """Return whether a value is written out and no word of a text, where a word could be another argument."""
    return _is_given(value) and not (is_word(value) or value.isdigit() or is_descriptive_word(value))


def _is_given_token(value: str) -> bool:
    return _is_given(value) and (
        has_mixed_run(value, min_length=8) or looks_random(value, min_length=_MIN_TOKEN_LENGTH)
    )


def _client(kind: str, programs: str, pattern: str, accepts: Callable[[str], bool] = _is_given) -> ClientPattern:
    return ClientPattern(kind, frozenset(programs.split()), pattern, accepts)


@cache
def compiled(source: str) -> re.Pattern[str]:
    """Compile the pattern of a program once."""
    return re.compile(source)


_ANY_WORDS = rf"(?:{_GAP}[^\s`\uffff]{{1,80}}){{0,8}}"

CLIENT_PATTERNS = (
    _client("password", "curl http https xh hurl ab siege httpie", _login("u|user|U|proxy-user|a|auth|A"), _is_given),
    _client(
        "password", "wget aria2c", _option("password|http-password|ftp-password|proxy-password|http-passwd|ftp-passwd")
    ),
    _client("password", "docker podman buildah nerdctl crane oras helm", _option("p|password")),
    _client("password", "skopeo", _login("creds|src-creds|dest-creds")),
    _client(
        "password",
        "mysql mysqldump mysqladmin mysqlimport mysqlcheck mariadb mariadb-dump",
        rf"(?<=[ \t\n])-p{_ATTACHED}",
    ),
    _client("password", "mysqladmin", _positional("password"), _is_given_secret),
    _client("password", "redis-cli valkey-cli keydb-cli", _option("a|pass"), _is_given),
    _client("password", "redis-cli valkey-cli", _positional(r"(?i:auth)"), _is_given_secret),
    _client(
        "password",
        "mongosh mongo mongodump mongorestore mongoexport mongoimport mongostat",
        _option("p"),
        _is_given_secret,
    ),
    _client(
        "password",
        "sqlcmd osql isql mssql-cli ipmitool mosquitto_pub mosquitto_sub zip unzip",
        rf"(?<=[ \t\n])-P{_GAP}?{_ATTACHED}",
        _is_given,
    ),
    _client("password", "bcp freebcp tsql", rf"(?<=[ \t\n])-P{_GAP}?{_ATTACHED}"),
    _client("password", "influx dsmadmc", rf"(?<=[ \t\n])-password(?:=|{_GAP}){_VALUE}"),
    _client("password", "vsql", _option("w"), _is_given_secret),
    _client("password", "db2", _positional("using"), _is_given_secret),
    _client("password", "ssh-keygen", _option("N|P"), _is_given_secret),
    _client("password", "pdftotext pdfimages pdftoppm", rf"(?<=[ \t\n])-[uo]pw{_GAP}{_VALUE}"),
    _client("password", "mount mount.cifs", _login("o", "%")),
    _client("password", "winrs", rf"(?<=[ \t\n])[-/]p(?:assword)?:{_ATTACHED}"),
    _client(
        "secret", "gh", rf"secret{_GAP}set\b{_ANY_WORDS}{_GAP}(?:-b|--body)(?:=|{_GAP})?{_VALUE}", _is_given_secret
    ),
    _client("secret", "aws", rf"(?<=[ \t\n])--secret-string(?:=|{_GAP}){_VALUE}", is_strange),
    _client("secret", "aws", rf"put-parameter\b{_ANY_WORDS}{_GAP}--value(?:=|{_GAP}){_VALUE}", is_strange),
    _client("password", "net", rf"user{_GAP}[^\s/\uffff]{{1,64}}{_GAP}{_VALUE}(?=[ \t]*(?:$|[`\"')]))", is_strange),
    _client("password", "pdftk", _positional("(?:input_pw|user_pw|owner_pw)"), _is_given),
    _client("password", "rclone", _positional("(?:pass|password)"), _is_given_secret),
    _client("password", "nmcli", _positional("(?:password|wifi-sec.psk)"), _is_given),
    _client("password", "wpa_passphrase", rf"(?<=wpa_passphrase){_GAP}[^\s\uffff]{{1,64}}{_GAP}{_VALUE}", _is_given),
    _client("password", "composer", rf"http-basic\.[\w.-]{{1,128}}{_GAP}[^\s\uffff]{{1,64}}{_GAP}{_VALUE}", _is_given),
    _client("password", "poetry", rf"http-basic\.[\w.-]{{1,64}}{_GAP}[^\s\uffff]{{1,64}}{_GAP}{_VALUE}", _is_given),
    _client("password", "bundle", rf"[\w.-]{{1,128}}{_GAP}[\"']?{_USER}:(?P<bare>[^\s\"'`@/\uffff]{{3,128}})"),
    _client(
        "password",
        "mc",
        rf"alias{_GAP}set{_GAP}[^\s\uffff]{{1,64}}{_GAP}[^\s\uffff]{{1,200}}{_GAP}"
        rf"[^\s\uffff]{{1,64}}{_GAP}{_VALUE}",
        _is_given_secret,
    ),
    _client(
        "password",
        "mosquitto_passwd",
        rf"-b{_GAP}[^\s\uffff]{{1,128}}{_GAP}[^\s\uffff]{{1,64}}{_GAP}{_VALUE}",
        _is_given,
    ),
    _client(
        "password",
        "sqlplus sqlldr expdp impdp exp imp rman",
        r"(?<=[ \t\n])[\"']?[\w.$#]{1,30}/(?P<bare>[^\s\"'@/`\uffff]{3,64})(?=@|[\s\"']|$)",
        _is_given,
    ),
    _client(
        "password",
        "cqlsh clickhouse-client rabbitmqadmin twine az oc cf kubelogin smbmap crackmapexec nxc evil-winrm vault"
        " poetry cypher-shell snowsql beeline hdbsql exaplus arangosh couchbase-cli cbq yt-dlp youtube-dl"
        " mycli argocd kcadm.sh",
        _option("p|password"),
        _is_given,
    ),
    _client("password", "ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd", _option("w"), _is_given),
    _client("password", "smbclient rpcclient", _login("U|user", "%")),
    _client("password", "lftp ncftp", _login("u|user", ",")),
    _client("password", "ncftp ncftpput ncftpget", _option("p"), _is_given_secret),
    _client("password", "sshpass", rf"(?<=[ \t\n])-p{_GAP}?{_ATTACHED}"),
    _client("password", "7z 7za 7zr rar unrar", rf"(?<=[ \t\n])-h?p{_ATTACHED}"),
    _client("password", "openssl", rf"(?<=[ \t\n])-pass(?:in|out)?{_GAP}pass:(?P<bare>[^\s\"'`\uffff]{{1,128}})"),
    _client("password", "openssl", _positional("-k"), _is_given_secret),
    _client(
        "password", "keytool jarsigner apksigner", rf"(?<=[ \t\n])--?(?:src|dest|new)?(?:store|key)pass{_GAP}{_VALUE}"
    ),
    _client(
        "password",
        "htpasswd",
        rf"(?<=[ \t\n])-[a-zA-Z]{{0,6}}b[a-zA-Z]{{0,6}}{_GAP}[^\s\uffff]{{1,80}}{_GAP}"
        rf"(?:[^\s\uffff]{{1,64}}{_GAP})?{_VALUE}(?=[ \t]*(?:$|[`\"')]))",
    ),
    _client(
        "password",
        "rabbitmqctl",
        rf"(?:add_user|change_password|authenticate_user){_GAP}[^\s\uffff]{{1,64}}{_GAP}{_VALUE}",
    ),
    _client("password", "net", rf"user{_GAP}[^\s/\uffff]{{1,64}}{_GAP}{_VALUE}(?={_GAP}/)"),
    _client("password", "net", rf"use\b{_ANY_WORDS}{_GAP}/user:[^\s\uffff]{{1,64}}{_GAP}{_VALUE}", _is_given_secret),
    _client("password", "cmdkey xfreerdp xfreerdp3 wfreerdp mstsc schtasks", rf"/(?:pass|p|rp):{_VALUE}"),
    _client("password", "rdesktop psexec PsExec winexe", _option("p"), _is_given_secret),
    _client("password", "plink pscp psftp putty", rf"(?<=[ \t\n])-pw{_GAP}{_VALUE}"),
    _client("password", "swaks", rf"(?<=[ \t\n])(?:-ap|--auth-password){_GAP}{_VALUE}"),
    _client("password", "snmpwalk snmpget snmpset snmpbulkwalk", _option("A|X"), _is_given_secret),
    _client("password", "etcdctl", _login("user")),
    _client("password", "useradd usermod", _option("p|password"), _is_given_secret),
    _client(
        "token", "vault", rf"login{_GAP}(?:-[a-z-]+(?:=\S{{1,40}})?{_GAP}){{0,3}}(?:token=)?{_VALUE}", _is_given_token
    ),
    _client("token", "ngrok", rf"(?:authtoken|add-authtoken){_GAP}{_VALUE}", _is_given_token),
    _client("token", "netlify", _option("auth"), _is_given_token),
    _client("token", "flyctl fly", _option("t|access-token"), _is_given_token),
    _client(
        "token",
        "sonar-scanner mvn gradle",
        r"-Dsonar\.(?:login|token)=(?P<bare>[^\s\"'`\uffff]{8,128})",
        _is_given_token,
    ),
    _client("token", "snyk", _positional("auth"), _is_given_token),
    _client("token", "cargo", _positional("login"), _is_given_token),
    _client("token", "doctl", _option("t|access-token"), _is_given_token),
    _client("token", "kubeadm k3s rke2", _option("token"), _is_given_token),
    _client("token", "influx consul nomad", rf"(?<=[ \t\n])(?:-t|--?token)(?:=|{_GAP}){_VALUE}", _is_given_token),
    _client("token", "npm yarn pnpm", rf"_auth(?:Token)?(?:=|{_GAP}){_VALUE}", _is_given),
    _client("api-key", "nuget choco", rf"(?i:(?<=[ \t\n])--?api-?key){_GAP}{_VALUE}", _is_given_token),
    _client("api-key", "nuget dotnet", _option("k|api-key"), _is_given_token),
)

_PROGRAMS = sorted({program for client in CLIENT_PATTERNS for program in client.programs}, key=len, reverse=True)
_CALLED = frozenset(called for program in _PROGRAMS for called in (program, f"{program}.exe"))
_BY_PROGRAM = {
    program: tuple(client for client in CLIENT_PATTERNS if program in client.programs) for program in _PROGRAMS
}
_WORD_BEFORE = lazy_pattern(r"[\w.:@=-]")
_SEPARATORS = str.maketrans(dict.fromkeys("`\"'()[]{}<>/,;:$|&!*~%^?+\\", " "))
# A program without a subcommand that logs in has `-p` for ports and paths.
_NEEDS_LOGIN = frozenset({"docker", "podman", "buildah", "nerdctl", "crane", "oras", "helm", "az", "oc"})
_LOGIN_WORD = lazy_pattern(r"\b(?:login|repo add|registry login)\b")
_PIPED = (
    lazy_pattern(
        rf"\becho[ \t]+(?:-n[ \t]+)?[\"']?{_USER}:(?P<bare>[^\s\"'`|\uffff]{{1,128}})"
        r"[\"']?[ \t]*\|[ \t]*(?:sudo[ \t]+)?chpasswd\b"
    ),
    lazy_pattern(
        rf"\b(?:echo|printf)[ \t]+(?:-n[ \t]+|[\"']?%s[\"']?[ \t]+)?{_VALUE}[ \t]*\|[ \t]*"
        r"(?:sudo[ \t]+(?:-S|--stdin)\b|[^\n|\uffff]{1,160}--(?:password-stdin|with-token|passphrase-fd[ =]0|stdin)\b"
        r"|(?:docker|gcloud|wrangler|gh|fly|podman|kubectl)[ \t]+[^\n|\uffff]{0,60}\bsecrets?\b"
        r"|(?:kinit|passwd|smbpasswd|vncpasswd|cryptsetup|pass)\b)"
    ),
    lazy_pattern(
        r"\b(?:chpasswd|passwd|vncpasswd|kinit|sudo|gh|glab|docker|cryptsetup|gpg|wrangler|fly)\b"
        r"[^\n|<\uffff]{0,160}<<<[ \t]*"
        rf"(?:(?<=[ \t<])[\"']?[\w.-]{{1,64}}:(?P<login>[^\s\"'`|\uffff]{{3,128}})|{_VALUE})"
    ),
    lazy_pattern(
        rf"(?:--password-file|\bsecrets?[ \t]{{1,8}}create[ \t]{{1,8}}[^\s<\uffff][^\n<\uffff]{{0,79}})"
        rf"(?:=|[ \t]{{0,8}})<\([ \t]*(?:echo|printf)[ \t]+{_VALUE}"
    ),
)
# A login behind an option of a program that is not known, if the password can be nothing else.
_UNKNOWN_LOGIN = lazy_pattern(
    r"(?<=[ \t\n])(?:-u|--user|--proxy-user)[ \t=]{1,2}[\"']?[A-Za-z][\w.@-]{0,63}:(?P<bare>[^\s\"'`:/\uffff]{6,128})"
)


_CALL = lazy_pattern(
    r"[a-z]{0,12}[ \t]{0,2}=?[ \t]{0,2}\((?:[ \t\n]{0,8}[^\s,()\uffff]{1,120},){0,2}?"
    r"[ \t\n]{0,8}[bru]?[\"'][^\"'\n\uffff]{1,64}[\"'],[ \t\n]{0,8}[bru]?"
    r"[\"'](?P<bare>[^\"'\s\uffff]{6,128})[\"'][ \t]{0,2}[,)]"
)
_CALLED_WORDS = ("auth", "login", "credential", "connect", "getconnection", "pdo")
_SECURE_STRING = lazy_pattern(
    r"convertto-securestring[ \t]{1,2}(?:-string[ \t]{1,2})?[\"'](?P<bare>[^\"'\n\uffff]{1,128})[\"']"
)
# - name: DB_PASSWORD, value: ...; <entry key="password">...</entry>
_PAIR = lazy_pattern(
    r"(?:name|key)\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?(?P<name>[\w.:/-]{2,64})\\?[\"']?"
    r"(?:[ \t]{0,4}[,;]?[ \t]{0,4}\n?[ \t>]{0,24}\\?[\"']?value\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?"
    r"(?P<value>[^\s\"'<>,;}\\\uffff]{3,256})|[ \t]{0,2}>[ \t\n]{0,8}(?:<value>)?(?P<text>[^<\s\uffff]{3,256})</)",
    re.IGNORECASE,
)


def find_command_credentials(text: str) -> list[Secret]:
    """Return every credential that a command line, a call or a pair of name and value gives away by its position."""
    return without_overlaps((*_iter_credentials(text), *_iter_arguments(text, lower_same_length(text))))


def _iter_arguments(text: str, lower: str) -> Iterator[Secret]:
    if "value" in lower or "</" in lower:
        for word in ("name", "key"):
            for at in find_all(lower, word):
                pair = _PAIR.match(text, at)
                name = pair and classify_name(pair["name"])
                if pair and name and is_secret(pair[pair.lastgroup or 0], name.strength, ValueContext.FIELD):
                    yield Secret(name.kind, *pair.span(pair.lastgroup or 0))
    for word in _CALLED_WORDS if "(" in text else ():
        for at in find_all(lower, word):
            call = _CALL.match(lower, at + len(word))
            if call is not None and is_strange(text[slice(*call.span("bare"))]):
                yield Secret("password", *call.span("bare"))
    for at in find_all(lower, "convertto-securestring"):
        given = _SECURE_STRING.match(lower, at)
        if given is not None and _is_given(text[slice(*given.span("bare"))]):
            yield Secret("password", *given.span("bare"))


def _iter_credentials(text: str) -> Iterator[Secret]:
    words = frozenset(text.translate(_SEPARATORS).split())
    if words.isdisjoint(_CALLED):
        programs: Iterable[str] = ()
    else:
        programs = (name for name in _PROGRAMS if name in words or f"{name}.exe" in words)
    for name in programs:
        done = 0
        for called in (f"{name} ", f"{name}.exe "):
            if called[:-1] not in words:
                continue
            for at in find_all(text, called):
                start = at + len(called) - 1
                if start < done or (at and _WORD_BEFORE.match(text, at - 1)):
                    continue
                command = _COMMAND.match(text, start, min(len(text), start + _MAX_COMMAND_LENGTH))
                done = start if command is None else command.end()
                if name not in _NEEDS_LOGIN or _LOGIN_WORD.search(text, start, done):
                    yield from _credentials_of(name, text, start, done)
    if "<<<" in text or "<(" in text or ("|" in text and ("echo" in text or "printf" in text)):
        for pattern in _PIPED:
            for match in pattern.finditer(text):
                yield from _secret("password", match, _is_given)
    for option in (" -u", " --user", " --proxy-user"):
        for at in find_all(text, option):
            login = _UNKNOWN_LOGIN.match(text, at + 1)
            if login is not None:
                yield from _secret("password", login, is_strong_password)


def _credentials_of(name: str, text: str, start: int, end: int) -> Iterator[Secret]:
    for client in _BY_PROGRAM[name]:
        for match in compiled(client.source).finditer(text, start, end):
            yield from _secret(client.kind, match, client.accepts)


def _secret(kind: str, match: re.Match[str], accepts: Callable[[str], bool]) -> Iterator[Secret]:
    group = match.lastgroup or 0
    value = match[group]
    if group in {"bare", "login"}:
        value = value.rstrip(".,:)") if value.endswith((".", ",", ":", ")")) else value
    if value and accepts(value):
        start = match.start(group)
        yield Secret(kind, start, start + len(value))

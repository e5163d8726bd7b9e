"""The references in an entry that let a reader look for himself: files with their lines, addresses, commits, numbers.

All of them are kept when an entry is compressed. Evidence that names nothing of the kind is kept as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from echod.memory.knowledge.sentences import plain
from echod.memory.model import Entry

_CODE = r"(?<!`)`[^`\n]+`(?!`)"
_NUMBERED = r"\b(?:PR|MR|[Ii]ssue|[Pp]ull [Rr]equest) ?#?[0-9]{1,9}\b"
_TOKEN = r"[^\s`\"'()\[\]<>{},;|\u2014\u2192\u201c\u201d]+"  # noqa: S105 - a piece of text
_IN_EVIDENCE = re.compile(f"{_CODE}|{_NUMBERED}|{_TOKEN}")
_IN_BODY = re.compile(f"{_NUMBERED}|{_TOKEN}")
_TOKEN_LIMIT = 400  # characters; nobody refers to anything by a longer name

# Each of these is matched against a whole short token.
_LINES = r"(?::[0-9][0-9:,-]*|#L[0-9][0-9L-]*)"
_NAME = r"[\w.@~+$-]+"
_FILE = re.compile(rf"(?P<folders>(?:{_NAME}[/\\])*)[\w.@+-]*\w\.(?P<ending>[A-Za-z]\w{{0,9}})(?P<lines>{_LINES})?")
_BARE_FILE = re.compile(rf"(?:{_NAME}[/\\])+{_NAME}{_LINES}|(?:[A-Z][a-z]+file|LICENSE|CODEOWNERS)(?:{_LINES})?")
_FOLDER = re.compile(rf"(?:{_NAME}[/\\]){{2,}}|(?:{_NAME}/){{2,}}{_NAME}")
_FOLDER_ALONE = re.compile(rf"(?:{_NAME}/){{2,}}")  # `5/10/15` and `READ/WRITE/NONE` are none
_ADDRESS = re.compile(r"https?://\S+")
_IDENTIFIER = re.compile(r"#[0-9]{1,9}|[A-Z][A-Z0-9]*(?:-[A-Z][A-Z0-9]*)*-[0-9]+(?:\.[0-9]+)*")
_COMMIT = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}")
_KNOWN_ENDING = re.compile(
    r"c|cc|cfg|cpp|cs|css|csv|go|gradle|h|hpp|html|ini|java|js|json|jsonl|jsx|kt|lock|lua|md|mjs|php|pl|proto|ps1|py"
    r"|pyi|rb|rs|scss|sh|sql|svelte|swift|tf|toml|ts|tsx|txt|vue|xml|ya?ml|zig",
    re.IGNORECASE,
)
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.k.a", "etc"})
_NOTHING = re.compile(
    r"[`*_\"'(]{0,3}(?:none|n/?a|nothing|null|none recorded|[-\u2013\u2014])?[`*_\"').]{0,3}", re.IGNORECASE
)


def references_of(entry: Entry, body: str) -> tuple[str, ...]:
    """What the evidence, the source and the body of an entry refer to; each once, in that order."""
    found = [*in_evidence(entry.evidence or ""), *_source(entry.source), *in_body(body)]
    return tuple(dict.fromkeys(found))


def in_evidence(evidence: str) -> tuple[str, ...]:
    """The references in an evidence field, or all of it where it has none that are known."""
    line = " ".join(evidence.split())
    if _NOTHING.fullmatch(line):
        return ()
    return tuple(_found(_IN_EVIDENCE, line, _names_something)) or (plain(line),)


def in_body(body: str) -> tuple[str, ...]:
    """The references in a text. Only what surely is a file counts as one: `message.content` does not."""
    return tuple(_found(_IN_BODY, body, _surely_names_something))


def _found(pattern: re.Pattern[str], text: str, names: Callable[[str], bool]) -> Iterator[str]:
    for match in pattern.finditer(text):
        token = match[0]
        if token[0] == "`" or " " in token:
            yield token
            continue
        if len(token) > _TOKEN_LIMIT:
            continue
        token = token.strip("*_").rstrip(".:!?*_\u2026")
        parts = token.split("/")
        if len(parts) > 1 and all(_IDENTIFIER.fullmatch(part) for part in parts):
            yield from parts
        elif token and names(token):
            yield token


def _names_something(token: str) -> bool:
    file = _FILE.fullmatch(token)
    return bool((file and token not in _ABBREVIATIONS) or _FOLDER.fullmatch(token) or _COMMIT.fullmatch(token)) or (
        _surely_names_something(token)
    )


def _surely_names_something(token: str) -> bool:
    file = _FILE.fullmatch(token)
    if file:
        return bool(file["folders"] or file["lines"] or _KNOWN_ENDING.fullmatch(file["ending"]))
    return any(kind.fullmatch(token) for kind in (_BARE_FILE, _FOLDER_ALONE, _ADDRESS, _IDENTIFIER))


def _source(source: str | None) -> tuple[str, ...]:
    name = " ".join((source or "").split())
    if _NOTHING.fullmatch(name):
        return ()
    return (name if "`" in name else f"`{name}`",)

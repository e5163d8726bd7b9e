"""The single learnings in the body of an entry: its list items and paragraphs, each on one line.

Code, tables, comments and sections of figures (`### Review Metrics`) are no learnings; nor is a paragraph that only
introduces a list. Where a body holds nothing else, they are all there is and count after all.

Where the first sentence of a text ends, and what of it says the most.

Extractive: what comes out stands in the text word for word. A full stop in code, in a number, in an abbreviation or
before a small letter ends nothing; what is in doubt stays together.

The references in an entry that let a reader look for himself: files with their lines, addresses, commits, numbers.

All of them are kept when an entry is compressed. Evidence that names nothing of the kind is kept as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from echod.memory.model import Entry

STATEMENT_WORDS = 6
"""Words from which on a bold lead says something by itself (`**Docs-only changes still need a review**: ...`)."""

_LEAST_WORDS = 3  # "No." and "BUG." are no sentences to keep alone
_CODE_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)[^`]+\1(?!`)")
_END = re.compile(r"(?<![.!?\u2026])[.!?\u2026]++[)\]\"'*_\u201d\u2019]*+(?=\s)|[\u3002\uff01\uff1f]")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'])(?:e\.g|i\.e|cf|etc|vs|approx|resp|incl|esp|fig|no|nos|al|(?-i:[A-Z]))\.$|(?:^|\\n)\d{1,2}\.$",
    re.IGNORECASE,
)
_BOLD_LEAD = re.compile(r"\*\*(?P<inner>[^*]+(?:\*[^*]+)*+)\*\*")


def first_sentence(text: str) -> str:
    """The first sentence of a text that stands on one line; all of it where none ends in it."""
    text = text.strip()
    masked = _CODE_SPAN.sub(lambda code: "x" * len(code[0]), text)
    for end in _END.finditer(masked):
        if _ends(masked, end) and len(text[: end.end()].split()) >= _LEAST_WORDS:
            return text[: end.end()]
    return text


def statement(text: str) -> str:
    """What a learning says in the fewest words of its own: its bold lead if that is a statement, else a sentence.

    Without marks of emphasis, so that marks in what is made of it have one meaning.
    """
    lead = _BOLD_LEAD.match(text.strip())
    chosen = first_sentence(text)
    if lead and len(lead["inner"].split()) >= STATEMENT_WORDS:
        chosen = lead["inner"].rstrip(" :")
        chosen += "" if chosen.endswith((".", "!", "?")) else "."
    return plain(chosen)


def plain(text: str) -> str:
    """The text on one line without marks of emphasis; code keeps its asterisks."""
    parts = []
    position = 0
    for code in _CODE_SPAN.finditer(text):
        parts += [text[position : code.start()].replace("*", ""), code[0]]
        position = code.end()
    parts.append(text[position:].replace("*", ""))
    return " ".join("".join(parts).split())


def shortened(text: str, limit: int) -> str:
    """The text, cut at a word and marked with an ellipsis where it has more than `limit` characters."""
    if len(text) <= limit:
        return text
    cut = text.rfind(" ", limit // 2, limit)
    return text[: cut if cut > 0 else limit - 1].rstrip(" ,;:-") + "\u2026"


def _ends(text: str, end: re.Match[str]) -> bool:
    following = text[end.end() :].lstrip(" \t\"'(*_`\u201c")[:1]
    shortens = end[0][0] == "." and _ABBREVIATION.search(text, max(0, end.start() - 10), end.start() + 1)
    return not (following.islower() or shortens)


_ITEM = re.compile(r"( {0,3})(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_SEPARATOR = re.compile(r"\s*([-*_])(?:\s*\1){2,}\s*")
_FIGURES = re.compile(r"\b(?:metrics?|statistics|stats|figures|timeline|numbers)\b", re.IGNORECASE)
_FIELD = re.compile(r"\*\*(?:category|domain|source|tags)\*\*:", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_DEPTH = 3  # lists in lists; what is deeper is detail
_NESTED = 2  # columns from which on a line belongs to the item above


@dataclass(slots=True)
class _Part:
    """A list item or paragraph being read: its own lines, and the lines nested in it."""

    item: bool
    figures: bool
    lines: list[str]
    nested: list[str] = field(default_factory=list)
    open: bool = True

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.lines).split())


def learnings(body: str) -> tuple[str, ...]:
    """The learnings of a body in their order. An empty body has none."""
    return _learnings(body, _DEPTH)


def _learnings(body: str, depth: int) -> tuple[str, ...]:
    parts = _parts(body)
    if depth and len(parts) == 1 and parts[0].item and any(line.strip() for line in parts[0].nested):
        # All of the learning is one bullet, as in the bullet form; what is nested in it are its learnings.
        return (parts[0].text, *_learnings(_dedented(parts[0].nested), depth - 1))
    chosen = [part for part in parts if not part.figures] or parts
    chosen = [part for at, part in enumerate(chosen) if not _introduces(part, chosen[at + 1 : at + 2])]
    return tuple(part.text for part in chosen if part.text)


def _parts(body: str) -> list[_Part]:
    parts: list[_Part] = []
    figures = False
    fence = ""
    for line in _COMMENT.sub("", body).replace("\r", "").split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip(" \t`~"):
                fence = ""
            continue
        if mark:
            fence = mark[1]
            continue
        heading = _HEADING.match(line)
        if heading:
            figures = bool(_FIGURES.search(line, heading.end()))
            if parts:
                parts[-1].open = False
                parts.append(_Part(item=False, figures=figures, lines=[]))
        elif not line.strip():
            if parts:
                parts[-1].open = False
        elif not (_SEPARATOR.fullmatch(line) or _FIELD.match(line) or line.lstrip().startswith("|")):
            _take(line, parts, figures=figures)
    return [part for part in parts if part.lines]


def _take(line: str, parts: list[_Part], *, figures: bool) -> None:
    item = _ITEM.match(line)
    last = parts[-1] if parts and parts[-1].lines else None
    indent = len(line) - len(line.lstrip(" \t"))
    if last and last.item and indent >= _NESTED:
        if item or not last.open or last.nested:
            last.nested.append(line)
            last.open = False
        else:
            last.lines.append(line.strip())
    elif item:
        parts.append(_Part(item=True, figures=figures, lines=[line[item.end() :].strip()]))
    elif last and last.open:
        last.lines.append(line.strip().removeprefix("> "))
    else:
        parts.append(_Part(item=False, figures=figures, lines=[line.strip().removeprefix("> ")]))


def _introduces(part: _Part, following: list[_Part]) -> bool:
    return not part.item and part.text.endswith(":") and bool(following) and following[0].item


def _dedented(lines: list[str]) -> str:
    margin = min(len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines)


_INLINE_CODE = r"(?<!`)`[^`\n]+`(?!`)"
_NUMBERED = r"\b(?:PR|MR|[Ii]ssue|[Pp]ull [Rr]equest) ?#?[0-9]{1,9}\b"
_TOKEN = r"[^\s`\"'()\[\]<>{},;|\u2014\u2192\u201c\u201d]+"  # noqa: S105 - a piece of text
_IN_EVIDENCE = re.compile(f"{_INLINE_CODE}|{_NUMBERED}|{_TOKEN}")
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

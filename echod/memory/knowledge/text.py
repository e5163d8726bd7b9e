"""Extract learnings, statements and references from the body of an entry.

A learning is a list item or paragraph, on one line. Code, tables, comments and sections of figures (`### Review
Metrics`) are not learnings, nor is a paragraph that only introduces a list. In a body without anything else they count.

A statement is a sentence or bold lead, word for word as in the text. A full stop in code, in a number, in an
abbreviation or before a small letter does not end a sentence. Doubtful sentences are not split.

References are files with their lines, addresses, commits and numbers, which readers can look up. All of them are kept
when an entry is compressed. Evidence without any of these is kept as written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from echod.lazy import lazy_pattern
from echod.memory.model import Entry
from echod.memory.similarity.words import UNSPACED_RUN, fold, stem, tokenize
from echod.memory.text import PATH_GROUP

_MIN_SENTENCE_WORDS = 3  # "No." and "BUG." mean nothing alone
_CLOSING_MARKS = (
    ".", "!", "?", ":", ")", "\u2026", "\u3002", "\uff01", "\uff1f", "\uff1a", "\uff09", "\u0964", "\u06d4", "\u061f",
)  # fmt: skip
_CODE_SPAN = lazy_pattern(r"(?<!`)(`{1,2})(?!`)[^`]+\1(?!`)")
_SENTENCE_END = lazy_pattern(
    r"(?<![.!?\u2026])[.!?\u2026]++[)\]\"'*_\u201d\u2019\u00bb]*+(?=\s)"
    r"|[\u3002\uff01\uff1f\uff0e\uff61]++[)\]\"'*_\u201d\u2019\u300d\u300f\uff09\u3011\u300b]*+"  # no space follows
    r"|(?<![\u0964\u0965\u061f\u06d4])[\u0964\u0965\u061f\u06d4]++(?=\s)"  # Hindi, Arabic, Urdu
)
_ENDS_WITHOUT_SPACE = lazy_pattern(r"[\u3002\uff01\uff1f\uff0e\uff61][\u201d\u2019\u300d\u300f\uff09\u3011\u300b]*\Z")
_ABBREVIATION = lazy_pattern(
    r"(?:^|[\s(\[\"'])(?:e\.g|i\.e|cf|etc|vs|approx|resp|incl|esp|fig|no|nos|al|[^\W\d_]"
    r"|bzw|ca|ggf|evtl|usw|vgl|inkl|exkl|sog|zzgl|nr|abs|abb|st\u00fcck|ex|env|art|p\u00e1g|n\u00fam|ej|\u0442\.\u0435|\u0441\u0442\u0440)\.$"
    r"|(?:^|\\n)\d{1,2}\.$|\s(?:am|vom|zum|der|dem|den|des|im)\s\d{1,2}\.$",
    re.IGNORECASE,
)
_BOLD_LEAD = lazy_pattern(r"\*\*(?P<inner>[^*]+(?:\*[^*]+)*+)\*\*")
_ITEM = lazy_pattern(r"( {0,3})(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_HEADING = lazy_pattern(r" {0,3}#{1,6}[ \t]+")
_FENCE = lazy_pattern(r"\s*(```+|~~~+)")
_SEPARATOR = lazy_pattern(r"\s*([-*_])(?:\s*\1){2,}\s*")
_STATISTICS = lazy_pattern(r"\b(?:metrics?|statistics|stats|figures|timeline|numbers)\b", re.IGNORECASE)
_FIELD = lazy_pattern(r"\*\*(?:category|domain|source|tags)\*\*:", re.IGNORECASE)
_COMMENT = lazy_pattern(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_MAX_LIST_DEPTH = 3  # nested lists; deeper ones are details
_NESTED_INDENT = 2  # columns at which a line belongs to the item above
_INLINE_CODE = r"(?<!`)`[^`\n]+`(?!`)"
_NUMBERED = r"\b(?:PR|MR|[Ii]ssue|[Pp]ull [Rr]equest) ?#?[0-9]{1,9}\b"
_CHARACTER = r"[^\s`\"'()\[\]<>{},;|\u2014\u2192\u201c\u201d]"
# A piece of text. Brackets belong to it only in a path: beside a slash.
_TOKEN = rf"(?:{_CHARACTER}++|(?<=[/\\]){PATH_GROUP}|{PATH_GROUP}(?=[/\\]))+"
_IN_EVIDENCE = lazy_pattern(f"{_INLINE_CODE}|{_NUMBERED}|{_TOKEN}")
_IN_BODY = lazy_pattern(f"{_NUMBERED}|{_TOKEN}")
_MAX_TOKEN_LENGTH = 400  # characters; real references are shorter
# Each of these must match a whole short token.
_LINES = r"(?::[0-9][0-9:,-]*|#L[0-9][0-9L-]*)"
_NAME = rf"(?:[\w.@~+$-]|{PATH_GROUP})+"
_FILE = lazy_pattern(
    rf"(?P<folders>(?:{_NAME}[/\\])*+)(?:[\w.@+$-]|{PATH_GROUP})*(?:\w|{PATH_GROUP})\.(?P<ending>[A-Za-z]\w{{0,9}})(?P<lines>{_LINES})?"
)
_BARE_FILE = lazy_pattern(rf"(?:{_NAME}[/\\])+{_NAME}{_LINES}|(?:[A-Z][a-z]+file|LICENSE|CODEOWNERS)(?:{_LINES})?")
_FOLDER = lazy_pattern(rf"(?:{_NAME}[/\\]){{2,}}|(?:{_NAME}/){{2,}}{_NAME}")
_FOLDER_PATH = lazy_pattern(rf"(?:{_NAME}/){{2,}}")  # not `5/10/15` or `READ/WRITE/NONE`
_ADDRESS = lazy_pattern(r"https?://\S+")
_IDENTIFIER = lazy_pattern(r"#[0-9]{1,9}|[A-Z][A-Z0-9]*(?:-[A-Z][A-Z0-9]*)*-[0-9]+(?:\.[0-9]+)*")
_COMMIT = lazy_pattern(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}")
_KNOWN_ENDING = lazy_pattern(
    r"c|cc|cfg|cpp|cs|css|csv|go|gradle|h|hpp|html|ini|java|js|json|jsonl|jsx|kt|lock|lua|md|mjs|php|pl|proto|ps1|py"
    r"|pyi|rb|rs|scss|sh|sql|svelte|swift|tf|toml|ts|tsx|txt|vue|xml|ya?ml|zig",
    re.IGNORECASE,
)
_STOP_WORDS = frozenset(
    stem(match[0])
    for match in re.finditer(
        r"\w+",
        """
        a an and are as at be but by can do for from has have how if in into is it its no not of on only or our out
        should so that the their them then there this to use used using via was we what when where which with you your
        analysis arc audit finding findings fix implementation insights learning learnings memory patterns plan report
        research review session task update
        """,
    )
)
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.k.a", "etc"})
_NO_REFERENCE = lazy_pattern(
    r"[`*_\"'(]{0,3}(?:none|n/?a|nothing|null|none recorded|with each learning|[-\u2013\u2014])?[`*_\"').]{0,3}",
    re.IGNORECASE,
)


def extract_learnings(body: str) -> tuple[str, ...]:
    """Return the learnings of a body in order. An empty body has none."""
    return _extract_learnings(body, _MAX_LIST_DEPTH)


def _extract_learnings(body: str, depth: int) -> tuple[str, ...]:
    parts = _split_parts(body)
    if depth and len(parts) == 1 and parts[0].is_item and any(line.strip() for line in parts[0].nested):
        # The whole learning is one bullet, as in the bullet form. The nested items are its learnings.
        return (parts[0].text, *_extract_learnings(_dedent(parts[0].nested), depth - 1))
    selected = [part for part in parts if not part.is_statistics] or parts
    pairs = zip_longest(selected, selected[1:])
    return tuple(part.text for part, after in pairs if part.text and not _introduces_list(part, after))


@dataclass(slots=True)
class _LearningPart:
    """A list item or paragraph being read: its own lines, and the lines nested in it."""

    is_item: bool
    is_statistics: bool
    lines: list[str]
    nested: list[str] = field(default_factory=list)
    is_open: bool = True

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.lines).split())


def _split_parts(body: str) -> list[_LearningPart]:
    parts: list[_LearningPart] = []
    is_statistics = False
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
            is_statistics = bool(_STATISTICS.search(line, heading.end()))
            if parts:
                parts[-1].is_open = False
                parts.append(_LearningPart(is_item=False, is_statistics=is_statistics, lines=[]))
        elif not line.strip():
            if parts:
                parts[-1].is_open = False
        elif not (_SEPARATOR.fullmatch(line) or _FIELD.match(line) or line.lstrip().startswith("|")):
            _add_line(line, parts, is_statistics=is_statistics)
    return [part for part in parts if part.lines]


def _add_line(line: str, parts: list[_LearningPart], *, is_statistics: bool) -> None:
    item = _ITEM.match(line)
    last = parts[-1] if parts and parts[-1].lines else None
    indent = len(line) - len(line.lstrip(" \t"))
    if last and last.is_item and indent >= _NESTED_INDENT:
        if item or not last.is_open or last.nested:
            last.nested.append(line)
            last.is_open = False
        else:
            last.lines.append(line.strip())
    elif item:
        parts.append(_LearningPart(is_item=True, is_statistics=is_statistics, lines=[line[item.end() :].strip()]))
    elif last and last.is_open:
        last.lines.append(line.strip().removeprefix("> "))
    else:
        parts.append(_LearningPart(is_item=False, is_statistics=is_statistics, lines=[line.strip().removeprefix("> ")]))


def _introduces_list(part: _LearningPart, following: _LearningPart | None) -> bool:
    return not part.is_item and part.text.endswith(":") and following is not None and following.is_item


def _dedent(lines: list[str]) -> str:
    margin = min(len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
    return "\n".join(line[margin:] for line in lines)


def split_lead(text: str) -> tuple[str, ...]:
    """Return the bold lead of a learning and the rest of it; only the text where there is no such lead.

    A learning of two sentences is not split: its second one is all that there is to say about the first.
    """
    lead = _BOLD_LEAD.match(text.strip())
    rest = text.strip()[lead.end() :].lstrip(" :.\u2014\u2013-\uff1a\u3002") if lead else ""
    if lead is None or _count_words(lead["inner"]) < _MIN_SENTENCE_WORDS or len(split_sentences(rest)) <= 1:
        return (text,)
    return with_full_stop(lead["inner"].rstrip(" :\uff1a")), rest


def first_sentence(text: str) -> str:
    """Return the first sentence of a text on one line; all of the text if no sentence ends in it."""
    text = text.strip()
    masked = _CODE_SPAN.sub(lambda code: "x" * len(code[0]), text)
    for end in _SENTENCE_END.finditer(masked):
        if _ends_sentence(masked, end) and _count_words(text[: end.end()]) >= _MIN_SENTENCE_WORDS:
            return text[: end.end()]
    return text


def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text on one line. A doubtful end does not end a sentence."""
    sentences = []
    rest = text.strip()
    while rest:
        sentence = first_sentence(rest)
        sentences.append(sentence)
        rest = rest[len(sentence) :].strip()
    return tuple(sentences)


def with_full_stop(text: str) -> str:
    """Return a text with a full stop, that of its script, unless it ends like a sentence."""
    if text.endswith(_CLOSING_MARKS):
        return text
    return f"{text}\u3002" if UNSPACED_RUN.fullmatch(text[-1:]) else f"{text}."


def _count_words(text: str) -> int:
    """Return the number of words. In scripts that put no spaces between words two characters count as one."""
    words = len(text.split())
    return words if text.isascii() else words + sum(len(run) // 2 for run in UNSPACED_RUN.findall(text))


def join_sentences(sentences: Iterable[str]) -> str:
    """Return sentences as one text, without spaces in scripts that put none between them."""
    joined = ""
    for sentence in sentences:
        joined += "" if not joined or _ENDS_WITHOUT_SPACE.search(joined) else " "
        joined += sentence
    return joined


def _ends_sentence(text: str, end: re.Match[str]) -> bool:
    if not end[0].startswith((".", "!", "?", "\u2026")):
        return True
    following = text[end.end() :].lstrip(" \t\"'(*_`\u201c")[:1]
    is_abbreviation = end[0][0] == "." and _ABBREVIATION.search(text, max(0, end.start() - 10), end.start() + 1)
    return not (following.islower() or is_abbreviation)


def strip_emphasis(text: str) -> str:
    """Return the text on one line without marks of emphasis. Code keeps its asterisks."""
    parts = []
    position = 0
    for code in _CODE_SPAN.finditer(text):
        parts += [text[position : code.start()].replace("*", ""), code[0]]
        position = code.end()
    parts.append(text[position:].replace("*", ""))
    return " ".join("".join(parts).split())


def truncate_text(text: str, limit: int) -> str:
    """Return the text, cut between words and marked with an ellipsis where it has more than `limit` characters."""
    if len(text) <= limit:
        return text
    cut = text.rfind(" ", limit // 2, limit)
    return text[: cut if cut > 0 else limit - 1].rstrip(" ,;:-") + "\u2026"


def topic_words(title: str) -> frozenset[str]:
    """Return the words of a title that describe its topic, without endings."""
    stems = (stem(word) for word in tokenize(fold(title)))
    return frozenset(word for word in stems if word not in _STOP_WORDS and not word.isdigit())


def contains_token(text: str, reference: str) -> bool:
    """Return whether a text contains a reference that no other word continues."""
    position = text.find(reference)
    while position >= 0:
        around = text[position - 1 : position] + text[position + len(reference) : position + len(reference) + 1]
        if not any(character.isalnum() or character in "_/" for character in around):
            return True
        position = text.find(reference, position + 1)
    return False


def extract_references(entry: Entry, body: str) -> tuple[str, ...]:
    """Return the references in the evidence, the source and the body of an entry, each once, in that order."""
    references = [*evidence_references(entry.evidence or ""), *_source_reference(entry.source), *body_references(body)]
    return tuple(dict.fromkeys(references))


def evidence_references(evidence: str) -> tuple[str, ...]:
    """Return the references in an evidence field, or all of it if it has no known ones."""
    line = " ".join(evidence.split())
    if _NO_REFERENCE.fullmatch(line):
        return ()
    return tuple(_iter_references(_IN_EVIDENCE, line, _looks_like_reference)) or (strip_emphasis(line),)


def body_references(body: str) -> tuple[str, ...]:
    """Return the references in a text. Only certain files count: `message.content` does not."""
    return tuple(_iter_references(_IN_BODY, body, _is_certain_reference))


def _iter_references(pattern: re.Pattern[str], text: str, is_reference: Callable[[str], bool]) -> Iterator[str]:
    for piece in pattern.findall(text):
        if piece.isalpha() and piece[0].islower():
            continue  # a plain word, as nearly all are: every form of a reference has another character or a capital
        if piece[0] == "`" or " " in piece:
            yield piece
            continue
        if len(piece) > _MAX_TOKEN_LENGTH:
            continue
        token = piece.strip("*_").rstrip(".:!?*_\u2026")
        if token.isalpha() and token[0].islower():
            continue
        parts = token.split("/")
        if len(parts) > 1 and all(_IDENTIFIER.fullmatch(part) for part in parts):
            yield from parts
        elif token and is_reference(token):
            yield token


def _looks_like_reference(token: str) -> bool:
    file = _FILE.fullmatch(token)
    return bool((file and token not in _ABBREVIATIONS) or _FOLDER.fullmatch(token) or _COMMIT.fullmatch(token)) or (
        _is_certain_reference(token)
    )


def _is_certain_reference(token: str) -> bool:
    file = _FILE.fullmatch(token)
    if file:
        return bool(file["folders"] or file["lines"] or _KNOWN_ENDING.fullmatch(file["ending"]))
    return any(kind.fullmatch(token) for kind in (_BARE_FILE, _FOLDER_PATH, _ADDRESS, _IDENTIFIER))


def _source_reference(source: str | None) -> tuple[str, ...]:
    name = " ".join((source or "").split())
    return () if _NO_REFERENCE.fullmatch(name) else (name if "`" in name else f"`{name}`",)

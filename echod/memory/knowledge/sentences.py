"""Where the first sentence of a text ends, and what of it says the most.

Extractive: what comes out stands in the text word for word. A full stop in code, in a number, in an abbreviation or
before a small letter ends nothing; what is in doubt stays together.
"""

from __future__ import annotations

import re

STATEMENT_WORDS = 6
"""Words from which on a bold lead says something by itself (`**Docs-only changes still need a review**: ...`)."""

_LEAST_WORDS = 3  # "No." and "BUG." are no sentences to keep alone
_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)[^`]+\1(?!`)")
_END = re.compile(r"(?<![.!?\u2026])[.!?\u2026]++[)\]\"'*_\u201d\u2019]*+(?=\s)|[\u3002\uff01\uff1f]")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'])(?:e\.g|i\.e|cf|etc|vs|approx|resp|incl|esp|fig|no|nos|al|(?-i:[A-Z]))\.$|(?:^|\\n)\d{1,2}\.$",
    re.IGNORECASE,
)
_BOLD_LEAD = re.compile(r"\*\*(?P<inner>[^*]+(?:\*[^*]+)*+)\*\*")


def first_sentence(text: str) -> str:
    """The first sentence of a text that stands on one line; all of it where none ends in it."""
    text = text.strip()
    masked = _CODE.sub(lambda code: "x" * len(code[0]), text)
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
    for code in _CODE.finditer(text):
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

"""Read the small values of reports: severities, paths, locations, days, categories."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from echod.memory.reports.model import MAX_LENGTHS

HEADING: Final = re.compile(r"[ ]{0,3}(?P<level>#{1,6})[ \t]+(?P<text>\S(?:.*[^ \t#])?)[ \t#]*$")
ITEM: Final = re.compile(
    r"\s{0,3}(?:[-*]\s+(?:\[[ xX]\]\s+)?)?\*\*\[(?P<id>[A-Za-z][\w-]*)\]\s*+(?P<title>[^*\n]*)\*\*(?P<rest>.*)"
)
_SAFE_PATH: Final = re.compile(r"[A-Za-z0-9._\-/@+ ()\[\]]+")
_LOCATION: Final = re.compile(r"(?:\bin\s+|--\s+|\*\*File:?\*\*:?\s*)`?(?P<path>[\w./@+-]+)(?::(?P<line>\d{1,9}))?")
_SEVERITY: Final = re.compile(r"\bP([1-3])\b", re.IGNORECASE)
_SEVERITY_WORDS: Final = {
    "critical": "P1", "blocker": "P1", "high": "P2", "important": "P2", "major": "P2",
    "medium": "P3", "minor": "P3", "low": "P3",
}  # fmt: skip
_WORDS: Final = re.compile(r"[a-z]+")
_CATEGORY: Final = re.compile(r"[A-Za-z]+")


def one_line(text: str, length: int = 1_000) -> str:
    """Return the text on one line, cut at a word to this number of characters."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    return line[:length].rpartition(" ")[0] or line[:length]


def severity_of(text: str) -> str:
    """Return P1, P2 or P3 for a severity in a text: the letter and digit, or the word; "" for neither."""
    if found := _SEVERITY.search(text):
        return f"P{found[1]}"
    return next((_SEVERITY_WORDS[word] for word in _WORDS.findall(text.casefold()) if word in _SEVERITY_WORDS), "")


def safe_path(text: str) -> str:
    """Return a path inside of the project in its plain form; "" for every other text."""
    parts = [part for part in text.strip().strip("`").replace("\\", "/").split("/") if part not in {"", "."}]
    if not parts or ".." in parts or text.strip().startswith(("/", "~")) or "%" in text:
        return ""
    path = "/".join(parts)
    return path if _SAFE_PATH.fullmatch(path) and len(path) <= MAX_LENGTHS["file"] else ""


def location_in(text: str) -> tuple[str, int | None]:
    """Return the file and line that the first line with a location names; ("", None) without one."""
    for line in text.split("\n")[:40]:
        for found in _LOCATION.finditer(line[:2_000]):
            if "/" in found["path"] or "." in found["path"].strip("."):
                return safe_path(found["path"].rstrip(".")), int(found["line"]) if found["line"] else None
    return "", None


def read_day(text: str) -> date | None:
    """Return the day of an ISO 8601 time; None if it is none."""
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def category_of(identity: str) -> str:
    """Return the prefix of an id in upper case: SEC for SEC-001, UXH for UXH-P1-001; "" without an id."""
    found = _CATEGORY.match(identity)
    return found[0].upper() if found else ""

"""From text to words that can be compared: one case, one width, no invisible characters, no Markdown marks."""

from __future__ import annotations

import re
import unicodedata

from echod.memory.obfuscation import unfold

# Scripts that put no spaces between words; their runs are compared in overlapping pairs of characters.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+(?:'[^\W{_UNSPACED}]+)*")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_SUFFIXES = ("ing", "ed", "es", "s")
_STEM = 3  # letters that a word keeps


def fold(text: str) -> str:
    """The text in one case and width and without invisible characters; apostrophes are straight."""
    visible, _ = unfold(text)
    return unicodedata.normalize("NFKC", visible).casefold().replace("\u2019", "'")


def words(folded: str) -> list[str]:
    """The words of a folded text in order; contractions with `not` are two words."""
    found: list[str] = []
    for match in _WORD.finditer(folded):
        word = match[0].strip("_") or match[0]
        if len(word) > 1 and is_unspaced(word):
            found += [word[at : at + 2] for at in range(len(word) - 1)]
        elif word.endswith("n't"):
            found += [{"ca": "can", "wo": "will", "sha": "shall"}.get(word[:-3], word[:-3]), "not"]
        elif word == "cannot":
            found += ["can", "not"]
        else:
            found.append(word.removesuffix("'s"))
    return found


def is_unspaced(word: str) -> bool:
    """Whether a word is of a script that puts no spaces between words."""
    return bool(word) and ord(word[0]) > _LAST_SPACED and _UNSPACED_RUN.fullmatch(word) is not None


def stem(word: str) -> str:
    """A word without the commonest English endings, so that `awaits` and `awaited` agree."""
    if not word.isascii():
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _STEM and not word.endswith("ss"):
            word = word[: -len(suffix)]
            break
    return word[:-1] if word.endswith("e") and len(word) > _STEM else word


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of both sets is shared, 0..1; two empty sets are equal."""
    shared = len(one & other)
    union = len(one) + len(other) - shared
    return shared / union if union else 1.0


_LAST_SPACED = 0x0DFF

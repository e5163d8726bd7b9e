"""Turn texts and queries into the words of the index.

- A word is a run of letters and digits of any script, in lower case and without diacritics.
- An identifier (`spawnAgent`, `max_retries`) is indexed whole, without its underscores, and by its parts.
- Text of scripts without spaces is indexed in overlapping pairs of characters.
- A long text is split into passages of 150 to 450 characters at its bullets, numbers and paragraphs, and a long
  paragraph at its lines and sentences, because an entry that answers a question seldom does so with all of its
  learnings. docs/search.md has the figures.

Stemming is left to the tokenizer of SQLite (`porter`), so that index and query agree.

A short list on purpose: each group was written down because people and agents use its words for one another, and a
wrong pair costs more than a missing one. The words are weaker evidence than the words of the query.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from echod.lazy import lazy_pattern
from echod.memory.text import normalize_characters

MIN_PASSAGE_LENGTH, MAX_PASSAGE_LENGTH = 150, 450
"""The length of a passage in characters. A single paragraph may be longer."""

MAX_PASSAGES = 4000
"""The number of passages of one document; further text belongs to the last one."""

MAX_QUERY_LENGTH, MAX_QUERY_WORDS = 2000, 32
"""How much of a query is used."""

_UNSPACED_RANGES = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3005, 0x3005), (0x3040, 0x30FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
"""Thai, Lao, Burmese, Khmer, kana, Chinese, Hangul. Python's own tests of a character, since a regular expression with
these ranges takes longer to compile than a search takes."""
_WORD = lazy_pattern(r"[^\W_]+(?:_+[^\W_]+)*")
_IDENTIFIER_PART = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\WA-Za-z\d_]+")
_PASSAGE_START = lazy_pattern(r"\n(?=[ \t]*(?:\d+\.|[-*]|#{3,}|\|)[ \t]?)|\n[ \t]*\n")
_LINE_OR_SENTENCE_END = lazy_pattern(r"\n|(?<=[.!?]) (?=[A-Z])")
_LAST_MARKED_CODEPOINT = 0x2FFF  # above are scripts in which marks are parts of letters
_TRANSLITERATIONS = str.maketrans({
    "\u0111": "d", "\u0110": "D", "\u00df": "ss", "\u00f8": "o", "\u00d8": "O", "\u0142": "l", "\u00e6": "ae",
    "\u0153": "oe", "\u0131": "i",
})  # fmt: skip
_UMLAUTS = str.maketrans({"\u00e4": "ae", "\u00f6": "oe", "\u00fc": "ue"})

STOP_WORDS = frozenset(
    """
    a an and are as at be been but by can could did do does for from had has have how i if in into is it its may me my
    no not of on or our shall should so some such than that the their them then there these they this those to too us
    was we were what when where which who why will with would you your
    der die das den dem des ein eine einer eines einem einen und oder aber ist sind war waren wie was wir wer wo wann
    warum mit von zu zum zur im an am auf aus bei fur fuer nicht kein keine es er sie ich du ihr man auch nur noch schon
    damit dass wenn dann als nach uber unter vor sich haben hat muss mussen soll tun
    la le les un une du de l d et ou est sont etait que qui quoi qu ce cet cette ces se s il elle nous vous ils elles ne
    n pas plus pour par sur avec dans en au aux y faut faire soit pu etre pourquoi comment
    va cua cac cho khi thi khong co duoc mot nhung nay neu
    """.split()  # noqa: SIM905  a list would have one word a line
)
"""Words of a query that find nothing, in English, German, French and Vietnamese, without diacritics."""


def words(text: str, *, umlauts: bool = False) -> list[str]:
    """Return the words of a text in order. With `umlauts`, a word with one also appears with an `e` instead."""
    found: list[str] = []
    visible, _ = normalize_characters(text)
    for word in _WORD.findall(visible if visible.isascii() else unicodedata.normalize("NFC", visible)):
        if word.isascii():
            if word.islower() and word.isalpha():  # nearly every word, and this is where the time goes
                found.append(word)
            else:
                found += _identifier(word)
            continue
        for unspaced, characters in groupby(word, _is_unspaced):
            run = "".join(characters).strip("_")
            if unspaced:
                found += [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]
            elif run:
                found += _identifier(fold(run))
                if umlauts and (spelled := run.lower().translate(_UMLAUTS)) != run.lower():
                    found.append(fold(spelled))
    return found


def _identifier(word: str) -> list[str]:
    """Return a word in lower case. An identifier of several parts is followed by its parts."""
    parts = [part.lower() for segment in word.split("_") for part in _IDENTIFIER_PART.findall(segment)]
    return [word.lower().replace("_", ""), *parts] if len(parts) > 1 else [word.lower()]


def _is_unspaced(character: str) -> bool:
    code = ord(character)
    return code >= _UNSPACED_RANGES[0][0] and any(first <= code <= last for first, last in _UNSPACED_RANGES)


def fold(text: str) -> str:
    """Return a text without diacritics. Scripts in which marks are parts of letters stay as they are."""
    if text.isascii():
        return text
    composed = unicodedata.normalize("NFKC", text).translate(_TRANSLITERATIONS)
    if composed.isascii():
        return composed
    characters = (c if ord(c) > _LAST_MARKED_CODEPOINT else unicodedata.normalize("NFKD", c) for c in composed)
    return "".join(c for c in "".join(characters) if unicodedata.category(c) != "Mn" or ord(c) > _LAST_MARKED_CODEPOINT)


def query_words(query: str) -> list[str]:
    """Return the different words of a query, without stop words unless nothing else is left."""
    found = list(dict.fromkeys(words(query[:MAX_QUERY_LENGTH])))
    meaningful = [word for word in found if word not in STOP_WORDS]
    return (meaningful or found)[:MAX_QUERY_WORDS]


def passages(text: str) -> Iterator[str]:
    """Yield a text in passages. A text without content is one empty passage."""
    current, number = "", 0
    for part in _parts(text):
        is_full = len(current) + len(part) > MAX_PASSAGE_LENGTH and len(current) > MIN_PASSAGE_LENGTH
        if current and is_full and number < MAX_PASSAGES - 1:
            yield current
            current, number = "", number + 1
        current = f"{current}\n{part}" if current else part
    if current.strip() or number == 0:
        yield current


def _parts(text: str) -> Iterator[str]:
    """Yield the bullets and paragraphs of a text. A long one is split at its lines and sentences."""
    for part in _PASSAGE_START.split(text):
        if len(part) > MAX_PASSAGE_LENGTH:
            yield from _LINE_OR_SENTENCE_END.split(part)
        else:
            yield part


def trigrams(word: str) -> frozenset[str]:
    """Return the runs of three characters in a word, by which similar words are found."""
    return frozenset([word[at : at + 3] for at in range(len(word) - 2)])


_GROUPS: Final = """
    flaky intermittent unreliable nondeterministic sporadic
    delete remove drop erase purge; create add make new; rename move relocate; copy duplicate clone
    auth authentication authorization login signin; permission access privilege rights
    db database datastore; table schema; row record; query lookup; index indexing; migrate migration
    config configuration settings preferences; env environment; flag option switch parameter argument
    repo repository; branch fork; commit revision; merge rebase; diff patch change
    slow latency performance perf speed; fast quick; optimize speedup improve
    crash abort panic fail failure failed; bug defect fault flaw error; exception traceback
    hang hung freeze stuck deadlock blocked; race concurrency concurrent parallel simultaneous
    timeout deadline expiry expire; retry reattempt repeat again; limit quota cap throttle
    memory ram heap oom; leak exhaustion; cache memoize; queue backlog buffer
    secret password credential token key; encrypt encryption cipher; sanitize escape quote; inject injection
    folder directory dir path; file document; read load fetch; write save store persist
    test check spec verify; validate validation verification; assert assertion; mock stub fake
    doc docs documentation readme manual guide; comment annotation
    worker helper agent subagent; server backend service daemon; client browser frontend ui interface
    start launch boot startup; stop exit quit terminate shutdown kill; run execute invoke
    old obsolete stale outdated deprecated legacy; unused dead orphan leftover
    invent hallucinate phantom fabricate; guess assume assumption estimate
    review audit inspect inspection; plan planning design; scope creep
    rollback revert undo; version release bump upgrade update; build compile ci pipeline
    null none nil undefined missing absent; empty blank; async asynchronous; truncate cut shorten
    regex pattern expression; shell bash script; command cli; user person people customer human; edit modify change
"""
_MIN_LENGTH: Final = 4


def _build() -> dict[str, tuple[str, ...]]:
    groups = [group.split() for line in _GROUPS.splitlines() for group in line.split(";") if group.strip()]
    found: dict[str, tuple[str, ...]] = {}
    for group in groups:
        for word in group:
            found[word] = (*found.get(word, ()), *(other for other in group if other != word))
    return found


_SYNONYMS: Final = _build()


def synonyms(word: str) -> tuple[str, ...]:
    """Return the words that mean nearly the same as a word in lower case, in singular or plural."""
    known = _SYNONYMS.get(word)
    if known is None and word.endswith("s") and len(word) > _MIN_LENGTH:
        known = _SYNONYMS.get(word[:-1])
    return known or ()

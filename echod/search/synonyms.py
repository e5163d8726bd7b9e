"""Words of the trade that mean nearly the same, so that a question finds an answer in other words.

A short list on purpose: each group was written down because people and agents use its words for one another, and a
wrong pair costs more than a missing one. The words are weaker evidence than the words of the query.
"""

from __future__ import annotations

from typing import Final

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

"""Entries that show whether they are whole: each contains a checksum of its text."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from echod.memory.document import parse
from echod.memory.identity import block_content
from echod.memory.model import Unreadable

HEADER = b"<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n"
_TITLE = re.compile(r"## Inscribed \u2014 (\S+) \(2026-11-01\)")
_SOURCE = "**Source**: `test`"
_METADATA = re.compile(r"(?:- )?\*\*\w+\*\*: [^\n]*")
_WHOLE = re.compile(
    rf"{_TITLE.pattern}\n(?:(?:{_METADATA.pattern})?\n)*"
    r"(?:- )?It was learned that ([0-9a-f]{64})\.\n *In version (\d+), sum ([0-9a-f]{8})\."
)


def entry(name: str, version: int = 0) -> bytes:
    """Return an entry called `name`, whose learning is a text of two lines and their sum."""
    digest = _digest(name, version)
    total = _checksum(digest, version)
    return (
        f"## Inscribed \u2014 {name} (2026-11-01)\n\n{_SOURCE}\n\n"
        f"It was learned that {digest}.\nIn version {version}, sum {total}.\n\n"
    ).encode()


def is_whole(block: str) -> bool:
    """Return whether a block is such an entry, complete and unmixed, with the learning of its own title."""
    match = _WHOLE.fullmatch(block.rstrip())
    if match is None or _SOURCE not in block.splitlines():
        return False
    name, digest, version, total = match[1], match[2], int(match[3]), match[4]
    return digest == _digest(name, version) and _checksum(digest, version) == total


def is_shortened(block: str, whole: str) -> bool:
    """Return whether a block is the whole one, perhaps with joined lines and without some of its metadata.

    Each of its lines is one line of the whole block or several in a row, in their order. Only metadata is missing.
    """
    rest = _text_lines(whole)
    for line in _text_lines(block):
        while rest and rest[0] != line and _METADATA.match(rest[0]):
            del rest[0]
        joined = next((end for end in range(1, len(rest) + 1) if " ".join(rest[:end]) == line), None)
        if joined is None:
            return False
        del rest[:joined]
    return not rest


def version_of(block: str) -> int:
    """Return the version in an entry's text; -1 if there is none."""
    match = re.search(r"In version (\d+), sum", block)
    return int(match[1]) if match else -1


_CONTENTS = 32
"""Contents that are remembered. A storm's file takes megabytes when it is read, and each kill forks the process."""

parse_cached = lru_cache(maxsize=_CONTENTS)(parse)
"""`parse`, remembered: a series of schedules reads the same contents over and over."""


@lru_cache(maxsize=_CONTENTS)
def named_entries(data: bytes) -> tuple[tuple[str, str], ...]:
    """Return name and text of the entries in a file, in order. Other blocks are named by their heading."""
    document = parse_cached(data)
    if isinstance(document, Unreadable):
        return (("unreadable", data.decode(errors="replace")),)
    return tuple((name_of(block_content(block)), block_content(block)) for block in document.blocks)


def with_own_entry(data: bytes, own: str, version: int) -> bytes:
    """Return the file with a writer's own status entry at a new version, ending in a blank line."""
    new = entry(own, version)
    for name, text in named_entries(data):
        if name == own:
            return data.replace(text.encode(), new.rstrip()).rstrip() + b"\n\n"
    return data.rstrip() + b"\n\n" + new


def count_entries(paths: Iterable[Path]) -> Counter[str]:
    """Count how often each entry is in the files."""
    return Counter(name for path in paths if path.is_file() for name, _ in named_entries(path.read_bytes()))


def name_of(text: str) -> str:
    """Return the name in a block's title, or the heading of another block."""
    match = _TITLE.match(text)
    return match[1] if match else text.partition("\n")[0]


def _text_lines(block: str) -> list[str]:
    return [line.strip() for line in block.splitlines() if line.strip()]


def _digest(name: str, version: int) -> str:
    return hashlib.sha256(f"{name}:{version}".encode()).hexdigest()


def _checksum(digest: str, version: int) -> str:
    return hashlib.sha256(f"{digest}/{version}".encode()).hexdigest()[:8]

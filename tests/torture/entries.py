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


def entry(name: str, version: int = 0) -> bytes:
    """Return an entry called `name`, whose learning is a text of two lines and their sum."""
    digest = hashlib.sha256(f"{name}:{version}".encode()).hexdigest()
    total = _checksum(digest, version)
    return (
        f"## Inscribed \u2014 {name} (2026-11-01)\n\n**Source**: `test`\n\n"
        f"It was learned that {digest}.\nIn version {version}, sum {total}.\n\n"
    ).encode()


def is_whole(block: str) -> bool:
    """Return whether a block is such an entry, complete and unmixed."""
    match = re.search(
        r"It was learned that ([0-9a-f]{64})\.\n *In version (\d+), sum ([0-9a-f]{8})\.\Z", block.rstrip()
    )
    return match is not None and _checksum(match[1], int(match[2])) == match[3]


def version_of(block: str) -> int:
    """Return the version in an entry's text; -1 if there is none."""
    match = re.search(r"In version (\d+), sum", block)
    return int(match[1]) if match else -1


parse_cached = lru_cache(maxsize=1024)(parse)
"""`parse`, remembered: a series of schedules reads the same contents over and over."""


@lru_cache(maxsize=1024)
def named_entries(data: bytes) -> tuple[tuple[str, str], ...]:
    """Return name and text of the entries in a file, in order. Other blocks are named by their heading."""
    document = parse_cached(data)
    if isinstance(document, Unreadable):
        return (("unreadable", data.decode(errors="replace")),)
    return tuple((_name(block_content(block)), block_content(block)) for block in document.blocks)


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


def _name(text: str) -> str:
    match = _TITLE.match(text)
    return match[1] if match else text.partition("\n")[0]


def _checksum(digest: str, version: int) -> str:
    return hashlib.sha256(f"{digest}/{version}".encode()).hexdigest()[:8]

"""Entries that can tell whether they are whole: each carries a checksum of what it says."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from echod.memory.alignment import content
from echod.memory.document import parse
from echod.memory.model import Unreadable

HEADER = b"<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n"
_TITLE = re.compile(r"## Inscribed \u2014 (\S+) \(2026-11-01\)")


def entry(name: str, version: int = 0) -> bytes:
    """An entry called `name`; its learning is a text of two lines and their sum."""
    said = hashlib.sha256(f"{name}:{version}".encode()).hexdigest()
    total = _sum(said, version)
    return (
        f"## Inscribed \u2014 {name} (2026-11-01)\n\n**Source**: `test`\n\n"
        f"It was learned that {said}.\nIn version {version}, sum {total}.\n\n"
    ).encode()


def is_whole(block: str) -> bool:
    """Whether a block is such an entry, complete and unmixed."""
    match = re.search(
        r"It was learned that ([0-9a-f]{64})\.\n *In version (\d+), sum ([0-9a-f]{8})\.\Z", block.rstrip()
    )
    return match is not None and _sum(match[1], int(match[2])) == match[3]


def version_of(block: str) -> int:
    """The version an entry says it is; -1 where it does not say."""
    match = re.search(r"In version (\d+), sum", block)
    return int(match[1]) if match else -1


read_as = lru_cache(maxsize=1024)(parse)
"""`parse`, remembered: a series of schedules reads the same contents over and over."""


@lru_cache(maxsize=1024)
def named(data: bytes) -> tuple[tuple[str, str], ...]:
    """The entries in a file: name and text, in order. Blocks that are none are called by their heading."""
    document = read_as(data)
    if isinstance(document, Unreadable):
        return (("unreadable", data.decode(errors="replace")),)
    return tuple((_name(content(block)), content(block)) for block in document.blocks)


def with_own(data: bytes, own: str, version: int) -> bytes:
    """The file with a writer's own status entry at a new version, ending in a blank line."""
    new = entry(own, version)
    for name, text in named(data):
        if name == own:
            return data.replace(text.encode(), new.rstrip()).rstrip() + b"\n\n"
    return data.rstrip() + b"\n\n" + new


def census(paths: Iterable[Path]) -> Counter[str]:
    """How often each entry stands in the files."""
    return Counter(name for path in paths if path.is_file() for name, _ in named(path.read_bytes()))


def _name(text: str) -> str:
    match = _TITLE.match(text)
    return match[1] if match else text.partition("\n")[0]


def _sum(said: str, version: int) -> str:
    return hashlib.sha256(f"{said}/{version}".encode()).hexdigest()[:8]

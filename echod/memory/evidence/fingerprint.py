"""Read a citation, and take the fingerprint of its lines: enough to find them again, and nothing that can be read.

White space, line breaks, commas before a closing bracket and the kind of quotes do not count, so that code which a
formatter wrapped in other lines has the same tokens. Four bytes for each let a sequence be found with `bytes.find`,
and keep the text itself out of what is stored.
"""

from __future__ import annotations

import hashlib
import re
import string
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from heapq import nsmallest
from typing import Final, NamedTuple

from echod.lazy import lazy_pattern

TOKEN_BYTES: Final = 4
CHECKSUM_BYTES: Final = 4
MAX_TOKENS: Final = 400_000
"""Tokens of a file that are looked at."""

_TOKEN: Final = lazy_pattern(r"\w+|[^\w\s]")
_CLOSERS: Final = frozenset(")]}")
_QUOTES: Final = {"'": '"'}
_SPACES: Final = b" \t\r\v\f"


class CodeLine(NamedTuple):
    """A line with tokens: its number from 1, the checksum of its tokens, and which tokens are its own."""

    number: int
    checksum: bytes
    begin: int
    end: int


class Tokens(NamedTuple):
    """The tokens of a text: `data` has four bytes for each, `starts` the number of tokens before each line."""

    data: bytes
    starts: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.data) // TOKEN_BYTES

    def line_of(self, token: int) -> int:
        """Return the line, from 1, of the token with this number."""
        return bisect_right(self.starts, token)

    def lines(self, first: int, last: int) -> tuple[int, int]:
        """Return the numbers of the first token of lines `first` to `last`, and of the one after them."""
        total, count = len(self.starts), self.size
        begin = self.starts[first - 1] if first <= total else count
        return begin, self.starts[last] if last < total else count

    def code_lines(self) -> list[CodeLine]:
        """Return the lines that have tokens."""
        found = []
        ends = (*self.starts[1:], self.size)
        for number, (begin, end) in enumerate(zip(self.starts, ends, strict=True), start=1):
            if end > begin:
                found.append(CodeLine(number, checksum(self.data[begin * TOKEN_BYTES : end * TOKEN_BYTES]), begin, end))
        return found


def checksum(data: bytes) -> bytes:
    """Return four bytes by which equal lines are recognised."""
    return zlib.crc32(data).to_bytes(CHECKSUM_BYTES, "big")


def tokenize(text: str) -> Tokens:
    """Return the tokens of a text."""
    found: list[str] = []
    starts: list[int] = []
    for line in text.split("\n"):
        starts.append(len(found))
        tokens = _TOKEN.findall(line)
        if tokens and found and found[-1] == "," and tokens[0] in _CLOSERS:
            found.pop()
            starts[-1] -= 1
            # Blank lines between the comma and the bracket began after the comma.
            at = len(starts) - 2
            while at >= 0 and starts[at] > len(found):
                starts[at] = len(found)
                at -= 1
        if "," in tokens:
            tokens = [
                t for t, after in zip(tokens, [*tokens[1:], ""], strict=True) if t != "," or after not in _CLOSERS
            ]
        found += tokens
        if len(found) > MAX_TOKENS:
            del found[MAX_TOKENS:]
            break
    codes = {token: _code(token) for token in set(found)}
    return Tokens(b"".join([codes[token] for token in found]), tuple(starts))


def _code(token: str) -> bytes:
    word = _QUOTES.get(token, token)
    return blake2b(word.encode(errors="surrogatepass"), digest_size=TOKEN_BYTES).digest()


SIGNS: Final = frozenset(map(_code, string.punctuation))
"""The tokens that are no words."""


def find_all(needle: bytes, data: bytes, limit: int = 200) -> list[int]:
    """Return the numbers of the tokens at which a sequence of tokens begins, at most `limit`."""
    found: list[int] = []
    at = data.find(needle) if needle else -1
    while at >= 0 and len(found) < limit:
        if at % TOKEN_BYTES == 0:
            found.append(at // TOKEN_BYTES)
            at = data.find(needle, at + TOKEN_BYTES)
        else:
            at = data.find(needle, at + 1)
    return found


CONTEXT_TOKENS: Final = 32
"""Tokens before and after the cited lines that are kept, to tell equal lines apart."""

CONTEXT_LINES: Final = 150
"""Checksums of so many lines before and after the cited ones are kept, to find the place of edited lines."""

_SIZE_BYTES: Final = 2

MAX_BLOCK_TOKENS: Final = 4_000
_SKETCH_LINES: Final = 64
_MIN_SKETCH_LENGTH: Final = 4


class Fingerprint(NamedTuple):
    """The part of cited lines that is kept. A citation of a whole file has no lines and no tokens.

    Attributes:
        path: the file, relative to the project.
        first: the first cited line that is not blank, from 1; 0 for a whole file.
        last: the last cited line; 0 for a whole file.
        tokens: the tokens of the lines.
        before: the tokens before them.
        after: the tokens after them.
        lines_before: the checksums of the lines before them, without blank ones.
        lines_after: the checksums of the lines after them.
        line_sizes: how many tokens each of the lines has, in two bytes.
        copies: how often the tokens are in the file.
        size: the size of the file in bytes.
        digest: the name that git gives to the file's content.
        sketch: the smallest checksums of the file's lines, by which a renamed file is recognised.
    """

    path: str
    first: int
    last: int
    tokens: bytes
    before: bytes
    after: bytes
    lines_before: bytes
    lines_after: bytes
    line_sizes: bytes
    copies: int
    size: int
    digest: str
    sketch: bytes

    def code_lines(self) -> list[bytes]:
        """Return the tokens of each cited line that has any."""
        found, at = [], 0
        for begin in range(0, len(self.line_sizes), _SIZE_BYTES):
            size = int.from_bytes(self.line_sizes[begin : begin + _SIZE_BYTES], "big") * TOKEN_BYTES
            found.append(self.tokens[at : at + size])
            at += size
        return found


@dataclass(frozen=True)
class TokenizedFile:
    """A file's content, its tokens, and the number of its lines."""

    data: bytes
    tokens: Tokens
    line_count: int

    @cached_property
    def code_lines(self) -> Sequence[CodeLine]:
        """The lines that have tokens."""
        return self.tokens.code_lines()


def read_content(data: bytes) -> TokenizedFile:
    """Return the content of a file for comparisons. Bytes that are no UTF-8 count as characters of their own."""
    text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    return TokenizedFile(data, tokenize(text), text.count("\n") + (not text.endswith("\n") and bool(text)))


def take_fingerprint(path: str, content: TokenizedFile, first: int | None, last: int | None) -> Fingerprint | None:
    """Return the fingerprint of lines of a file (None: of the whole file); None if the file has no such lines."""
    digest, sketch = blob_digest(content.data), sketch_of(line_sums(content.data))
    if first is None or last is None:
        return Fingerprint(path, 0, 0, b"", b"", b"", b"", b"", b"", 1, len(content.data), digest, sketch)
    if first > content.line_count:
        return None
    tokens = content.tokens
    begin, end = tokens.lines(first, min(last, content.line_count))
    end = min(end, begin + MAX_BLOCK_TOKENS)
    block = tokens.data[begin * TOKEN_BYTES : end * TOKEN_BYTES]
    if not block:
        return None
    lines = content.code_lines
    upper = bisect_left(lines, begin, key=lambda line: line.begin)
    lower = bisect_left(lines, end, key=lambda line: line.begin)
    return Fingerprint(
        path=path,
        first=tokens.line_of(begin),
        last=min(last, content.line_count),
        tokens=block,
        before=tokens.data[max(0, begin - CONTEXT_TOKENS) * TOKEN_BYTES : begin * TOKEN_BYTES],
        after=tokens.data[end * TOKEN_BYTES : (end + CONTEXT_TOKENS) * TOKEN_BYTES],
        lines_before=b"".join([line.checksum for line in lines[max(0, upper - CONTEXT_LINES) : upper]]),
        lines_after=b"".join([line.checksum for line in lines[lower : lower + CONTEXT_LINES]]),
        line_sizes=b"".join(
            [(min(line.end, end) - line.begin).to_bytes(_SIZE_BYTES, "big") for line in lines[upper:lower]]
        ),
        copies=max(1, len(find_all(block, tokens.data))),
        size=len(content.data),
        digest=digest,
        sketch=sketch,
    )


def blob_digest(data: bytes) -> str:
    """Return the name that git (with SHA-1) gives to a content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def line_sums(data: bytes) -> frozenset[int]:
    """Return the checksums of the different lines of a content, without very short ones.

    White space, the kind of quotes and a comma at the end do not count.
    """
    text = data.translate(None, _SPACES).replace(b"'", b'"') + b"\n"
    while b",\n" in text:
        text = text.replace(b",\n", b"\n")
    return frozenset([zlib.crc32(line) for line in set(text.split(b"\n")) if len(line) >= _MIN_SKETCH_LENGTH])


def sketch_of(sums: frozenset[int]) -> bytes:
    """Return the smallest checksums of lines, sorted."""
    smallest = nsmallest(_SKETCH_LINES, sums)
    return b"".join(number.to_bytes(CHECKSUM_BYTES, "big") for number in smallest)


def read_sketch(sketch: bytes) -> frozenset[int]:
    """Return the checksums of lines in a sketch."""
    return frozenset(
        int.from_bytes(sketch[at : at + CHECKSUM_BYTES], "big") for at in range(0, len(sketch), CHECKSUM_BYTES)
    )


def similarity(one: bytes, other: bytes) -> float:
    """Return how alike two files with these sketches are, 0..1."""
    first, second = read_sketch(one), read_sketch(other)
    if not first or not second:
        return 0.0
    smallest = set(nsmallest(min(_SKETCH_LINES, len(first | second)), first | second))
    return len(smallest & first & second) / len(smallest)


MAX_CITED_LINES: Final = 400
"""Lines of a citation that are compared. A longer citation is about the beginning of its lines."""

_RANGE: Final = r"L?(\d{1,7})(?:[-\u2013]L?(\d{1,7}))?"
_LINES: Final = lazy_pattern(rf"(?::|#){_RANGE}((?:,\s*{_RANGE})*)(?::\d+)?$")
_ADDRESS: Final = lazy_pattern(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


class CitedPlace(NamedTuple):
    """A citation as written, its path, and its lines from 1 (None for a citation of the whole file)."""

    text: str
    path: str
    first: int | None = None
    last: int | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


def parse_citation(text: str) -> CitedPlace | None:
    """Return what a citation names; None for an address, or a text without a path.

    Of several ranges (`a.py:3,9-12`) all lines from the first to the last count if they are near each other, else those
    of the first range. A column (`a.py:3:14`) is ignored.
    """
    bare = text.strip().strip("`").strip()
    if not bare or "\0" in bare or _ADDRESS.match(bare):
        return None
    match = _LINES.search(bare)
    if match is None:
        return CitedPlace(text, _clean(bare))
    path = _clean(bare[: match.start()])
    first = int(match[1])
    last = int(match[2] or first)
    for number in re.findall(r"\d+", match[3]):
        if first <= int(number) <= last + MAX_CITED_LINES // 4:
            last = max(last, int(number))
    if not path or first < 1 or last < first:
        return CitedPlace(text, path or bare)
    return CitedPlace(text, path, first, min(last, first + MAX_CITED_LINES - 1))


def _clean(path: str) -> str:
    path = path.replace("\\", "/")
    while path.startswith("./"):
        path = path[2:]
    return path

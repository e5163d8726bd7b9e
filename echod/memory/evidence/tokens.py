"""Split a text into tokens that formatting does not change, each as four bytes.

White space, line breaks, commas before a closing bracket and the kind of quotes do not count, so that code which a
formatter wrapped in other lines has the same tokens. Four bytes for each let a sequence be found with `bytes.find`,
and keep the text itself out of what is stored.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from hashlib import blake2b
from typing import Final, NamedTuple

TOKEN_BYTES: Final = 4
MAX_TOKENS: Final = 400_000
"""Tokens of a file that are looked at."""

_TOKEN: Final = re.compile(r"\w+|[^\w\s]")
_CLOSERS: Final = frozenset(")]}")
_QUOTES: Final = {"'": '"'}


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

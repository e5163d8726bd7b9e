"""One line that says how far long work is, for whoever sits before a terminal. It leaves nothing behind."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self, TextIO

from echod.cli.text import WIDTH, plain

_FIRST_SECONDS: Final = 0.3
_BETWEEN_SECONDS: Final = 0.1
_CLEAR: Final = "\r\x1b[K"


class Progress:
    """A line that is written again and again; nothing at all where `terminal` is None or the work is short."""

    def __init__(self, terminal: TextIO | None) -> None:
        self._terminal = terminal
        self._next = time.monotonic() + _FIRST_SECONDS
        self._shown = False

    def show(self, text: str) -> None:
        """Say how far it is; not too often, since a terminal takes longer than what it tells of."""
        if self._terminal is None or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _BETWEEN_SECONDS
        self._shown = True
        self._terminal.write(f"{_CLEAR}{plain(text)[: WIDTH - 1]}")
        self._terminal.flush()

    def clear(self) -> None:
        """Take the line away, before something else is printed."""
        if self._terminal is not None and self._shown:
            self._shown = False
            self._next = time.monotonic()
            self._terminal.write(_CLEAR)
            self._terminal.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

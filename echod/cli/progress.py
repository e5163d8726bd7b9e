"""One line that says how far long work is, for whoever sits before a terminal. It leaves nothing behind."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self, TextIO

from echod.cli.output import WIDTH, sanitize

_INITIAL_DELAY_SECONDS: Final = 0.3
_UPDATE_INTERVAL_SECONDS: Final = 0.1
_CLEAR_LINE: Final = "\r\x1b[K"


class ProgressLine:
    """A line that is written again and again; nothing at all where `terminal` is None or the work is short."""

    def __init__(self, terminal: TextIO | None) -> None:
        self._terminal = terminal
        self._next_update = time.monotonic() + _INITIAL_DELAY_SECONDS
        self._is_shown = False

    def show(self, text: str) -> None:
        """Say how far it is; not too often, since a terminal takes longer than what it tells of."""
        if self._terminal is None or time.monotonic() < self._next_update:
            return
        self._next_update = time.monotonic() + _UPDATE_INTERVAL_SECONDS
        self._is_shown = True
        self._terminal.write(f"{_CLEAR_LINE}{sanitize(text)[: WIDTH - 1]}")
        self._terminal.flush()

    def clear(self) -> None:
        """Take the line away, before something else is printed."""
        if self._terminal is not None and self._is_shown:
            self._is_shown = False
            self._next_update = time.monotonic()
            self._terminal.write(_CLEAR_LINE)
            self._terminal.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

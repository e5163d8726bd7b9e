"""Provide the logger of a module: structlog's, which is loaded and configured with the first line.

Read-only commands seldom write a line, and loading structlog would take longer than their work. `echod.log_setup`
defines how lines look and where they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from echod.lazy import lazy_imports

with lazy_imports(__name__):
    import structlog

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger


class Logger:
    """Writes lines: a constant snake_case event with fields, never the text of a memory."""

    def __init__(self, name: str) -> None:
        self._name = name

    def debug(self, event: str, **fields: object) -> None:
        """Log an event that only helps to find a bug in echod."""
        self._bound.debug(event, **fields)

    def info(self, event: str, **fields: object) -> None:
        """Log a normal event."""
        self._bound.info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log an event that may need the user's attention."""
        self._bound.warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """Log a failure."""
        self._bound.error(event, **fields)

    def exception(self, event: str, **fields: object) -> None:
        """Log a failure with the traceback of the exception that is being handled."""
        self._bound.exception(event, **fields)

    @cached_property
    def _bound(self) -> BoundLogger:
        while _pending:
            _pending.pop()()

        bound_logger: BoundLogger = structlog.get_logger(self._name)
        return bound_logger


_pending: list[Callable[[], None]] = []
"""The configuration to run before the first line; at most one in the process, as the standard library's log is."""


def get_logger(name: str) -> Logger:
    """Return the logger of the module of that name."""
    return Logger(name)


def configure_lazily(configure: Callable[[], None]) -> None:
    """Call `configure` when the first line is written, and never if none is. A later call replaces an earlier one."""
    _pending[:] = [configure]


def mark_configured() -> None:
    """Cancel the lazy configuration, because the log is configured."""
    _pending.clear()

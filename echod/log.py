"""Provide the logger of a module: structlog's, which is loaded and configured with the first line.

Read-only commands seldom write a line, and loading structlog would take longer than their work. `echod.log_setup`
defines how lines look and where they are written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

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
        _LAZY_SETUP.run_pending()
        import structlog  # noqa: PLC0415  slow to load

        bound_logger: BoundLogger = structlog.get_logger(self._name)
        return bound_logger


class _LazySetup:
    """The configuration to run before the first line; one for the process, as the standard library's log is."""

    def __init__(self) -> None:
        self._pending: Callable[[], None] | None = None

    def defer(self, configure: Callable[[], None]) -> None:
        self._pending = configure

    def run_pending(self) -> None:
        pending = self._pending
        self.cancel()
        if pending is not None:
            pending()

    def cancel(self) -> None:
        self._pending = None


_LAZY_SETUP = _LazySetup()


def get_logger(name: str) -> Logger:
    """Return the logger of the module of that name."""
    return Logger(name)


def configure_lazily(configure: Callable[[], None]) -> None:
    """Call `configure` when the first line is written, and never if none is. A later call replaces an earlier one."""
    _LAZY_SETUP.defer(configure)


def mark_configured() -> None:
    """Cancel the lazy configuration, because the log is configured."""
    _LAZY_SETUP.cancel()

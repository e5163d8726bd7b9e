"""Configure the log: structlog through the standard library, so that lines of libraries look like those of echod.

Lines are text on a terminal, and JSON in files and journals. A line is a constant snake_case event with fields. It
never contains the text of a memory, and tracebacks contain no local variables.
"""

from __future__ import annotations

import io
import logging
import logging.handlers
import os
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import structlog
from structlog.tracebacks import ExceptionDictTransformer

from echod.files import open_private_log
from echod.lazy import lazy_pattern
from echod.log import mark_configured
from echod.paths import make_private_directory

_NOISY_LOGGERS = ("apscheduler", "watchdog", "filelock", "tzlocal", "asyncio")
_MAX_LOG_BYTES = 1_000_000
_LOG_BACKUPS = 4
_REPEAT_SECONDS = 60.0
_MAX_REMEMBERED_LINES = 256
_CONTROL_CHARACTERS = lazy_pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SYSLOG_PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}


def configure(level: str, stream: TextIO, environ: Mapping[str, str], *, file: Path | None = None) -> None:
    """Send every log line of the process from `level` on to `stream`, or to a rotating `file` (5 x 1 MB) instead.

    A stream that is a terminal gets colours (unless `NO_COLOR` is set), anything else JSON. `JOURNAL_STREAM` shows that
    systemd's journal reads it. The file is for launchd, which does not rotate the output that it collects.
    """
    mark_configured()
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler: logging.Handler = logging.StreamHandler(stream) if file is None else _LazyLogFileHandler(file)
    processors = _build_processors(stream, environ, for_terminal=file is None and stream.isatty())
    pre_chain: list[structlog.types.Processor] = [*shared, structlog.stdlib.ExtraAdder()]
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=pre_chain, processors=processors))
    root = logging.getLogger()
    for old_handler in list(root.handlers):
        root.removeHandler(old_handler)
        old_handler.close()
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            RepeatFilter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


class RepeatFilter:
    """Drops a line that reports the same problem as one a moment ago, as a full disk causes several times a second.

    The first line after the pause has the number of dropped ones as `repeated`. Lines without an `error` or a `reason`
    are reports of work and are never dropped.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lines: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def __call__(self, logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Return the event, or raise `structlog.DropEvent`."""
        del logger, name
        if "error" not in event and "reason" not in event:
            return event
        key, now = repr(sorted((field, repr(value)) for field, value in event.items())), self._monotonic()
        with self._lock:
            since, repeated = self._lines.get(key, (float("-inf"), 0))
            if now - since < _REPEAT_SECONDS:
                self._lines[key] = (since, repeated + 1)
                raise structlog.DropEvent
            self._lines.pop(key, None)
            if len(self._lines) >= _MAX_REMEMBERED_LINES:
                del self._lines[next(iter(self._lines))]
            self._lines[key] = (now, 0)
        if repeated:
            event["repeated"] = repeated
        return event


class _LazyLogFileHandler(logging.handlers.RotatingFileHandler):
    """A private file that is created with its first line, so that a command without a line creates none."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, maxBytes=_MAX_LOG_BYTES, backupCount=_LOG_BACKUPS, encoding="utf-8", delay=True)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  the library's name
        """Drop a line that cannot be written: a full disk or a read-only home does not stop the work.

        The library would print a traceback for each line, between the messages that the user needs.
        """

    def _open(self) -> TextIOWrapper:
        make_private_directory(Path(self.baseFilename).parent)
        descriptor = open_private_log(Path(self.baseFilename))
        return TextIOWrapper(io.FileIO(descriptor, "a"), encoding=self.encoding, write_through=True)


def _build_processors(
    stream: TextIO, environ: Mapping[str, str], *, for_terminal: bool
) -> list[structlog.types.Processor]:
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if for_terminal:
        colors = not environ.get("NO_COLOR")
        plain_traceback = structlog.dev.plain_traceback
        return [
            strip,
            _escape_values,
            structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain_traceback),
        ]
    tracebacks = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False, max_frames=20))
    json = structlog.processors.JSONRenderer(ensure_ascii=False)
    return [strip, tracebacks, _with_syslog_priority(json) if _is_journal(stream, environ) else json]


def _escape_values(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape control characters in the values, such as names of files, which could act on the terminal."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = _CONTROL_CHARACTERS.sub(lambda match: f"\\x{ord(match[0]):02x}", value)
    return event


def _with_syslog_priority(
    render: Callable[[Any, str, MutableMapping[str, Any]], str | bytes],
) -> Callable[[Any, str, MutableMapping[str, Any]], str]:
    """Prefix the line with `<N>`, which journald reads as its priority (sd-daemon(3))."""

    def render_with_priority(logger: Any, name: str, event: MutableMapping[str, Any]) -> str:
        priority = _SYSLOG_PRIORITIES.get(str(event.get("level")), 6)
        line = render(logger, name, event)
        return f"<{priority}>{line.decode() if isinstance(line, bytes) else line}"

    return render_with_priority


def _is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether systemd's journal reads `stream`: `JOURNAL_STREAM` has its device and inode (systemd.exec(5))."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"

"""Name the errors of echod, and keep an error about one thing from ending the work on all others.

A message is one sentence that contains what happened and what to do. The cause belongs in the log
(`raise ... from error`), never in the message. At the bottom, below every package.

Files of projects, of other programs and of an unclean shutdown contain anything. Each reader names the errors that it
expects. `isolated` is the boundary for those that no reader expects: the one thing is left alone, with a sentence for
the user and a report in the log, and the loop around it continues. Errors of echod's own state (`StateError`) are not
isolated, because no thing can be worked on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

from echod.log import get_logger

GARBLED_ERRORS: Final = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError, MemoryError,
)  # fmt: skip
"""Every error of decoding a file whose content may be anything. `ValueError` includes JSON's and those
of encodings, `RuntimeError` too deep recursion and links that form a loop."""


class ExitCode(IntEnum):
    """Exit codes of every command (contract for scripts)."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_RUNNING = 3
    NOT_ANSWERING = 4
    CONFIGURATION = 78


class EchodError(Exception):
    """An error that the user can act upon. `str(error)` is the message that is printed."""

    exit_code: ExitCode = ExitCode.FAILED


class UsageError(EchodError):
    """The arguments of a command make no sense here."""

    exit_code = ExitCode.USAGE


class ConfigurationError(EchodError):
    """The settings cannot be used. A restart without a change is pointless (EX_CONFIG)."""

    exit_code = ExitCode.CONFIGURATION


class StateError(EchodError):
    """The state directory or the database cannot be relied upon. A process that runs jobs stops at once."""


def os_reason(error: OSError) -> str:
    """Return the operating system's reason, in lower case for the middle of a sentence."""
    return (error.strerror or type(error).__name__).lower()


log = get_logger(__name__)


@contextmanager
def isolated(subject: str, report: Callable[[str], object] | None = None) -> Iterator[None]:
    """End the block at an error instead of raising it, and call `report` with a sentence about it.

    Args:
        subject: the thing that the block works on, as the subject of a sentence: a path, "The doc pack fastapi".
        report: receives the sentence for the user. The log has it in any case.

    Raises:
        StateError: the database, a lock or the state directory was lost.
    """
    try:
        yield
    except StateError:
        raise
    except EchodError as error:
        log.warning("left_alone", subject=subject, reason=str(error))
        if report is not None:
            report(str(error))
    except OSError as error:
        log.warning("left_alone", subject=subject, reason=repr(error))
        if report is not None:
            report(left_alone_text(subject, error))
    except Exception as error:
        log.exception("left_alone", subject=subject)
        if report is not None:
            report(left_alone_text(subject, error))


def left_alone_text(subject: str, error: Exception) -> str:
    """Return the sentence about a thing that echod leaves alone because of an error."""
    return f"{subject} is left alone: {error_reason(error)}."


def error_reason(error: Exception) -> str:
    """Return the reason of an error as half a sentence, with the next step where there is one."""
    match error:
        case MemoryError():
            return "it needs more memory than there is; make its files smaller"
        case RecursionError():
            return "something in it is nested too deeply; simplify it"
        case UnicodeError():
            return "something in it is not UTF-8; rename it or save it as UTF-8"
        case OSError():
            location = f" ({error.filename})" if isinstance(error.filename, str) else ""
            return f"{os_reason(error)}{location}; check that path"
        case _:
            return f"an unexpected {type(error).__name__}; the log has the report"

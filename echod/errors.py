"""The base of every error that the user can act upon, and the exit codes.

A message is one sentence that contains what happened and what to do. The cause belongs in the log
(`raise ... from error`), never in the message. A module of its own because it is at the bottom, below every package.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

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

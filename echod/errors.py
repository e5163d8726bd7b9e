"""Errors a person can read: one sentence that says what happened and what to do, and an exit code.

The cause belongs in the log (`raise ... from error`), never in the sentence.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command (contract for scripts)."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_RUNNING = 3
    NOT_ANSWERING = 4
    CONFIGURATION = 78


def os_reason(error: OSError) -> str:
    """What the operating system said, in the middle of a sentence."""
    return (error.strerror or type(error).__name__).lower()


class EchodError(Exception):
    """Something a person can act upon. `str(error)` is the sentence they read."""

    exit_code: ExitCode = ExitCode.FAILED


class UsageError(EchodError):
    """The command was asked for something that makes no sense here."""

    exit_code = ExitCode.USAGE


class ConfigurationError(EchodError):
    """The settings cannot be used; starting again without a change is pointless (EX_CONFIG)."""

    exit_code = ExitCode.CONFIGURATION


class StateError(EchodError):
    """The state directory or the database cannot be relied upon; whoever runs stops at once."""

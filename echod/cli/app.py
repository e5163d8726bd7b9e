"""Run one command line in this process, and turn errors of the system into sentences.

Between two looks of a command anything may happen: a checkout removes the store, a disk fills, a link takes the place
of a directory. Most readers report that themselves. This is the boundary for the others, so that no such event is
reported as a bug of echod. A module of its own because `root` is the table of commands, and `main` is the process.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Final

from echod.errors import EchodError, ExitCode, os_reason
from echod.lazy import lazy_imports
from echod.log import get_logger

with lazy_imports(__name__):
    from echod.cli import root, search_screen

log = get_logger(__name__)

_VANISHED: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.ENODEV, errno.ENXIO})
_CALLERS_FAULTS: Final = frozenset({errno.EBADF, errno.EFAULT, errno.ENOSYS})
"""Errors of a program that uses the system wrongly. Those are bugs."""


class SystemFailureError(EchodError):
    """The operating system refused something that no part of the command expected."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code.

    Raises:
        EchodError: the command failed; its text is for the user.
    """
    try:
        code = _run_command(arguments)
        sys.stdout.flush()  # at exit the interpreter itself would complain
    except BrokenPipeError:
        raise
    except MemoryError as error:
        raise SystemFailureError("There is not enough memory for this command. Name fewer or smaller files.") from error
    except OSError as error:
        if _is_about_output(error):
            _discard_output()
            raise SystemFailureError(f"The output cannot be written: {os_reason(error)}.") from error
        if error.errno is None or error.errno in _CALLERS_FAULTS:
            raise
        log.exception("command_failed")
        raise SystemFailureError(_describe(error)) from error
    return code


def _run_command(arguments: Sequence[str]) -> int:
    is_search = arguments[:1] == ["search"] and "_ECHOD_COMPLETE" not in os.environ
    if is_search and search_screen.search_quickly(arguments[1:], os.environ):
        return ExitCode.OK
    return root.run_command_line(arguments)


def _is_about_output(error: OSError) -> bool:
    """Return whether an error is about standard output: the code that prints raised it, and it names no file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return error.filename is None and module.startswith(("click.", "echod.cli."))


def _discard_output() -> None:
    """Let the interpreter write what is left to nowhere, so that it does not complain at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _describe(error: OSError) -> str:
    subject = error.filename if isinstance(error.filename, str) else "A file"
    if error.errno in _VANISHED:
        return f"{subject} disappeared while the command ran. Nothing is lost; run the command again."
    return f"{subject} could not be used: {os_reason(error)}. Check it, and run the command again."

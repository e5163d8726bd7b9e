"""Ask the user's own command: a prompt on its standard input, its answer on its standard output.

The command comes from the user's settings alone. It runs without a shell, in an empty directory, with a time limit, and
what it prints is bounded. If it is an agent itself, it is asked to leave no transcript.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from echod.errors import os_reason

_POLL_SECONDS: Final = 0.05
_KILL_SECONDS: Final = 5.0
_WITHOUT_TRANSCRIPT: Final = {"CLAUDE_CODE_SKIP_PROMPT_HISTORY": "1", "ECHOD_SUMMARISING": "1"}
_NESTING_VARIABLES: Final = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION")


class UserCommandError(Exception):
    """The command failed. The message is half a sentence for a status."""


class UserCommand:
    """Runs the user's command.

    Args:
        command: the program and its arguments.
        seconds: how long it may take.
        environ: its environment.
        max_bytes: the most that it may print.
        on_wait: called while it runs, so that a slow command is not taken for a stuck job.
    """

    def __init__(
        self,
        command: Sequence[str],
        seconds: float,
        environ: Mapping[str, str],
        max_bytes: int,
        on_wait: Callable[[], None],
    ) -> None:
        self._command = tuple(command)
        self._seconds = seconds
        self._environ = {name: value for name, value in environ.items() if name not in _NESTING_VARIABLES}
        self._max_bytes = max_bytes
        self._on_wait = on_wait

    def __call__(self, prompt: str) -> str:
        """Return what the command prints.

        Raises:
            UserCommandError: it cannot be started, fails, prints too much or takes too long.
        """
        with (
            tempfile.TemporaryDirectory(prefix="echod-command-") as directory,
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as printed,
        ):
            given.write(prompt.encode())
            given.seek(0)
            try:
                process = subprocess.Popen(
                    self._command, stdin=given, stdout=printed, stderr=subprocess.DEVNULL, cwd=directory,
                    env={**self._environ, **_WITHOUT_TRANSCRIPT}, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise UserCommandError(f"it cannot be started: {os_reason(error)}") from error
            try:
                self._wait(process, printed.fileno())
            finally:
                _end(process)
            if process.returncode != 0:
                raise UserCommandError(f"it ended with {process.returncode}")
            printed.seek(0)
            return printed.read(self._max_bytes).decode("utf-8", "replace")

    def _wait(self, process: subprocess.Popen[bytes], printed: int) -> None:
        deadline = time.monotonic() + self._seconds
        while process.poll() is None:
            if time.monotonic() > deadline:
                raise UserCommandError(f"it took longer than {self._seconds:g} s")
            if os.fstat(printed).st_size > self._max_bytes:
                raise UserCommandError("it printed too much")
            self._on_wait()
            time.sleep(_POLL_SECONDS)
        if os.fstat(printed).st_size > self._max_bytes:
            raise UserCommandError("it printed too much")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command and everything that it started, if it still runs."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        try:
            process.wait(_KILL_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    process.wait()

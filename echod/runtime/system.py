"""Ask the operating system: free space, file system types and mounts, and processes; run the user's own command.

A file system type matters because the kernel reports no event for a change made by another machine. Where nothing is
known (macOS has no /proc), the functions return None or "" and claim nothing. A process is identified by its number and
its start, since numbers are used again. Loads nothing heavy where /proc exists, because `echod status` uses it.

The questions are read-only. Freed memory can be returned to the system. The user's own command gets a prompt on its
standard input and answers on its standard output. It comes from the user's settings alone. It runs without a shell, in
an empty directory, with a time limit, and its output is bounded. If it is an agent itself, it is asked to leave no
transcript.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from echod.errors import os_reason
from echod.lazy import lazy_imports, lazy_pattern

with lazy_imports(__name__):
    import ctypes
    import subprocess
    import tempfile

    import psutil

MIN_FREE_BYTES = 32 << 20
"""Below this, the blobs of one commit of the largest files may not fit any more."""

_REMOTE_TYPES = lazy_pattern(
    r"nfs4?|cifs|smb3?|smbfs|9p|fuse(\..+)?|drvfs|vboxsf|virtiofs|ceph|afs|ncpfs|prl_fs|vmhgfs"
)
_OCTAL_ESCAPE = lazy_pattern(r"\\([0-7]{3})")


def free_bytes(path: Path) -> int | None:
    """Return the bytes that this user may still write on the file system of `path`; None if unknown."""
    try:
        status = os.statvfs(path)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def has_free_space(path: Path) -> bool:
    """Return whether at least `MIN_FREE_BYTES` are free. True if that is unknown."""
    free = free_bytes(path)
    return free is None or free >= MIN_FREE_BYTES


def read_mounts() -> str:
    """Return the mount table of this process; "" where the platform has none."""
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def filesystem_type(path: Path, mounts: str) -> str | None:
    """Return the type of the file system of a path ("ext4", "nfs4", "fuse.sshfs"), or None if it is not known.

    The path is absolute and free of symlinks. proc_pid_mountinfo(5) describes the format of `mounts`.
    """
    nearest_mount, type_name = "", None
    for line in mounts.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split(" ")
        if not separator or len(fields) < 5:  # noqa: PLR2004  (the mount point is the fifth)
            continue
        mount_point = _OCTAL_ESCAPE.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
        below = str(path) == mount_point or str(path).startswith(mount_point.rstrip(os.sep) + os.sep)
        # A later mount on the same point covers the earlier one.
        if below and len(mount_point) >= len(nearest_mount):
            nearest_mount, type_name = mount_point, after.split(" ")[0]
    return type_name


def is_remote_filesystem(type_name: str | None) -> bool:
    """Return whether other machines may change files of this type without an event here, so that echod must poll."""
    return type_name is not None and _REMOTE_TYPES.fullmatch(type_name) is not None


_HAS_PROC = Path("/proc/self/stat").exists()


class RunningProcess(NamedTuple):
    """A process that exists. `started` identifies its start, even if the wall clock is changed; compared as text.

    If it is `suspended`, a signal stopped it (SIGSTOP, a terminal, a debugger), so it makes no progress.
    """

    pid: int
    started: str
    suspended: bool


def find_process(pid: int) -> RunningProcess | None:
    """Return the process with this number, or None. A zombie counts as no process."""
    return _find_in_proc(pid) if _HAS_PROC else _find_with_psutil(pid)


def _find_in_proc(pid: int) -> RunningProcess | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may itself contain spaces and parentheses: proc_pid_stat(5).
    fields = text.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    if state in "ZXx":
        return None
    return RunningProcess(pid, f"{_boot_id()}:{ticks}", suspended=state in "Tt")


def _boot_id() -> str:
    # Ticks since boot repeat after a reboot, and so do low process numbers.
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "boot"


def _find_with_psutil(pid: int) -> RunningProcess | None:
    try:
        process = psutil.Process(pid)
        status, started = process.status(), process.create_time()
    except psutil.Error:
        return None
    if status == psutil.STATUS_ZOMBIE:
        return None
    suspended = status in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP}
    return RunningProcess(pid, f"{started:.2f}", suspended)


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


def release_free_memory() -> None:
    """Return freed memory to the system. The C library of Linux keeps it otherwise; others do nothing."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

"""Write events to the spool: one file for each event, written atomically, bounded in number and size.

A file contains the event exactly as it arrived. Everything else is in the file's name, so that neither writing nor
counting has to parse anything:

    {time in ns, 20 digits}-{size in bytes, 7 hex digits}-{pid}.{event}.json

Names sort by time. Events that could not be spooled are counted in `.dropped`, one letter for each.

`state_directory` returns the same as `echod.paths`, without its imports; a test compares the two. Settings are never
read, so the hook and the daemon cannot disagree.
"""

from __future__ import annotations

import os
import stat

MAX_EVENT_BYTES = 1024 * 1024
MAX_EVENTS = 4096
MAX_SPOOL_BYTES = 64 * 1024 * 1024
"""The most that accumulates while no daemon runs: two months of a busy project."""

PRIVATE_DIR_MODE = 0o700
PRIVATE_FILE_MODE = 0o600
DROPPED_FILE = ".dropped"
PARTIAL_SUFFIX = ".part"
MAX_DROPPED_COUNT = 64 * 1024
_SIZE_SLICE = slice(21, 28)

FULL, TOO_LARGE, EMPTY, NOT_WRITTEN, UNKNOWN = "f", "l", "e", "w", "u"
"""Why an event was dropped: the letters of `.dropped`."""


def write_event(spool: str, event: str, data: bytes, now_ns: int, pid: int) -> bool:
    """Write an event to the spool. Return False if it was dropped and counted.

    Args:
        spool: the spool directory, created if it does not exist.
        event: the event's name, one of `echod.hooks.run.EVENTS`.
        data: the event as it arrived.
        now_ns: Unix time in nanoseconds.
        pid: this process, to distinguish hooks that run in the same nanosecond.

    Raises:
        OSError: the spool cannot be listed or created; nothing was written.
    """
    if _is_full(_list_names(spool), len(data)):
        return count_dropped(spool, FULL)
    name = f"{now_ns:020d}-{len(data):07x}-{pid}.{event}.json"
    partial = os.path.join(spool, f".{name}{PARTIAL_SUFFIX}")
    try:
        _write_new_file(partial, data)
        os.rename(partial, os.path.join(spool, name))
    except OSError as error:
        if not isinstance(error, FileExistsError):  # an existing file belongs to another hook
            _unlink_if_possible(partial)
        return count_dropped(spool, NOT_WRITTEN)
    return True


def count_dropped(spool: str, reason: str) -> bool:
    """Count an event that is not spooled. Always return False.

    Raises:
        OSError: the count cannot be written either.
    """
    _ensure_directory(spool)
    # One appended byte each: no two hooks can damage each other's count, and the file's size bounds the count.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # never waits
    counter = os.open(os.path.join(spool, DROPPED_FILE), flags, PRIVATE_FILE_MODE)
    try:
        status = os.fstat(counter)
        if stat.S_ISREG(status.st_mode) and status.st_size < MAX_DROPPED_COUNT:
            os.write(counter, reason.encode())
    finally:
        os.close(counter)
    return False


def _list_names(spool: str) -> list[str]:
    try:
        return os.listdir(spool)
    except FileNotFoundError:
        _ensure_directory(spool)
        return []


def _ensure_directory(spool: str) -> None:
    missing = []
    while not os.path.isdir(spool):
        missing.append(spool)
        spool = os.path.dirname(spool)
    for directory in reversed(missing):  # one by one, because makedirs leaves the mode of those above to the umask
        try:
            os.mkdir(directory, PRIVATE_DIR_MODE)
        except FileExistsError:
            continue


def _is_full(names: list[str], new_bytes: int) -> bool:
    if len(names) >= MAX_EVENTS:
        return True
    if (len(names) + 1) * MAX_EVENT_BYTES <= MAX_SPOOL_BYTES:
        return False
    return new_bytes + sum(int(name[_SIZE_SLICE], 16) for name in names if name[0] != ".") > MAX_SPOOL_BYTES


def _write_new_file(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
    try:
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
    finally:
        os.close(descriptor)


def _unlink_if_possible(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


TYPE_CHECKING = False  # typing itself takes longer to import than a hook may run
if TYPE_CHECKING:
    from collections.abc import Mapping

APP_NAME = "echod"
_MACOS_STATE_HOME = "Library/Application Support"
_XDG_STATE_HOME = ".local/state"


def state_directory(environ: Mapping[str, str], platform: str) -> str:
    """Return the absolute path of the state directory.

    Args:
        environ: the process environment.
        platform: `sys.platform`.

    Raises:
        ValueError: `ECHOD_STATE_DIR` is not an absolute path, so there is no state directory.
        KeyError: the user has no home directory.
    """
    configured = environ.get("ECHOD_STATE_DIR", "")
    if configured:
        path = os.path.expanduser(configured)
        if not os.path.isabs(path):
            raise ValueError(configured)
        return path
    xdg = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(xdg):
        return os.path.join(xdg, APP_NAME)
    return os.path.join(_home(environ), _MACOS_STATE_HOME if platform == "darwin" else _XDG_STATE_HOME, APP_NAME)


def _home(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    import pwd

    return pwd.getpwuid(os.getuid()).pw_dir

"""The spool: one file for each event that a hook was told, written in one step, bounded in number and size.

A file holds the event exactly as it came; everything else is in its name, so that neither writing nor counting has
to parse anything:

    {time in ns, 20 digits}-{size in bytes, 7 hex digits}-{pid}.{event}.json

Names sort by time. What could not be spooled is counted in `.dropped`, one letter for each.
"""

from __future__ import annotations

import os

LARGEST_EVENT_BYTES = 1024 * 1024
MOST_EVENTS = 4096
MOST_BYTES = 64 * 1024 * 1024
"""What a dead daemon may find at most when it comes back: two months of a busy project."""

PRIVATE_DIR = 0o700
PRIVATE_FILE = 0o600
DROPPED = ".dropped"
UNFINISHED = ".part"
LARGEST_COUNT = 64 * 1024
_SIZE = slice(21, 28)

FULL, TOO_LARGE, EMPTY, NOT_WRITTEN, UNKNOWN = "f", "l", "e", "w", "u"
"""Why an event was dropped: the letters of `.dropped`."""


def write(spool: str, event: str, data: bytes, now_ns: int, pid: int) -> bool:
    """Put an event into the spool; False if it was dropped and counted.

    Args:
        spool: the spool directory, made if need be.
        event: the event's name, one of those in `echod.hooks.run`.
        data: what the hook was told.
        now_ns: Unix time in nanoseconds.
        pid: this process, to tell hooks apart that run in the same nanosecond.

    Raises:
        OSError: the spool cannot be listed or made; nothing was written.
    """
    if _full(_names(spool), len(data)):
        return drop(spool, FULL)
    name = f"{now_ns:020d}-{len(data):07x}-{pid}.{event}.json"
    unfinished = os.path.join(spool, f".{name}{UNFINISHED}")
    try:
        _write(unfinished, data)
        os.rename(unfinished, os.path.join(spool, name))
    except OSError as error:
        if not isinstance(error, FileExistsError):  # then it is another hook's
            _remove(unfinished)
        return drop(spool, NOT_WRITTEN)
    return True


def drop(spool: str, why: str) -> bool:
    """Count an event that is not spooled; always False.

    Raises:
        OSError: even that cannot be written.
    """
    _make(spool)
    # One appended byte each: no two hooks can spoil each other's count, and the file's bound is that of the count.
    counter = os.open(os.path.join(spool, DROPPED), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        if os.fstat(counter).st_size < LARGEST_COUNT:
            os.write(counter, why.encode())
    finally:
        os.close(counter)
    return False


def _names(spool: str) -> list[str]:
    try:
        return os.listdir(spool)
    except FileNotFoundError:
        _make(spool)
        return []


def _make(spool: str) -> None:
    if not os.path.isdir(spool):
        os.makedirs(os.path.dirname(spool), PRIVATE_DIR, exist_ok=True)
        os.makedirs(spool, PRIVATE_DIR, exist_ok=True)


def _full(names: list[str], more: int) -> bool:
    if len(names) >= MOST_EVENTS:
        return True
    if (len(names) + 1) * LARGEST_EVENT_BYTES <= MOST_BYTES:
        return False
    return more + sum(int(name[_SIZE], 16) for name in names if name[0] != ".") > MOST_BYTES


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return

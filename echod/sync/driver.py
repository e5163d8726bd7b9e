"""The merge driver: merge one memory file of git's by entry, and write the result over "our" version.

Git calls it as `echod merge-driver %O %A %B %L %P` in a merge, rebase, cherry-pick or stash, and shows what it leaves
in %A. Nothing else is written or read: no index, database, service or settings. Exit code 0 is merged, 1 a conflict
with markers in the file, and 2 that nothing was done, on which the registered command lets git merge by line.
"""

from __future__ import annotations

import os
import sys
from typing import Final, NamedTuple

from echod.lazy import lazy_imports
from echod.memory.branches import MergedBranches, merge_branches, unite_archives
from echod.memory.merge import MergeFailure

with lazy_imports(__name__):
    import subprocess

DEFAULT_MARKER_SIZE: Final = 7
"""The length of conflict markers unless an attribute changes it. Git adds to it for a base that it makes of several."""

MERGED, CONFLICT, NOT_MERGED = 0, 1, 2
_ARGUMENTS = 5
_GIT_TIMEOUT_SECONDS = 10.0


class DriverCall(NamedTuple):
    """The arguments of a call: the files of the three versions, the length of markers, and the path in the tree."""

    base: str
    ours: str
    theirs: str
    marker_size: int
    path: str


def main(arguments: list[str]) -> int:
    """Merge as `arguments` say, and return the exit code. A problem is one sentence on standard error."""
    call = parse_call(arguments)
    if call is None:
        print("echod merge-driver is called by git with %O %A %B %L %P. See: echod sync setup", file=sys.stderr)  # noqa: T201  git shows it
        return NOT_MERGED
    try:
        return run(call)
    except OSError as error:
        print(f"echod: {call.path} is left to git: {error.strerror}.", file=sys.stderr)  # noqa: T201
        return NOT_MERGED


def parse_call(arguments: list[str]) -> DriverCall | None:
    """Return the call, or None for wrong arguments. Further arguments (labels of newer gits) are ignored."""
    if len(arguments) < _ARGUMENTS or not arguments[3].isdecimal():
        return None
    base, ours, theirs, size, path = arguments[:_ARGUMENTS]
    return DriverCall(base, ours, theirs, max(1, int(size)), path)


def run(call: DriverCall) -> int:
    """Merge the files of a call, write the result to `ours`, and return the exit code.

    Raises:
        OSError: a file cannot be read or written.
    """
    base, ours, theirs = (_read(path) for path in (call.base, call.ours, call.theirs))
    if is_archive(call.path):
        _write(call.ours, unite_archives(ours, theirs))
        return MERGED
    merged = merge_branches(base, ours, theirs)
    if isinstance(merged, MergeFailure):
        print(f"echod: {call.path} is merged by line. {merged.reason}", file=sys.stderr)  # noqa: T201
        return NOT_MERGED
    return _write_merged(call, merged)


def is_archive(path: str) -> bool:
    """Return whether a path in the tree is an archive of entries, which only grows."""
    directory, _, name = path.rpartition("/")
    return directory.endswith("/archive") and name.startswith(("pruned-", "removed-"))


def _write_merged(call: DriverCall, merged: MergedBranches) -> int:
    if not merged.conflicts:
        _write(call.ours, merged.with_markers(call.marker_size))
        return MERGED
    if call.marker_size > DEFAULT_MARKER_SIZE and call.marker_size > _configured_marker_size(call.path):
        # Markers in a base would become entries of the result.
        _write(call.ours, merged.as_base())
        return MERGED
    _write(call.ours, merged.with_markers(call.marker_size))
    return CONFLICT


def _configured_marker_size(path: str) -> int:
    """Return the length of markers that the attributes ask for at a path."""
    command = ("git", "check-attr", "-z", "conflict-marker-size", "--", path)
    try:
        done = subprocess.run(command, capture_output=True, timeout=_GIT_TIMEOUT_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return sys.maxsize  # unknown, so that no edit is decided without the user
    value = done.stdout.rstrip(b"\0").rpartition(b"\0")[2]
    return int(value) if value.isdigit() else DEFAULT_MARKER_SIZE


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123  pathlib takes longer to import than the merge
        return file.read()


def _write(path: str, data: bytes) -> None:
    """Replace the content of git's own temporary file in place, since git knows it by its name."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)

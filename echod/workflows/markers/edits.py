"""Who touched the memory last: changes of memory and knowledge files, and editors that have one of them open."""

from __future__ import annotations

import os
import re
import stat
from string import ascii_lowercase
from typing import TYPE_CHECKING

from echod.workflows import files
from echod.workflows.model import NOBODY, Change, Editor, Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from echod.workflows.model import Processes

WATCHED = frozenset({"MEMORY.md", "knowledge.md"})
_ROLE = re.compile(r"[A-Za-z0-9_-]{1,128}")
_EDITED = r"(?P<edits>MEMORY\.md|knowledge\.md)"
_VIM = re.compile(rf"\.{_EDITED}\.sw[a-z]")  # nano writes the same
_EMACS = re.compile(rf"\.#{_EDITED}")
# Kate's and LibreOffice's say nothing about their process. A backup (`MEMORY.md~`) is no lock: it stays behind.
_OTHERS = (re.compile(rf"\.{_EDITED}\.kate-swp"), re.compile(rf"\.~lock\.{_EDITED}#"))
# Looked for by name: a role may hold very many files, and the gate is asked often.
_LOCKS = tuple(
    lock
    for name in sorted(WATCHED)
    for lock in (
        f".#{name}",
        *(f".{name}.sw{letter}" for letter in ascii_lowercase),
        f".{name}.kate-swp",
        f".~lock.{name}#",
    )
)
_EMACS_TARGET = re.compile(r".*@(?P<host>.+)\.(?P<pid>[0-9]+)(?::[0-9]+)?", re.DOTALL)
_VIM_HEADER = 108
_VIM_PID = slice(24, 28)
_VIM_HOST = slice(68, 108)


def read(
    project: Path, stores: Sequence[Path], since: float, own_write: Callable[[Path], int | None], processes: Processes
) -> tuple[tuple[Change, ...], tuple[Editor, ...]]:
    """Changes and editors in the roles of the stores.

    Args:
        project: the project's root, for the names shown.
        stores: the stores' directories.
        since: what changed before (Unix seconds) is left out.
        own_write: the modification time (nanoseconds) that our own last write left on a path; such a state of the
            file is nobody else's change.
        processes: the table of processes.
    """
    changes: list[Change] = []
    editors: list[Editor] = []
    for store in stores:
        for role in files.names_in(store, _is_role).names:
            directory = store / role
            for name in files.present_in(directory, (*sorted(WATCHED), *_LOCKS)):
                path = directory / name
                if name in WATCHED:
                    changes.extend(_change(path, project, since, own_write))
                else:
                    editors.extend(_editor(path, project, processes))
    return tuple(changes), tuple(editors)


def _is_role(name: str) -> bool:
    return _ROLE.fullmatch(name) is not None


def edited_by(name: str) -> str | None:
    """The file that a lock or swap file of this name says is being edited, None if it is neither."""
    for pattern in (_VIM, _EMACS, *_OTHERS):
        match = pattern.fullmatch(name)
        if match:
            return match["edits"]
    return None


def _change(path: Path, project: Path, since: float, own_write: Callable[[Path], int | None]) -> tuple[Change, ...]:
    status = files.look(path)
    if status is None or not stat.S_ISREG(status.st_mode):
        return ()
    at = files.time_of(status)
    # Most files are older, and to know what we wrote costs as much as the look.
    if at < since or own_write(path) == status.st_mtime_ns:
        return ()
    return (Change(files.relative(path, project), at),)


def _editor(path: Path, project: Path, processes: Processes) -> tuple[Editor, ...]:
    status = files.look(path)
    if status is None or not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        return ()
    edits = edited_by(path.name) or path.name
    host, number = _emacs_holder(path) if _EMACS.fullmatch(path.name) else _vim_holder(path)
    # A process number means something on its own host only.
    owner = NOBODY if number is None or host != os.uname().nodename else Owner(number, processes.look(number))
    return (Editor(files.relative(path, project), edits, files.time_of(status), owner),)


def _emacs_holder(path: Path) -> tuple[str, int | None]:
    """Emacs' lock is a link to nothing: `user@host.pid:boot`. Its text is read, it is not followed."""
    try:
        target = str(path.readlink())
    except OSError:
        return "", None
    match = _EMACS_TARGET.fullmatch(target)
    return (match["host"], files.pid(match["pid"])) if match else ("", None)


def _vim_holder(path: Path) -> tuple[str, int | None]:
    """Vim's first block: "b0", and at fixed places the process number (little endian) and the host's name."""
    found = files.read(path, _VIM_HEADER)
    if found is None or found.data is None or len(found.data) < _VIM_HEADER or not found.data.startswith(b"b0"):
        return "", None
    host = found.data[_VIM_HOST].partition(b"\0")[0].decode(errors="replace")
    return host, files.pid(int.from_bytes(found.data[_VIM_PID], "little"))

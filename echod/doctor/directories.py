"""echod's own two directories: are they there, private, ours, local, and is there room?"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from echod.contract.doctor import Check
from echod.daemon.room import LEAST_FREE_BYTES, free_bytes
from echod.doctor.case import Case, command, fine, note, problem
from echod.errors import reason_of
from echod.runtime.disk import kind_of, misses_remote_changes

_OTHERS = 0o077
_MIB = 1 << 20


def check_directories(case: Case) -> Iterator[Check]:
    """The state and the runtime directory."""
    yield from _directory(case, "state", case.paths.state)
    yield from _directory(case, "runtime", case.paths.runtime)


def _directory(case: Case, name: str, path: Path) -> Iterator[Check]:
    code = f"{name}-directory"
    try:
        status = path.stat()
    except FileNotFoundError:
        yield note(code, f"There is no {name} directory yet; the first start makes it.", "", path)
        return
    except OSError as error:
        yield problem(code, f"The {name} directory cannot be looked at: {reason_of(error)}.", _set(name), path)
        return
    found = list(_wrong(case, name, path, status))
    yield from found
    if not found:
        kind = kind_of(Path(os.path.realpath(path)), case.mounts)
        where = f", on {kind}" if kind else ""
        yield fine(code, f"The {name} directory is private and writable{where}.", path)


def _wrong(case: Case, name: str, path: Path, status: os.stat_result) -> Iterator[Check]:
    code = f"{name}-directory"
    if not stat.S_ISDIR(status.st_mode):
        yield problem(code, f"Something else stands where the {name} directory should.", _set(name), path)
        return
    if status.st_uid != case.uid:
        yield problem(code, f"The {name} directory belongs to another user.", _set(name), path)
    if status.st_mode & _OTHERS:
        yield problem(code, f"Other users may look into the {name} directory.", command("chmod", 700, path), path)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield problem(code, f"The {name} directory cannot be read or written.", command("chmod", 700, path), path)
    kind = kind_of(Path(os.path.realpath(path)), case.mounts)
    if misses_remote_changes(kind):
        text = f"The {name} directory is on {kind}, where locks and the database cannot be relied upon."
        yield problem(code, text, _set(name), path)
    free = free_bytes(path)
    if free is not None and free < LEAST_FREE_BYTES:
        text = f"Only {free // _MIB} MiB are free where the {name} directory is."
        yield problem("disk-full", text, "Free some space; echod goes on by itself then.", path)


def _set(name: str) -> str:
    return f"Mend it, or set ECHOD_{name.upper()}_DIR to a local directory of your own and install the service again."

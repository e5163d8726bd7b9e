"""What the service works with: settings, database, the daemon itself, and the kernel's limits for watching.

Which echod is this, does the shell find the same one, and who starts the service?

echod's own two directories: are they there, private, ours, local, and is there room?
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform as python_platform
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from echod.contract.commands import Check
from echod.doctor.case import Case, command, fine, note, problem
from echod.errors import ConfigurationError, StateError, reason_of
from echod.runtime.disk import LEAST_FREE_BYTES, free_bytes, kind_of, misses_remote_changes
from echod.runtime.heartbeat import State, observe
from echod.service.base import ServiceError, record
from echod.service.choose import service_for
from echod.service.paths import how_to_help, how_to_restart
from echod.settings import loader
from echod.state import repair
from echod.state.database import Database
from echod.state.errors import DatabaseDamagedError
from echod.state.repair import damaged_copies
from echod.store.layout import Store
from echod.workflows import marker_directories


def check_installation(case: Case) -> Iterator[Check]:
    """The version, the command on the PATH, and the service."""
    yield fine("version", f"echod {case.version}, Python {python_platform.python_version()}.", case.python)
    yield _command(case)
    yield from _service(case)


def _command(case: Case) -> Check:
    ours = case.python.parent / "echod"
    found = shutil.which("echod", path=case.environ.get("PATH", ""))
    if found is None:
        return note(
            "command",
            "No echod is on the PATH, so other shells and the hooks of agents do not find it.",
            f"Put {case.python.parent} on the PATH, or link {ours} into a directory that is.",
        )
    if ours.exists() and os.path.realpath(found) != os.path.realpath(ours):
        return problem(
            "command",
            f"The echod on the PATH is another installation than this one ({ours}).",
            "Remove one of the two, or put the right one first on the PATH.",
            Path(found),
        )
    return fine("command", "It is the echod that the PATH leads to.", Path(found))


def _service(case: Case) -> Iterator[Check]:
    try:
        service = service_for(case.platform, case.paths, case.version, case.environ)
        standing = service.standing(record(case.python, case.environ))
    except ServiceError as error:
        yield note("service", str(error))
        return
    if not standing.installed:
        yield note(
            "service",
            "The service is not installed, so nothing starts echod at login.",
            "Install it with: echod service install; or let another supervisor run: echod run",
        )
        return
    if not standing.current:
        yield problem(
            "service-outdated",
            "The service file is not what this installation would write: echod was moved or upgraded, its environment "
            "changed, or somebody edited the file.",
            "Renew it with: echod service install",
            standing.file,
        )
    if standing.active is None:
        yield note("service", f"Nobody says whether the service runs. {standing.detail}", "", standing.file)
    elif not standing.active:
        yield problem(
            "service-inactive",
            f"The service is installed but does not run ({standing.detail}).",
            "Start it with: echod service start; see why it ended with: echod service logs",
            standing.file,
        )
    elif standing.current:
        yield fine("service", "The service is installed, up to date and runs.", standing.file)


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


_INOTIFY = Path("/proc/sys/fs/inotify")
_OWN_WATCHES = 8
"""The canary, the state directory, the spool, and the ancestors of what does not exist yet."""

_AMPLE = 4
"""Other programs of the user share the limit."""


def check_settings(case: Case) -> Iterator[Check]:
    """The settings file and the variables."""
    try:
        loader.load(case.paths.config_file, case.environ)
    except ConfigurationError as error:
        yield problem("settings", str(error), "Correct that; the service does not start with it.")
    else:
        there = case.paths.config_file.exists()
        yield fine("settings", "The settings are valid." if there else "There is no settings file; defaults hold.")
    for warning in loader.unknown_variables(case.environ):
        yield note("settings-unknown", warning, "Unset it, or correct its name.")


def check_database(case: Case) -> Iterator[Check]:
    """Whether the database can be read and is sound."""
    try:
        database = Database.open_reading(case.paths.database)
        if database is None:
            yield note("database", "Nothing was recorded yet; the first start makes the database.")
        else:
            with database:
                repair.check(database)
            yield fine("database", "The state database is sound.", case.paths.database)
    except DatabaseDamagedError as error:
        yield problem("database", str(error), _start_anew(case), case.paths.database)
    except StateError as error:
        yield problem("database", str(error), "", case.paths.database)
    for copy in damaged_copies(case.paths.database):
        yield note(
            "database-copies",
            "A damaged database was moved aside here.",
            f"Delete it if nobody needs it: {command('rm', copy)}",
            copy,
        )


def _start_anew(case: Case) -> str:
    try:
        live = observe(case.paths, case.version, case.monotonic)
    except OSError:
        return ""  # told by `check_daemon`
    return how_to_restart(live, case.platform, case.environ)


def check_daemon(case: Case) -> Iterator[Check]:
    """Whether the daemon answers."""
    try:
        live = observe(case.paths, case.version, case.monotonic)
    except OSError as error:
        yield problem("daemon", f"{error.filename} cannot be read: {error.strerror}.", "Make it yours, or delete it.")
        return
    if live.state is State.RUNNING:
        yield fine("daemon", f"The daemon runs as process {live.pid} and makes progress.")
    elif live.state is State.STARTING:
        yield note("daemon", live.text, how_to_help(live, case.platform, case.environ))
    else:
        yield problem("daemon", live.text, how_to_help(live, case.platform, case.environ))


def check_watching(case: Case, stores: Iterable[Store]) -> Iterator[Check]:
    """Whether the kernel lets this user watch all that has to be watched."""
    if case.platform != "linux":
        return
    if (refused := _no_instance()) is not None:
        yield problem(
            "inotify-instances",
            f"The kernel gives no more inotify instances to this user ({refused}), so changes are found late.",
            "Raise the limit: sysctl fs.inotify.max_user_instances=512 (as root; keep it in /etc/sysctl.d)",
        )
    try:
        limit = int((_INOTIFY / "max_user_watches").read_text(encoding="ascii"))
    except (OSError, ValueError):
        yield note("inotify-watches", "The kernel does not tell how many directories may be watched.")
        return
    need = _needed(stores)
    said = f"{need} directories are to be watched, of {limit} that the kernel allows this user."
    how = f"Raise the limit: sysctl fs.inotify.max_user_watches={max(524_288, need * _AMPLE)} (as root)"
    if need > limit:
        yield problem("inotify-watches", said, how)
    elif need * _AMPLE > limit:
        yield note("inotify-watches", f"{said} Editors share this limit.", how)
    else:
        yield fine("inotify-watches", said)


def _needed(stores: Iterable[Store]) -> int:
    found = tuple(stores)
    markers = {place for project in {store.project for store in found} for place in marker_directories(project)}
    below = sum(1 for store in found for _ in os.walk(store.root))
    return below + len(markers) + _OWN_WATCHES


def _no_instance() -> str | None:
    """Why no further inotify instance is to be had, in words; None if one is."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_CLOEXEC)
    if descriptor >= 0:
        os.close(descriptor)
        return None
    code = ctypes.get_errno()
    return None if code == errno.ENOSYS else os.strerror(code).lower()

"""What the service works with: settings, database, the daemon itself, and the kernel's limits for watching."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from echod.contract.doctor import Check
from echod.daemon.alive import observe
from echod.doctor.case import Case, command, fine, note, problem
from echod.errors import ConfigurationError, StateError
from echod.runtime.heartbeat import State
from echod.service.paths import how_to_help, how_to_restart
from echod.settings import loader as config
from echod.state import repair as rescue
from echod.state.damaged import damaged_copies
from echod.state.database import Database
from echod.state.errors import DatabaseDamagedError
from echod.store.layout import Store
from echod.workflows import marker_directories

_INOTIFY = Path("/proc/sys/fs/inotify")
_OWN_WATCHES = 8
"""The canary, the state directory, the spool, and the ancestors of what does not exist yet."""

_AMPLE = 4
"""Other programs of the user share the limit."""


def check_settings(case: Case) -> Iterator[Check]:
    """The settings file and the variables."""
    try:
        config.load(case.paths.config_file, case.environ)
    except ConfigurationError as error:
        yield problem("settings", str(error), "Correct that; the service does not start with it.")
    else:
        there = case.paths.config_file.exists()
        yield fine("settings", "The settings are valid." if there else "There is no settings file; defaults hold.")
    for warning in config.unknown_variables(case.environ):
        yield note("settings-unknown", warning, "Unset it, or correct its name.")


def check_database(case: Case) -> Iterator[Check]:
    """Whether the database can be read and is sound."""
    try:
        database = Database.open_reading(case.paths.database)
        if database is None:
            yield note("database", "Nothing was recorded yet; the first start makes the database.")
        else:
            with database:
                rescue.check(database)
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

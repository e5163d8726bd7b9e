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
from echod.doctor.case import DoctorContext, command_line, note, passed, problem
from echod.errors import ConfigurationError, StateError, os_reason
from echod.runtime.disk import MIN_FREE_BYTES, filesystem_type, free_bytes, is_remote_filesystem
from echod.runtime.heartbeat import DaemonState, read_liveness
from echod.service.base import ServiceError, build_service_config
from echod.service.choose import create_service
from echod.service.paths import recovery_hint, restart_hint
from echod.settings import loader
from echod.settings.effective import unknown_variable_warnings
from echod.state import repair
from echod.state.database import Database
from echod.state.errors import DatabaseDamagedError
from echod.state.repair import list_damaged_copies
from echod.store.layout import Store
from echod.workflows import marker_directories


def check_installation(context: DoctorContext) -> Iterator[Check]:
    """The version, the command on the PATH, and the service."""
    yield passed("version", f"echod {context.version}, Python {python_platform.python_version()}.", context.python)
    yield _check_command(context)
    yield from _check_service(context)


def _check_command(context: DoctorContext) -> Check:
    own_script = context.python.parent / "echod"
    found_script = shutil.which("echod", path=context.environ.get("PATH", ""))
    if found_script is None:
        return note(
            "command",
            "No echod is on the PATH, so other shells and the hooks of agents do not find it.",
            f"Put {context.python.parent} on the PATH, or link {own_script} into a directory that is.",
        )
    if own_script.exists() and os.path.realpath(found_script) != os.path.realpath(own_script):
        return problem(
            "command",
            f"The echod on the PATH is another installation than this one ({own_script}).",
            "Remove one of the two, or put the right one first on the PATH.",
            Path(found_script),
        )
    return passed("command", "It is the echod that the PATH leads to.", Path(found_script))


def _check_service(context: DoctorContext) -> Iterator[Check]:
    try:
        service = create_service(context.platform, context.paths, context.version, context.environ)
        state = service.read_state(build_service_config(context.python, context.environ))
    except ServiceError as error:
        yield note("service", str(error))
        return
    if not state.installed:
        yield note(
            "service",
            "The service is not installed, so nothing starts echod at login.",
            "Install it with: echod service install; or let another supervisor run: echod run",
        )
        return
    if not state.up_to_date:
        yield problem(
            "service-outdated",
            "The service file is not what this installation would write: echod was moved or upgraded, its environment "
            "changed, or somebody edited the file.",
            "Renew it with: echod service install",
            state.file,
        )
    if state.active is None:
        yield note("service", f"Nobody says whether the service runs. {state.detail}", "", state.file)
    elif not state.active:
        yield problem(
            "service-inactive",
            f"The service is installed but does not run ({state.detail}).",
            "Start it with: echod service start; see why it ended with: echod service logs",
            state.file,
        )
    elif state.up_to_date:
        yield passed("service", "The service is installed, up to date and runs.", state.file)


_OTHERS_MASK = 0o077
_MIB = 1 << 20


def check_directories(context: DoctorContext) -> Iterator[Check]:
    """The state and the runtime directory."""
    yield from _check_directory(context, "state", context.paths.state)
    yield from _check_directory(context, "runtime", context.paths.runtime)


def _check_directory(context: DoctorContext, name: str, path: Path) -> Iterator[Check]:
    code = f"{name}-directory"
    try:
        status = path.stat()
    except FileNotFoundError:
        yield note(code, f"There is no {name} directory yet; the first start makes it.", "", path)
        return
    except OSError as error:
        yield problem(
            code, f"The {name} directory cannot be looked at: {os_reason(error)}.", _directory_fix(name), path
        )
        return
    problems = list(_directory_problems(context, name, path, status))
    yield from problems
    if not problems:
        type_name = filesystem_type(Path(os.path.realpath(path)), context.mounts)
        location = f", on {type_name}" if type_name else ""
        yield passed(code, f"The {name} directory is private and writable{location}.", path)


def _directory_problems(context: DoctorContext, name: str, path: Path, status: os.stat_result) -> Iterator[Check]:
    code = f"{name}-directory"
    if not stat.S_ISDIR(status.st_mode):
        yield problem(code, f"Something else stands where the {name} directory should.", _directory_fix(name), path)
        return
    if status.st_uid != context.uid:
        yield problem(code, f"The {name} directory belongs to another user.", _directory_fix(name), path)
    if status.st_mode & _OTHERS_MASK:
        yield problem(code, f"Other users may look into the {name} directory.", command_line("chmod", 700, path), path)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield problem(code, f"The {name} directory cannot be read or written.", command_line("chmod", 700, path), path)
    type_name = filesystem_type(Path(os.path.realpath(path)), context.mounts)
    if is_remote_filesystem(type_name):
        text = f"The {name} directory is on {type_name}, where locks and the database cannot be relied upon."
        yield problem(code, text, _directory_fix(name), path)
    free = free_bytes(path)
    if free is not None and free < MIN_FREE_BYTES:
        text = f"Only {free // _MIB} MiB are free where the {name} directory is."
        yield problem("disk-full", text, "Free some space; echod goes on by itself then.", path)


def _directory_fix(name: str) -> str:
    return f"Mend it, or set ECHOD_{name.upper()}_DIR to a local directory of your own and install the service again."


_INOTIFY = Path("/proc/sys/fs/inotify")
_OWN_WATCH_COUNT = 8
"""The canary, the state directory, the spool, and the ancestors of what does not exist yet."""

_WATCH_HEADROOM = 4
"""Other programs of the user share the limit."""


def check_settings(context: DoctorContext) -> Iterator[Check]:
    """The settings file and the variables."""
    try:
        loader.load_settings(context.paths.config_file, context.environ)
    except ConfigurationError as error:
        yield problem("settings", str(error), "Correct that; the service does not start with it.")
    else:
        file_exists = context.paths.config_file.exists()
        yield passed(
            "settings", "The settings are valid." if file_exists else "There is no settings file; defaults hold."
        )
    for warning in unknown_variable_warnings(context.environ):
        yield note("settings-unknown", warning, "Unset it, or correct its name.")


def check_database(context: DoctorContext) -> Iterator[Check]:
    """Whether the database can be read and is sound."""
    try:
        database = Database.open_readonly(context.paths.database)
        if database is None:
            yield note("database", "Nothing was recorded yet; the first start makes the database.")
        else:
            with database:
                repair.check_integrity(database)
            yield passed("database", "The state database is sound.", context.paths.database)
    except DatabaseDamagedError as error:
        yield problem("database", str(error), _restart_fix(context), context.paths.database)
    except StateError as error:
        yield problem("database", str(error), "", context.paths.database)
    for copy in list_damaged_copies(context.paths.database):
        yield note(
            "database-copies",
            "A damaged database was moved aside here.",
            f"Delete it if nobody needs it: {command_line('rm', copy)}",
            copy,
        )


def _restart_fix(context: DoctorContext) -> str:
    try:
        liveness = read_liveness(context.paths, context.version, context.monotonic)
    except OSError:
        return ""  # told by `check_daemon`
    return restart_hint(liveness, context.platform, context.environ)


def check_daemon(context: DoctorContext) -> Iterator[Check]:
    """Whether the daemon answers."""
    try:
        liveness = read_liveness(context.paths, context.version, context.monotonic)
    except OSError as error:
        yield problem("daemon", f"{error.filename} cannot be read: {error.strerror}.", "Make it yours, or delete it.")
        return
    if liveness.state is DaemonState.RUNNING:
        yield passed("daemon", f"The daemon runs as process {liveness.pid} and makes progress.")
    elif liveness.state is DaemonState.STARTING:
        yield note("daemon", liveness.text, recovery_hint(liveness, context.platform, context.environ))
    else:
        yield problem("daemon", liveness.text, recovery_hint(liveness, context.platform, context.environ))


def check_watching(context: DoctorContext, stores: Iterable[Store]) -> Iterator[Check]:
    """Whether the kernel lets this user watch all that has to be watched."""
    if context.platform != "linux":
        return
    if (refused := _inotify_instance_error()) is not None:
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
    needed = _count_needed_watches(stores)
    text = f"{needed} directories are to be watched, of {limit} that the kernel allows this user."
    fix = f"Raise the limit: sysctl fs.inotify.max_user_watches={max(524_288, needed * _WATCH_HEADROOM)} (as root)"
    if needed > limit:
        yield problem("inotify-watches", text, fix)
    elif needed * _WATCH_HEADROOM > limit:
        yield note("inotify-watches", f"{text} Editors share this limit.", fix)
    else:
        yield passed("inotify-watches", text)


def _count_needed_watches(stores: Iterable[Store]) -> int:
    listed_stores = tuple(stores)
    markers = {place for project in {store.project for store in listed_stores} for place in marker_directories(project)}
    directories = sum(1 for store in listed_stores for _ in os.walk(store.root))
    return directories + len(markers) + _OWN_WATCH_COUNT


def _inotify_instance_error() -> str | None:
    """Why no further inotify instance is to be had, in words; None if one is."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_CLOEXEC)
    if descriptor >= 0:
        os.close(descriptor)
        return None
    code = ctypes.get_errno()
    return None if code == errno.ENOSYS else os.strerror(code).lower()

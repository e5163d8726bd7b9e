"""Check this machine: installation, service, directories, settings, database, daemon, and programs that files name."""

from __future__ import annotations

import ctypes
import errno
import os
import platform as python_platform
import plistlib
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from echod.contract.commands import Check, CheckResult
from echod.errors import ConfigurationError, EchodError, StateError, os_reason
from echod.files import insecure_file_warnings, read_regular
from echod.lazy import lazy_pattern
from echod.paths import Paths
from echod.runtime import MIN_FREE_BYTES, DaemonState, filesystem_type, free_bytes, is_remote_filesystem, read_liveness
from echod.service.base import ServiceError, build_service_config
from echod.service.factory import create_service
from echod.service.paths import recovery_hint, restart_hint, service_file
from echod.settings import loader
from echod.settings.schema import Settings, unknown_variable_warnings
from echod.state.database import Database, DatabaseDamagedError
from echod.state.repair import check_integrity, list_damaged_copies
from echod.store.layout import Store
from echod.sync.registration import ATTRIBUTE, ATTRIBUTES_FILE, DriverState, find_driver_state
from echod.workflows import marker_directories


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """One user on one machine at one moment (`now` in Unix seconds, `monotonic` by that clock).

    `settings` are the defaults where the user's cannot be read. `platform` is as in `sys.platform`. `python` runs this
    installation, of this `version`. `mounts` is from `runtime.read_mounts`.
    """

    paths: Paths
    settings: Settings
    environ: Mapping[str, str]
    platform: str
    python: Path
    version: str
    uid: int
    now: float
    monotonic: float
    mounts: str


def command_line(*words: object) -> str:
    """Return a command line with all words quoted for a shell."""
    return shlex.join(map(str, words))


def passed(code: str, text: str, path: Path | None = None) -> Check:
    """Return the result of a check that passed."""
    return Check(code, CheckResult.OK, text, "", None if path is None else str(path))


def note(code: str, text: str, fix: str = "", path: Path | None = None) -> Check:
    """Return a result that the user may want to know, although nothing fails because of it."""
    return Check(code, CheckResult.NOTE, text, fix, None if path is None else str(path))


def problem(code: str, text: str, fix: str, path: Path | None = None) -> Check:
    """Return the result of a check that failed: something does not work, or a guarantee does not hold here."""
    return Check(code, CheckResult.PROBLEM, text, fix, None if path is None else str(path))


_OTHERS_MASK = 0o077
_MIB = 1 << 20

_INOTIFY = Path("/proc/sys/fs/inotify")
_OWN_WATCH_COUNT = 8
"""The canary, the state directory, the spool, and the ancestors of paths that do not exist yet."""

_WATCH_HEADROOM = 4
"""Other programs of the user share the limit."""


def check_installation(context: DoctorContext) -> Iterator[Check]:
    """Check the version, the command on the PATH, and the service."""
    yield passed("version", f"echod {context.version}, Python {python_platform.python_version()}.", context.python)
    yield _check_command(context)
    yield from _check_service(context)


def _check_command(context: DoctorContext) -> Check:
    own_script = context.python.parent / "echod"
    found_script = shutil.which("echod", path=context.environ.get("PATH", ""))
    if found_script is None:
        fix = f"Put {context.python.parent} on the PATH, or link {own_script} into a directory on the PATH."
        return note("command", "echod is not on the PATH, so other shells and the hooks of agents do not find it.", fix)
    if own_script.exists() and os.path.realpath(found_script) != os.path.realpath(own_script):
        text = f"The echod on the PATH is not this installation ({own_script})."
        fix = "Remove one of the two, or put the right one first on the PATH."
        return problem("command", text, fix, Path(found_script))
    return passed("command", "The echod on the PATH is this installation.", Path(found_script))


def _check_service(context: DoctorContext) -> Iterator[Check]:
    try:
        service = create_service(context.platform, context.paths, context.version, context.environ)
        state = service.read_state(build_service_config(context.python, context.environ))
    except ServiceError as error:
        yield note("service", str(error))
        return
    if not state.installed:
        fix = "Install it with: echod service install, or configure another supervisor to run: echod run"
        yield note("service", "The service is not installed, so nothing starts echod at login.", fix)
        return
    if not state.up_to_date:
        text = (
            "The service file differs from the one that this installation would write: echod was moved or upgraded, "
            "its environment changed, or the file was edited."
        )
        yield problem("service-outdated", text, "Replace it with: echod service install", state.file)
    for warning in insecure_file_warnings(state.file, context.uid):
        yield problem("service-insecure", warning, "", state.file)
    if state.active is None:
        yield note("service", f"It is unknown whether the service is running. {state.detail}", "", state.file)
    elif not state.active:
        text = f"The service is installed but not running ({state.detail})."
        fix = "Start it with: echod service start. Show why it ended with: echod service logs"
        yield problem("service-inactive", text, fix, state.file)
    elif state.up_to_date:
        yield passed("service", "The service is installed, up to date and running.", state.file)


def check_directories(context: DoctorContext) -> Iterator[Check]:
    """Check that the state and the runtime directory exist, are private, ours and local, and have free space."""
    yield from _check_directory(context, "state", context.paths.state)
    yield from _check_directory(context, "runtime", context.paths.runtime)


def _check_directory(context: DoctorContext, name: str, path: Path) -> Iterator[Check]:
    code = f"{name}-directory"
    try:
        status = path.stat()
    except FileNotFoundError:
        yield note(code, f"There is no {name} directory yet. The first start creates it.", "", path)
        return
    except OSError as error:
        yield problem(code, f"The {name} directory cannot be read: {os_reason(error)}.", _directory_fix(name), path)
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
        yield problem(code, f"The path of the {name} directory is not a directory.", _directory_fix(name), path)
        return
    if status.st_uid != context.uid:
        yield problem(code, f"The {name} directory belongs to another user.", _directory_fix(name), path)
    if status.st_mode & _OTHERS_MASK:
        yield problem(code, f"Other users may access the {name} directory.", command_line("chmod", 700, path), path)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield problem(code, f"The {name} directory cannot be read or written.", command_line("chmod", 700, path), path)
    type_name = filesystem_type(Path(os.path.realpath(path)), context.mounts)
    if is_remote_filesystem(type_name):
        text = f"The {name} directory is on {type_name}, where locks and the database are not reliable."
        yield problem(code, text, _directory_fix(name), path)
    free = free_bytes(path)
    if free is not None and free < MIN_FREE_BYTES:
        text = f"Only {free // _MIB} MiB are free on the disk of the {name} directory."
        yield problem("disk-full", text, "Free some space. echod then continues by itself.", path)


def _directory_fix(name: str) -> str:
    return f"Repair it, or set ECHOD_{name.upper()}_DIR to a local directory of yours and install the service again."


def check_settings(context: DoctorContext) -> Iterator[Check]:
    """Check the settings file and the environment variables."""
    try:
        loader.load_settings(context.paths.config_file, context.environ)
    except ConfigurationError as error:
        yield problem("settings", str(error), "Correct it. The service does not start with it.")
    else:
        exists = context.paths.config_file.exists()
        text = "The settings are valid." if exists else "There is no settings file. All defaults apply."
        yield passed("settings", text)
    for warning in unknown_variable_warnings(context.environ):
        yield note("settings-unknown", warning, "Unset it, or correct its name.")


def check_database(context: DoctorContext) -> Iterator[Check]:
    """Check that the database can be read and is not damaged."""
    try:
        database = Database.open_readonly(context.paths.database)
        if database is None:
            yield note("database", "Nothing is recorded yet. The first start creates the database.")
        else:
            with database:
                check_integrity(database)
            yield passed("database", "The state database is not damaged.", context.paths.database)
    except DatabaseDamagedError as error:
        yield problem("database", str(error), _restart_fix(context), context.paths.database)
    except StateError as error:
        yield problem("database", str(error), "", context.paths.database)
    for copy in list_damaged_copies(context.paths.database):
        fix = f"Delete it if you do not need it: {command_line('rm', copy)}"
        yield note("database-copies", "This is a damaged database that was moved aside.", fix, copy)


def _restart_fix(context: DoctorContext) -> str:
    try:
        liveness = read_liveness(context.paths, context.version, context.monotonic)
    except OSError:
        return ""  # check_daemon reports it
    return restart_hint(liveness, context.platform, context.environ)


def check_daemon(context: DoctorContext) -> Iterator[Check]:
    """Check that the daemon answers."""
    try:
        liveness = read_liveness(context.paths, context.version, context.monotonic)
    except OSError as error:
        text = f"{error.filename} cannot be read: {error.strerror}."
        yield problem("daemon", text, "Take ownership of it, or delete it.")
        return
    if liveness.state is DaemonState.RUNNING:
        yield passed("daemon", f"The daemon is running as process {liveness.pid} and makes progress.")
    else:
        report = note if liveness.state is DaemonState.STARTING else problem
        yield report("daemon", liveness.text, recovery_hint(liveness, context.platform, context.environ))


def check_watching(context: DoctorContext, stores: Iterable[Store]) -> Iterator[Check]:
    """Check that the kernel lets this user watch all directories that echod has to watch."""
    if context.platform != "linux":
        return
    if (reason := _inotify_instance_error()) is not None:
        text = f"The kernel provides no more inotify instances to this user ({reason}), so changes are found late."
        fix = "Raise the limit: sysctl fs.inotify.max_user_instances=512 (as root; keep it in /etc/sysctl.d)"
        yield problem("inotify-instances", text, fix)
    try:
        limit = int((_INOTIFY / "max_user_watches").read_text(encoding="ascii"))
    except (OSError, ValueError):
        yield note("inotify-watches", "The kernel does not report how many directories may be watched.")
        return
    needed = _count_needed_watches(stores)
    text = f"{needed} directories have to be watched. The kernel allows this user {limit}."
    fix = f"Raise the limit: sysctl fs.inotify.max_user_watches={max(524_288, needed * _WATCH_HEADROOM)} (as root)"
    if needed > limit:
        yield problem("inotify-watches", text, fix)
    elif needed * _WATCH_HEADROOM > limit:
        yield note("inotify-watches", f"{text} Editors share this limit.", fix)
    else:
        yield passed("inotify-watches", text)


def _count_needed_watches(stores: Iterable[Store]) -> int:
    listed = tuple(stores)
    markers = {path for project in {store.project for store in listed} for path in marker_directories(project)}
    return sum(1 for store in listed for _ in os.walk(store.root)) + len(markers) + _OWN_WATCH_COUNT


def _inotify_instance_error() -> str | None:
    """Return why the kernel provides no further inotify instance, in words; None if it provides one."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_CLOEXEC)
    if descriptor >= 0:
        os.close(descriptor)
        return None
    code = ctypes.get_errno()
    return None if code == errno.ENOSYS else os.strerror(code).lower()


_VERSION_TIMEOUT_SECONDS = 20.0
_MAX_SERVICE_FILE_BYTES = 1024 * 1024
_SPECIFIER = lazy_pattern("%(.)")


def check_service_program(context: DoctorContext) -> Iterator[Check]:
    """Run the program that the installed service file names, and compare its version with this one."""
    file = service_file(context.platform, context.environ)
    if file is None:
        return
    try:
        program = service_program(read_regular(file, _MAX_SERVICE_FILE_BYTES), context.environ.get("HOME", ""))
    except (OSError, ValueError):
        return  # the check of the service reports a missing or unreadable file
    if program is not None:
        yield _check_program("service-program", "service", program, context.version, file)


def check_merge_driver(context: DoctorContext, project: Path, stores: Sequence[Store]) -> Iterator[Check]:
    """Run the merge driver that git would run in a project whose attributes name it."""
    attributes = project / ATTRIBUTES_FILE
    try:
        if ATTRIBUTE.encode() not in read_regular(attributes, _MAX_SERVICE_FILE_BYTES):
            return
        state = find_driver_state(project, stores, context.environ)
    except FileNotFoundError:
        return
    except OSError as error:
        yield problem("merge-driver", f"The attributes file cannot be read: {os_reason(error)}.", "", attributes)
        return
    except EchodError as error:
        yield problem("merge-driver", str(error), "", project)
        return
    fix = command_line("echod", "sync", "setup", project)
    match state:
        case DriverState.BY_ENTRY:
            yield passed("merge-driver", "Git merges the memory by entry.", project)
        case DriverState.ONE_SIDED:
            text = "The merge driver that git runs here would lose the entries of one side."
            yield problem("merge-driver", text, fix, project)
        case DriverState.BY_LINE:
            text = "Git merges the memory by line, because its merge driver cannot run echod."
            yield problem("merge-driver", text, fix, project)
        case DriverState.NOT_CONFIGURED:
            yield note("merge-driver", "Git merges the memory by line: this clone is not set up.", fix, project)
        case DriverState.NO_ATTRIBUTE | DriverState.NO_GIT:
            pass  # the attribute is for other files, or git does not run here


def service_program(content: bytes, home: str) -> tuple[str, ...] | None:
    """Return the command of a unit or an agent without its last word, `run`; None if there is none.

    `home` is the user's home directory, which a unit may call `%h`.

    Raises:
        ValueError: the file is not of its format.
    """
    if content.lstrip().startswith((b"<?xml", b"<plist")):
        words = plistlib.loads(content).get("ProgramArguments")
        return tuple(map(str, words[:-1])) if isinstance(words, list) else None
    lines = content.decode("utf-8", "surrogateescape").splitlines()
    start = next((line.partition("=")[2] for line in lines if line.startswith("ExecStart=")), None)
    if start is None:
        return None
    unescaped = _SPECIFIER.sub(lambda found: {"%": "%", "h": home}.get(found[1], found[0]), start.replace("$$", "$"))
    return tuple(shlex.split(unescaped))[:-1]


def _check_program(code: str, caller: str, program: tuple[str, ...], version: str, file: Path) -> Check:
    command = shlex.join(program)
    fix = "Replace it with: echod service install"
    try:
        done = subprocess.run(
            (*program, "--version"),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_TIMEOUT_SECONDS,
            check=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it does not print its version"
        return problem(code, f"The {caller} calls {command}, which cannot be run: {reason}.", fix, file)
    words = done.stdout.split()
    if words[:1] != ["echod"] or words[1:2] != [version]:
        found = " ".join(words[:2]) or "nothing"
        return problem(code, f"The {caller} calls {command}, which is {found} and not echod {version}.", fix, file)
    return passed(code, f"The {caller} calls {command}, version {version}.", file)

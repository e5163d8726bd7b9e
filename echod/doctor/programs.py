"""Check the programs that files of other programs name: each must exist, be this version of echod, and do its work."""

from __future__ import annotations

import plistlib
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from echod.contract.commands import Check
from echod.doctor.context import DoctorContext, command_line, note, passed, problem
from echod.errors import EchodError, os_reason
from echod.files import read_regular
from echod.service.paths import service_file
from echod.store.layout import Store
from echod.sync.registration import ATTRIBUTE, ATTRIBUTES_FILE, DriverState, find_driver_state

_VERSION_TIMEOUT_SECONDS = 20.0
_MAX_SERVICE_FILE_BYTES = 1024 * 1024
_SPECIFIER = re.compile("%(.)")


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

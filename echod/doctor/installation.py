"""Which echod is this, does the shell find the same one, and who starts the service?"""

from __future__ import annotations

import os
import platform as python_platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from echod.contract.doctor import Check
from echod.doctor.case import Case, fine, note, problem
from echod.service.choose import service_for
from echod.service.errors import ServiceError
from echod.service.recorded import record


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

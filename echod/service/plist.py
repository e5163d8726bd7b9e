"""Rendering the launchd agent from its template. Pure."""

from __future__ import annotations

import plistlib
from pathlib import Path
from xml.parsers.expat import ExpatError

from echod.service.base import MARK
from echod.service.errors import ServiceError
from echod.service.recorded import Recorded

PATH = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin"
"""launchd gives an agent a bare PATH; git may be in any of these."""

_HEAD = b'"http://www.apple.com/DTDs/PropertyList-1.0.dtd">\n'


def render_plist(template: str, recorded: Recorded, stderr: Path) -> bytes:
    """The agent's file: the template with the recorded command and environment, and where its last words go.

    Raises:
        ServiceError: the template is no property list.
    """
    try:
        agent = plistlib.loads(template.encode())
    except (ValueError, ExpatError, plistlib.InvalidFileException) as error:
        raise ServiceError("The launchd template of this installation is damaged; install echod again.") from error
    agent["ProgramArguments"] = list(recorded.command)
    agent["EnvironmentVariables"] = {"PATH": PATH, **dict(recorded.environment)}
    agent["StandardErrorPath"] = str(stderr)
    head, found, body = plistlib.dumps(agent, sort_keys=False).partition(_HEAD)
    return head + found + b"<!-- " + MARK + b": `echod service install` writes this file again. -->\n" + body

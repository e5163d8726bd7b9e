"""Rendering the systemd unit from its template. Pure."""

from __future__ import annotations

from echod.service.errors import ServiceError
from echod.service.recorded import Recorded

_START = "ExecStart="


def render_unit(template: str, recorded: Recorded) -> bytes:
    """The unit file: the template with the recorded command and environment in place of its ExecStart line.

    Raises:
        ServiceError: the template has not exactly one such line.
    """
    lines = template.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith(_START)]
    if len(starts) != 1:
        raise ServiceError("The systemd template of this installation is damaged; install echod again.")
    environment = [f"Environment={_quoted(f'{name}={value}')}" for name, value in recorded.environment]
    # In a command a dollar sign would begin a variable; in Environment= it is just a character.
    command = " ".join(_quoted(part).replace("$", "$$") for part in recorded.command)
    lines[starts[0] : starts[0] + 1] = [*environment, f"{_START}{command}"]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def _quoted(text: str) -> str:
    """As systemd.syntax(7) reads it back; a percent sign would begin a specifier."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'

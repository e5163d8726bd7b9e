"""`echod config`: which settings are in force and who said so, where their file is, and whether it is in order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

import click

from echod.cli.shell import Shell
from echod.cli.text import WIDTH, count, fitted, paragraph, short_path
from echod.contract.commands import ConfigReport, SettingInfo
from echod.contract.status import to_json
from echod.settings import loader
from echod.settings.loader import Origin, Source

_KEY_WIDTH = 31
_VALUE_WIDTH = 12


def show(shell: Shell, *, as_json: bool) -> None:
    """Print every setting with where its value comes from.

    Raises:
        ConfigurationError: the settings cannot be used; the sentence names file and line.
    """
    found = _in_force(shell)
    if as_json:
        click.echo(to_json(_report(shell, found)))
        return
    click.echo("\n".join(_screen(shell, found)))


def path(shell: Shell) -> None:
    """Print where the settings file is, or would be; whatever is in it."""
    click.echo(str(shell.paths.config_file))


def check(shell: Shell) -> None:
    """Say that the settings are in order, and what they change.

    Raises:
        ConfigurationError: they are not; the sentence names every wrong key, with file and line.
    """
    changed = Counter(origin.source for origin in _in_force(shell))
    file, name = shell.paths.config_file, short_path(str(shell.paths.config_file))
    if file.exists():
        said = f"{name} is in order; it sets {count(changed[Source.FILE], 'value')}"
    else:
        said = f"There is no {name}, and none is needed"
    by_variables = f"; variables set {changed[Source.VARIABLE]}" if changed[Source.VARIABLE] else ""
    click.echo(paragraph(f"{said}{by_variables}. The rest are the defaults."))


def _in_force(shell: Shell) -> tuple[Origin, ...]:
    _ = shell.settings  # says what is doubtful, too
    return loader.origins(shell.paths.config_file, shell.environ)


def _report(shell: Shell, found: Sequence[Origin]) -> ConfigReport:
    return ConfigReport(
        file=str(shell.paths.config_file),
        state_directory=str(shell.paths.state),
        runtime_directory=str(shell.paths.runtime),
        settings=tuple(SettingInfo(o.key, o.value, o.default, o.source.value, o.place) for o in found),
    )


def _screen(shell: Shell, found: Sequence[Origin]) -> Iterator[str]:
    places = (
        ("settings file", shell.paths.config_file),
        ("state", shell.paths.state),
        ("runtime", shell.paths.runtime),
    )
    for name, place in places:
        absent = "" if place.exists() else "  (not there)"
        yield f"{name:<14} {fitted(str(place), WIDTH - 15 - len(absent))}{absent}"
    yield ""
    for origin in found:
        yield from _row(origin)


def _row(origin: Origin) -> Iterator[str]:
    value = json.dumps(origin.value, ensure_ascii=False)
    said = origin.source.value if origin.place is None else origin.place
    row = f"{origin.key:<{_KEY_WIDTH}} {value:<{_VALUE_WIDTH}}"
    room = WIDTH - len(row) - 1
    whole = fitted(said, WIDTH)
    if len(whole) <= room:
        yield f"{row} {whole}"
    else:
        yield row.rstrip()
        yield f"    from {fitted(said, WIDTH - 9)}"

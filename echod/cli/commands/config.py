"""`echod config`: show the effective settings with their sources, write and edit their file, or check them."""

from __future__ import annotations

import json as json_format
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.cli.context import CommandContext
from echod.cli.output import WIDTH, fit_path, short_path, wrap
from echod.contract.codec import to_json
from echod.contract.commands import ConfigReport, SettingInfo
from echod.errors import EchodError, os_reason
from echod.files import write_private
from echod.lazy import lazy_imports
from echod.memory.text import pluralize
from echod.service.paths import read_template

with lazy_imports(__name__):
    from echod.settings import loader

if TYPE_CHECKING:
    from echod.settings.loader import SettingSource  # loads the library that checks settings

_KEY_WIDTH = 30
_VALUE_WIDTH = 12


def show(context: CommandContext, *, json: bool) -> None:
    """Run `echod config show`."""
    sources = _effective_settings(context)
    if json:
        click.echo(to_json(_config_report(context, sources)))
    else:
        click.echo("\n".join(_settings_lines(context, sources)))


def path(context: CommandContext) -> None:
    """Run `echod config path`."""
    click.echo(str(context.paths.config_file))


def check(context: CommandContext) -> None:
    """Run `echod config check`."""
    counts = Counter(source.kind for source in _effective_settings(context))
    file, name = context.paths.config_file, short_path(str(context.paths.config_file))
    if file.exists():
        summary = f"{name} is valid and sets {pluralize(counts[loader.SettingSourceKind.FILE], 'value')}"
    elif not counts[loader.SettingSourceKind.VARIABLE]:
        click.echo("No settings file; the defaults apply. To write one: echod config init")
        return
    else:
        summary = f"There is no {name}"
    variables = counts[loader.SettingSourceKind.VARIABLE]
    variables_text = f"; variables set {variables}" if variables else ""
    click.echo(wrap(f"{summary}{variables_text}. The others are the defaults."))


def init(context: CommandContext, *, dry_run: bool) -> None:
    """Run `echod config init`."""
    file = context.paths.config_file
    if file.exists():
        raise EchodError(f"{short_path(str(file))} exists already. To change it: echod config edit")
    if dry_run:
        click.echo(f"Would write {short_path(str(file))}, with every setting as a comment.")
        return
    _write_example(file)
    context.print_info(
        f"Wrote {short_path(str(file))}, with every setting as a comment. To change it: echod config edit"
    )


def edit(context: CommandContext) -> None:
    """Run `echod config edit`."""
    editor = context.environ.get("VISUAL") or context.environ.get("EDITOR")
    file = context.paths.config_file
    if not editor:
        raise EchodError(f"Set VISUAL or EDITOR to your editor, or open {file} yourself.")
    if not file.exists():
        _write_example(file)
    try:
        code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode
    except (OSError, ValueError) as error:
        raise EchodError(f"The editor {editor} cannot be started. Set VISUAL or EDITOR to another one.") from error
    if code != 0:
        raise EchodError(f"The editor ended with {code}. The settings were not checked.")
    _ = _effective_settings(context)
    context.print_info("The settings are valid. The service reads them after: echod service restart")


def _write_example(file: Path) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_private(file, read_template("", "config.example.toml").encode())
    except OSError as error:
        raise EchodError(f"{file} cannot be written: {os_reason(error)}.") from error


def _effective_settings(context: CommandContext) -> tuple[SettingSource, ...]:
    _ = context.settings  # prints warnings
    return loader.setting_sources(context.paths.config_file, context.environ)


def _config_report(context: CommandContext, sources: Sequence[SettingSource]) -> ConfigReport:
    return ConfigReport(
        file=str(context.paths.config_file),
        state_directory=str(context.paths.state),
        runtime_directory=str(context.paths.runtime),
        settings=tuple(
            SettingInfo(source.key, source.value, source.default, source.kind.value, source.location)
            for source in sources
        ),
    )


def _settings_lines(context: CommandContext, sources: Sequence[SettingSource]) -> Iterator[str]:
    locations = (
        ("settings file", context.paths.config_file),
        ("state", context.paths.state),
        ("runtime", context.paths.runtime),
    )
    for name, location in locations:
        absent = "" if location.exists() else "  (missing)"
        yield f"{name:<14} {fit_path(str(location), WIDTH - 15 - len(absent))}{absent}"
    changed = [source for source in sources if source.value != source.default]
    yield ""
    for source in changed:
        yield from _setting_lines(source, "*")
    if changed:
        yield ""
    for source in sources:
        if source not in changed:
            yield from _setting_lines(source, " ")
    yield ""
    if changed:
        yield f"* {pluralize(len(changed), 'setting differs', 'settings differ')} from the default."
    else:
        yield "All settings have their defaults. To change some: echod config edit"


def _setting_lines(setting: SettingSource, mark: str) -> Iterator[str]:
    value = json_format.dumps(setting.value, ensure_ascii=False)
    row = f"{mark} {setting.key:<{_KEY_WIDTH}} {value:<{_VALUE_WIDTH}}"
    if setting.location is None:
        yield row.rstrip()
    elif len(fitted_source := fit_path(setting.location, WIDTH)) <= WIDTH - len(row) - 1:
        yield f"{row} {fitted_source}"
    else:
        yield row.rstrip()
        yield f"    from {fit_path(setting.location, WIDTH - 9)}"

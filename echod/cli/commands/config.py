"""`echod config`: show the effective settings with their sources, print the path of their file, or check them."""

from __future__ import annotations

import json as json_format
from collections import Counter
from collections.abc import Iterator, Sequence

import click

from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.output import WIDTH, fit_path, pluralize, short_path, wrap
from echod.cli.root import CommandGroup, example, pass_command_context
from echod.contract.commands import ConfigReport, SettingInfo
from echod.contract.status import to_json
from echod.settings import loader
from echod.settings.loader import SettingSource, SettingSourceKind

_KEY_WIDTH = 31
_VALUE_WIDTH = 12


@click.group(cls=CommandGroup)
def config() -> None:
    """Show and check the settings."""


@config.command(epilog=example("echod config show --json"))
@options.json
@pass_command_context
def show(context: CommandContext, *, json: bool) -> None:
    """List the effective settings and the source of each.

    A source is a file and line, an environment variable, or the default.
    """
    sources = _effective_settings(context)
    if json:
        click.echo(to_json(_config_report(context, sources)))
    else:
        click.echo("\n".join(_settings_lines(context, sources)))


@config.command(epilog=example("echod config path"))
@pass_command_context
def path(context: CommandContext) -> None:
    """Print the path of the settings file, even if it does not exist."""
    click.echo(str(context.paths.config_file))


@config.command(epilog=example("echod config check"))
@pass_command_context
def check(context: CommandContext) -> None:
    """Check the settings.

    Exits with 78 if they are invalid, and prints every wrong key with file, line and the most likely correct key.
    To check another file: echod --config FILE config check
    """
    counts = Counter(source.kind for source in _effective_settings(context))
    file, name = context.paths.config_file, short_path(str(context.paths.config_file))
    if file.exists():
        summary = f"{name} is valid and sets {pluralize(counts[SettingSourceKind.FILE], 'value')}"
    else:
        summary = f"{name} does not exist, and is not required"
    variables = counts[SettingSourceKind.VARIABLE]
    variables_text = f"; variables set {variables}" if variables else ""
    click.echo(wrap(f"{summary}{variables_text}. The others are the defaults."))


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
    yield ""
    for source in sources:
        yield from _setting_lines(source)


def _setting_lines(setting: SettingSource) -> Iterator[str]:
    value = json_format.dumps(setting.value, ensure_ascii=False)
    source = setting.kind.value if setting.location is None else setting.location
    row = f"{setting.key:<{_KEY_WIDTH}} {value:<{_VALUE_WIDTH}}"
    if len(fitted_source := fit_path(source, WIDTH)) <= WIDTH - len(row) - 1:
        yield f"{row} {fitted_source}"
    else:
        yield row.rstrip()
        yield f"    from {fit_path(source, WIDTH - 9)}"

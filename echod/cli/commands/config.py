"""`echod config`: which settings are in force and who said so, where their file is, and whether it is in order.

Commands about the settings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

import click

from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.output import WIDTH, fit_path, pluralize, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.contract.commands import ConfigReport, SettingInfo
from echod.contract.status import to_json
from echod.settings import loader
from echod.settings.loader import SettingSource, SettingSourceKind

_KEY_WIDTH = 31
_VALUE_WIDTH = 12


def show_settings(context: CommandContext, *, as_json: bool) -> None:
    """Print every setting with where its value comes from.

    Raises:
        ConfigurationError: the settings cannot be used; the sentence names file and line.
    """
    sources = _effective_settings(context)
    if as_json:
        click.echo(to_json(_config_report(context, sources)))
        return
    click.echo("\n".join(_settings_lines(context, sources)))


def print_config_path(context: CommandContext) -> None:
    """Print where the settings file is, or would be; whatever is in it."""
    click.echo(str(context.paths.config_file))


def validate_settings(context: CommandContext) -> None:
    """Say that the settings are in order, and what they change.

    Raises:
        ConfigurationError: they are not; the sentence names every wrong key, with file and line.
    """
    changed = Counter(origin.kind for origin in _effective_settings(context))
    file, name = context.paths.config_file, short_path(str(context.paths.config_file))
    if file.exists():
        summary = f"{name} is in order; it sets {pluralize(changed[SettingSourceKind.FILE], 'value')}"
    else:
        summary = f"There is no {name}, and none is needed"
    variables_text = (
        f"; variables set {changed[SettingSourceKind.VARIABLE]}" if changed[SettingSourceKind.VARIABLE] else ""
    )
    click.echo(wrap(f"{summary}{variables_text}. The rest are the defaults."))


def _effective_settings(context: CommandContext) -> tuple[SettingSource, ...]:
    _ = context.settings  # says what is doubtful, too
    return loader.setting_sources(context.paths.config_file, context.environ)


def _config_report(context: CommandContext, sources: Sequence[SettingSource]) -> ConfigReport:
    return ConfigReport(
        file=str(context.paths.config_file),
        state_directory=str(context.paths.state),
        runtime_directory=str(context.paths.runtime),
        settings=tuple(SettingInfo(o.key, o.value, o.default, o.kind.value, o.location) for o in sources),
    )


def _settings_lines(context: CommandContext, sources: Sequence[SettingSource]) -> Iterator[str]:
    locations = (
        ("settings file", context.paths.config_file),
        ("state", context.paths.state),
        ("runtime", context.paths.runtime),
    )
    for name, location in locations:
        absent = "" if location.exists() else "  (not there)"
        yield f"{name:<14} {fit_path(str(location), WIDTH - 15 - len(absent))}{absent}"
    yield ""
    for source in sources:
        yield from _setting_lines(source)


def _setting_lines(setting: SettingSource) -> Iterator[str]:
    value = json.dumps(setting.value, ensure_ascii=False)
    source = setting.kind.value if setting.location is None else setting.location
    row = f"{setting.key:<{_KEY_WIDTH}} {value:<{_VALUE_WIDTH}}"
    width = WIDTH - len(row) - 1
    fitted_source = fit_path(source, WIDTH)
    if len(fitted_source) <= width:
        yield f"{row} {fitted_source}"
    else:
        yield row.rstrip()
        yield f"    from {fit_path(source, WIDTH - 9)}"


@click.group()
def config() -> None:
    """Show and check the settings."""


@config.command(epilog=example("echod config show --json"))
@options.json
@pass_command_context
def show(context: CommandContext, *, json: bool) -> None:
    """List every setting as it is in force, and who says so: the file and its line, a variable, or nobody."""
    show_settings(context, as_json=json)


@config.command(epilog=example("echod config path"))
@pass_command_context
def path(context: CommandContext) -> None:
    """Print where the settings file is, or would be, and nothing else."""
    print_config_path(context)


@config.command(epilog=example("echod config check"))
@pass_command_context
def check(context: CommandContext) -> None:
    """Are the settings in order? Names every wrong key, with file and line, and what was probably meant.

    Ends with 78 if they are not. To try a file: echod --config FILE config check
    """
    validate_settings(context)

"""Errors of the command line's syntax, as sentences in plain English with the next step.

`root` prints them in the style of all other errors. A module of its own because only a mistyped command loads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

import click
from click.exceptions import BadOptionUsage, BadParameter, MissingParameter, NoSuchCommand, NoSuchOption

from echod.cli.output import sanitize

ELSEWHERE: Final = {
    "logs": "service logs",
    "start": "service start",
    "stop": "service stop",
    "restart": "service restart",
    "install": "service install",
    "uninstall": "service uninstall",
    "list": "projects",
    "ls": "show",
    "diff": "log JOB",
    "history": "log",
    "version": "--version",
    "info": "status",
    "register": "add",
    "unregister": "remove",
    "delete": "forget",
    "rm": "forget",
    "archive": "forget",
    "note": "remember",
    "find": "search",
    "check": "doctor",
    "fix": "doctor",
    "settings": "config show",
    "plugin": "claude setup",
    "setup": "init",
}
"""Words of other programs, and the command of echod that does the same."""

_HUGE: Final = 1e15
"""A bound that helps no user."""

_RANGES: Final = (click.IntRange, click.FloatRange)


def usage_sentence(error: click.ClickException, commands: Iterable[str]) -> str:
    """Return an error of the syntax as a sentence. `commands` are the names of all commands."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    path = ctx.command_path if ctx is not None else "echod"
    match error:
        case NoSuchCommand():
            group = ctx.command if ctx is not None and isinstance(ctx.command, click.Group) else None
            names = list(commands) if ctx is None or ctx.parent is None or group is None else group.list_commands(ctx)
            return _unknown_command(path, error.command_name, names)
        case NoSuchOption():
            text = f"{path} has no option {sanitize(error.option_name)}."
            return f"{text} {_suggestion(error.possibilities or [])} {_help_hint(path)}".replace("  ", " ")
        case MissingParameter():
            return f"{_missing(error)} {_help_hint(path)}"
        case BadParameter():
            return f"{_bad_value(error)} {_help_hint(path)}"
        case BadOptionUsage():
            verb = "takes no" if "does not take" in error.message else "needs a"
            return f"{sanitize(error.option_name)} {verb} value. {_help_hint(path)}"
    message = error.format_message().rstrip(".").replace("Missing command", "A command is missing")
    extra = "Got unexpected extra argument"
    if message.startswith(extra):
        words = message.partition("(")[2].rstrip(")")
        message = f"{path} does not take {sanitize(words)} as a further argument. Quote text that contains spaces"
    return f"{message}. {_help_hint(path)}"


def _unknown_command(path: str, name: str, names: Iterable[str]) -> str:
    text = f"There is no command `{path} {sanitize(name)}`."
    if path == "echod" and name in ELSEWHERE:
        return f"{text} Run: echod {ELSEWHERE[name]}"
    if path == "echod jobs" and name.isdecimal():
        return f"{text} To show what a job changed: echod log {name}"
    suggestion = _suggestion(get_close_matches(name, list(names)))
    return f"{text} {suggestion} {_help_hint(path)}" if suggestion else f"{text} {_help_hint(path)}"


def _suggestion(possibilities: Iterable[str]) -> str:
    close = sorted(possibilities)
    if not close:
        return ""
    return f"Did you mean {' or '.join([', '.join(close[:-1]), close[-1]] if len(close) > 1 else close)}?"


def _help_hint(path: str) -> str:
    words = path.removeprefix("echod").strip()
    return f"See: echod help {words}" if words else "See: echod help"


def _name(error: BadParameter) -> str:
    param = error.param
    if param is None:
        return "A value"
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return str(param.metavar or str(param.name).upper()).strip("[].")


def _missing(error: MissingParameter) -> str:
    choices = error.param.type.choices if error.param is not None and isinstance(error.param.type, click.Choice) else ()
    text = f"{_name(error)} is missing"
    return f"{text}: one of {', '.join(_choice(choice) for choice in choices)}." if choices else f"{text}."


def _choice(choice: object) -> str:
    return str(getattr(choice, "value", choice))


def _bad_value(error: BadParameter) -> str:
    kind = error.param.type if error.param is not None else None
    name = _name(error)
    typed = _typed_value(error.message)
    if isinstance(kind, _RANGES):
        noun = f"a {kind.name}"
        if kind.min is not None and kind.max is not None and kind.max < _HUGE:
            noun += f" from {kind.min:g} to {kind.max:.15g}"
        elif kind.min is not None:
            noun += f" of at least {kind.min:g}"
        return f"{name} must be {noun}, not {typed}."
    if isinstance(kind, click.Choice):
        return f"{name} must be one of {', '.join(_choice(choice) for choice in kind.choices)}, not {typed}."
    return f"{name}: {error.message.rstrip('.')}."


def _typed_value(message: str) -> str:
    """Return the value that click quotes at the start of its message."""
    if message[:1] in "'\"":
        return message[: message.index(message[0], 1) + 1] if message[0] in message[1:] else message
    return sanitize(message.partition(" ")[0])

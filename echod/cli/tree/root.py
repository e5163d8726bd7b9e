"""How the command line as a whole behaves: the order in which help shows the commands, and options that go anywhere."""

from __future__ import annotations

from typing import Final

import click

HELP_SECTIONS: Final = (
    ("To begin", ("init", "add", "service", "config", "doctor", "claude", "completion")),
    ("To know", ("status", "show", "explain", "gate", "jobs", "log", "projects", "review", "audit")),
    ("To decide", ("remember", "pin", "unpin", "raise", "forget", "restore", "undo", "reset", "elevate", "packs")),
    ("To maintain", ("run", "consolidate", "prune", "compress", "scrub", "pause", "resume", "remove")),
    ("For tools", ("hook", "record-access", "workflow")),
)
"""Every command, in the order in which a person meets them."""

OPTIONS_ANYWHERE: Final = frozenset({"--quiet", "--no-color"})
"""Options of echod itself that are understood after a command, too."""


class CommandGroup(click.Group):
    """A command with commands below it, which help shows in the order in which they are declared."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the signature is given
        """Name the commands, as they are declared."""
        return list(self.commands)


class RootGroup(CommandGroup):
    """The root of the command line."""

    group_class = CommandGroup

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; what a person wrote behind the command, but means echod, goes before it."""
        end = args.index("--") if "--" in args else len(args)
        options, rest = args[:end], args[end:]
        moved = [word for word in options if word in OPTIONS_ANYWHERE]
        remaining = [word for word in options if word not in OPTIONS_ANYWHERE]
        return super().parse_args(ctx, [*moved, *remaining, *rest])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  as above
        """Write the commands into the help, by what a person wants."""
        width = formatter.width - 6 - max(map(len, self.commands))
        for title, names in HELP_SECTIONS:
            rows = [(name, self.commands[name].get_short_help_str(width)) for name in names if name in self.commands]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

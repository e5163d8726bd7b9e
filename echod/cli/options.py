"""Arguments and options that several commands share, so that they have the same name and help everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

import click

from echod.cli.completions import complete_entry, complete_project, complete_role

PATH: Final = click.Path(path_type=Path)

PATH_OR_NAME: Final = click.Path(readable=False)
"""A path or something else. A shell completes it as a path, and it stays as it was typed."""


class WholeNumber(click.IntRange):
    """A whole number with bounds. Errors call it so."""

    name = "whole number"


class Number(click.FloatRange):
    """A number with bounds. Errors call it so."""

    name = "number"


class SettableLayer(StrEnum):
    """The layers that `echod raise` can give."""

    ETCHED = "etched"
    NOTES = "notes"
    INSCRIBED = "inscribed"


json = click.option("--json", is_flag=True, help="Print JSON for scripts (docs/json.md).")
plan_json = click.option("--json", is_flag=True, help="With --dry-run: print JSON for scripts (docs/json.md).")
dry_run = click.option("--dry-run", is_flag=True, help="Only show what would be changed.")
yes = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
force = click.option("--force", is_flag=True, help="Write even while a workflow runs.")

project_path = click.argument(
    "path", type=PATH, shell_complete=complete_project, help="A project, or any directory in one."
)
project_path_or_cwd = click.argument(
    "path",
    type=PATH,
    default=Path(),
    shell_complete=complete_project,
    help="A project, or any directory in one.  [default: .]",
)
project_path_to_change = click.argument(
    "path",
    type=PATH,
    required=False,
    shell_complete=complete_project,
    help="A project; default: the current directory's.",
)
in_all = click.option("--all", "in_all", is_flag=True, help="All registered projects.")
project_path_or_all = click.argument(
    "path",
    type=PATH,
    required=False,
    shell_complete=complete_project,
    help="A project; default: the current directory's, else all.",
)
project_option = click.option(
    "--project",
    metavar="PATH",
    type=PATH,
    shell_complete=complete_project,
    help="The project; default: the current one.",
)
project_or_cwd_option = click.option(
    "--project",
    metavar="PATH",
    type=PATH,
    default=Path(),
    show_default=True,
    help="The project; default: the current directory.",
)
only_project_option = click.option(
    "--project", metavar="PATH", type=PATH, shell_complete=complete_project, help="Only items of this project."
)
in_global = click.option("--global", "in_global", is_flag=True, help="Search the global store (docs/packs.md).")
only_role = click.option("--role", metavar="NAME", shell_complete=complete_role, help="Only this role.")
as_of = click.option("--as-of", metavar="DATE", help="Plan as if it were that day, such as 2026-11-20.")
entry = click.argument("entry", shell_complete=complete_entry, help="An entry id, or a unique prefix of one.")
limit = click.option(
    "--limit",
    metavar="N",
    type=WholeNumber(1, 10_000),
    default=20,
    show_default=True,
    help="The number of rows, newest first.",
)
archive_root = click.option(
    "--root", metavar="ROOT", type=PATH, help="The directory that has memory/; default: that of the current project."
)

"""Arguments and options that several commands share, so that they read alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts (docs/json.md).")]
PlanJson = Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON for scripts (docs/json.md).")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Force = Annotated[bool, typer.Option("--force", help="Write although a workflow runs.")]

Project = Annotated[Path, typer.Argument(metavar="PATH", help="A project, or any directory in one.")]
OnlyHere = Annotated[Path | None, typer.Argument(metavar="PATH", help="Only this project.", show_default=False)]
Where = Annotated[
    Path | None,
    typer.Argument(metavar="PATH", help="A project; default: the current directory's, else all.", show_default=False),
]
Global = Annotated[bool, typer.Option("--global", help="In the global memory and the doc packs (docs/packs.md).")]
OneRole = Annotated[str | None, typer.Option("--role", metavar="NAME", help="Only this role.", show_default=False)]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="DATE", help="As if it were that day, like 2026-11-20.", show_default=False),
]
EntryId = Annotated[str, typer.Argument(metavar="ENTRY", help="The entry's id, or how it begins.")]

"""Commands that keep memory and knowledge files in shape."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from echod.cli.tree.base import app, example, shell_of
from echod.cli.tree.options import AsOf, DryRun, Force, Json, OneRole, PlanJson, Project, Where, Yes


@app.command(epilog=example("echod consolidate ~/src/my-project --dry-run"))
def consolidate(
    context: typer.Context,
    path: Where = None,
    role: OneRole = None,
    dry_run: DryRun = False,
    as_of: AsOf = None,
    json: PlanJson = False,
    force: Force = False,
) -> None:
    """Fold agents' findings into the memory now, also those whose consolidation was undone.

    Files that are being written wait. Every findings file is kept in the role's archive.
    """
    from echod.cli.consolidate import consolidate

    consolidate(shell_of(context), path, role, dry_run=dry_run, as_of=as_of, as_json=json, force=force)


@app.command(epilog=example("echod prune ~/src/my-project --dry-run"))
def prune(
    context: typer.Context,
    path: Where = None,
    role: OneRole = None,
    dry_run: DryRun = False,
    as_of: AsOf = None,
    json: PlanJson = False,
    yes: Yes = False,
    force: Force = False,
) -> None:
    """Archive what memory files hold beyond their limit. docs/lifecycle.md tells what goes first.

    Every entry that goes stands in the role's archive, and the file as it was beside it.
    """
    from echod.cli.by_hand import Wish
    from echod.cli.upkeep import maintain
    from echod.state.job import JobKind

    wish = Wish(dry_run=dry_run, yes=yes, force=force)
    maintain(shell_of(context), JobKind.PRUNE, path, role, wish, as_of=as_of, as_json=json)


@app.command(epilog=example("echod compress ~/src/my-project --dry-run"))
def compress(
    context: typer.Context,
    path: Where = None,
    role: OneRole = None,
    dry_run: DryRun = False,
    as_of: AsOf = None,
    json: PlanJson = False,
    yes: Yes = False,
    force: Force = False,
) -> None:
    """Put what knowledge files say of one topic into a few lines, where they are over their limit.

    Every reference is kept, and every text that goes stands in the role's archive.
    """
    from echod.cli.by_hand import Wish
    from echod.cli.upkeep import maintain
    from echod.state.job import JobKind

    wish = Wish(dry_run=dry_run, yes=yes, force=force)
    maintain(shell_of(context), JobKind.COMPRESS, path, role, wish, as_of=as_of, as_json=json)


@app.command(epilog=example("echod scrub ~/src/my-project --dry-run"))
def scrub(
    context: typer.Context,
    path: Project = Path(),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what stands where.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Also change etched entries and notes.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write although a workflow runs.")] = False,
    json: Json = False,
) -> None:
    """Find secrets in a project's memory, archives and backups, and take them out.

    Says file, entry and kind, never the secret. Ends with 1 while one is left.
    """
    from echod.cli.scrub import scrub

    scrub(shell_of(context), path, dry_run=dry_run, yes=yes, force=force, as_json=json)

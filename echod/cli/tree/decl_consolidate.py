"""Commands that keep memory and knowledge files in shape."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from echod.cli import options
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod consolidate ~/src/my-project --dry-run"))
@options.project_path_or_all
@options.only_role
@options.dry_run
@options.as_of
@options.plan_json
@options.force
@pass_command_context
def consolidate(
    context: CommandContext,
    *,
    path: Path | None,
    role: str | None,
    dry_run: bool,
    as_of: str | None,
    json: bool,
    force: bool,
) -> None:
    """Fold agents' findings into the memory now, also those whose consolidation was undone.

    Files that are being written wait. Every findings file is kept in the role's archive.
    """
    from echod.cli.commands.consolidate import consolidate_findings

    consolidate_findings(context, path, role, dry_run=dry_run, as_of=as_of, as_json=json, force=force)

"""Commands that keep memory and knowledge files in shape."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from echod.cli import options
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod prune ~/src/my-project --dry-run"))
@options.project_path_or_all
@options.only_role
@options.dry_run
@options.as_of
@options.plan_json
@options.yes
@options.force
@pass_command_context
def prune(
    context: CommandContext,
    *,
    path: Path | None,
    role: str | None,
    dry_run: bool,
    as_of: str | None,
    json: bool,
    yes: bool,
    force: bool,
) -> None:
    """Archive what memory files hold beyond their limit. What goes first stands in docs/lifecycle.md.

    Every entry that goes stands in the role's archive, and the file as it was beside it.
    """
    from echod.cli.by_hand import WriteOptions
    from echod.cli.commands.prune import prune_or_compress
    from echod.state.job import JobKind

    write_options = WriteOptions(dry_run=dry_run, yes=yes, force=force)
    prune_or_compress(context, JobKind.PRUNE, path, role, write_options, as_of=as_of, as_json=json)


@app.command(epilog=example("echod compress ~/src/my-project --dry-run"))
@options.project_path_or_all
@options.only_role
@options.dry_run
@options.as_of
@options.plan_json
@options.yes
@options.force
@pass_command_context
def compress(
    context: CommandContext,
    *,
    path: Path | None,
    role: str | None,
    dry_run: bool,
    as_of: str | None,
    json: bool,
    yes: bool,
    force: bool,
) -> None:
    """Put what knowledge files say of one topic into a few lines, where they are over their limit.

    Every reference is kept, and every text that goes stands in the role's archive.
    """
    from echod.cli.by_hand import WriteOptions
    from echod.cli.commands.prune import prune_or_compress
    from echod.state.job import JobKind

    write_options = WriteOptions(dry_run=dry_run, yes=yes, force=force)
    prune_or_compress(context, JobKind.COMPRESS, path, role, write_options, as_of=as_of, as_json=json)

"""Commands about what echod does: run, status, doctor, gate, jobs, log, undo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from echod.cli import options
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod gate ~/src/my-project"))
@options.project_path_or_cwd
@options.json
@pass_command_context
def gate(context: CommandContext, *, path: Path, json: bool) -> None:
    """May the project's memory be written now, and if not, why and until when?"""
    from echod.cli.gate import show_gate

    show_gate(context, path, as_json=json)

"""Commands about what echod does: run, status, doctor, gate, jobs, log, undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from echod.cli import options
from echod.cli.root import app, example, pass_command_context

if TYPE_CHECKING:
    from echod.cli.context import CommandContext


@app.command(epilog=example("echod status --json"))
@options.json
@pass_command_context
def status(context: CommandContext, *, json: bool) -> None:
    """How is it? What waits, and why? What needs a person?

    Ends with 0 (healthy), 1 (needs a look), 3 (not running) or 4 (running, but not answering).
    """
    from echod.cli.status import show_status

    show_status(context, as_json=json)

"""`echod mcp`: serve the memory to an agent through the Model Context Protocol.

A module of its own, since it is the only command that needs the extra.
"""

from __future__ import annotations

import importlib.util

import click

from echod.cli.context import CommandContext
from echod.cli.root import example, pass_command_context
from echod.errors import EchodError


class ExtraMissingError(EchodError):
    """The official SDK is not installed."""


@click.command(epilog=example("echod mcp"))
@pass_command_context
def mcp(context: CommandContext) -> None:
    """Serve search to an agent through MCP."""
    if importlib.util.find_spec("mcp") is None or importlib.util.find_spec("mcp_types") is None:
        raise ExtraMissingError(
            "The MCP server needs echod with its extra `mcp`. In a checkout: uv tool install --force '.[mcp]' "
            "(or pipx install --force '.[mcp]', or pip install '.[mcp]')"
        )
    context.configure_log_file()
    from echod.mcp_server.lifetime import end_process, end_with_parent, end_with_signals

    end_with_signals()
    end_with_parent(end_process)  # before the SDK is loaded, which takes long enough for a client to end
    from echod.mcp_server.server import serve
    from echod.mcp_server.session import ServerSession

    session = ServerSession(context.paths, context.environ, context.cwd, context.now)
    try:
        serve(session)
    finally:
        session.close()

"""`echod mcp`: serve the memory to an agent through the Model Context Protocol.

A module of its own, since it is the only command that needs the extra.
"""

from __future__ import annotations

import importlib.util

from echod.cli.context import CommandContext
from echod.errors import EchodError
from echod.lazy_imports import lazy_imports

with lazy_imports(__name__):
    from echod.mcp_server import lifetime, server
    from echod.mcp_server import session as server_session


class ExtraMissingError(EchodError):
    """The official SDK is not installed."""


def mcp(context: CommandContext) -> None:
    """Run `echod mcp`."""
    if importlib.util.find_spec("mcp") is None or importlib.util.find_spec("mcp_types") is None:
        raise ExtraMissingError(
            "The MCP server needs echod with its extra `mcp`. In a checkout: uv tool install --force '.[mcp]' "
            "(or pipx install --force '.[mcp]', or pip install '.[mcp]')"
        )
    context.configure_log_file()
    lifetime.end_with_signals()
    lifetime.end_with_parent(
        lifetime.end_process
    )  # before the SDK is loaded, which takes long enough for a client to end
    session = server_session.ServerSession(context.paths, context.environ, context.cwd, context.now)
    try:
        server.serve(session)
    finally:
        session.close()

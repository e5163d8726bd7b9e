"""The MCP server: search and access records for agents, in the protocol that they speak.

Read in this order: `schemas` (the tools, with the names and arguments that agents know), `memory_tools` (a call to an
answer), `session` (and the resources), `server` (the protocol, and its end with its client).

Only `server` imports the official SDK, which takes half a second to load. Nothing else in echod imports this package,
apart from `echod mcp`. The server needs no service. It writes access records, groups and the spool, and no memory file.

Modules for other packages: `server`, `session`.
"""

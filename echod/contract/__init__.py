"""What `--json` prints: the contract for scripts (docs/json.md). Values only; whoever knows a fact fills them in.

A module for each command, so that a command loads what it prints; `echod.contract.status` has those of `status`.
Plain dataclasses rather than pydantic models, since commands must answer before pydantic would be imported. `schema`
grows when a field changes its meaning or goes; new fields may come at any time.
"""

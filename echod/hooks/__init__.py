"""Agents' hooks. Standard library only, and little of it, because a hook never fails and returns at once.

The daemon may be dead, the settings invalid, the disk full: the agent must not notice. A reported event stays in the
spool until a job takes it. This `__init__` imports nothing; the command line imports `run` directly.

Modules for other packages: `mentions`, `offers`, `run`, `spool`.
"""

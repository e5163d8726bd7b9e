"""The whole command line: the tree's root with every branch on it."""

from __future__ import annotations

from echod.cli.tree import (
    claude,
    completion,
    config,
    entries,
    memory,
    packs,
    projects,
    review,
    running,
    service,
    upkeep,
    workflow,
)
from echod.cli.tree.base import app

__all__ = [
    "app",
    "claude",
    "completion",
    "config",
    "entries",
    "memory",
    "packs",
    "projects",
    "review",
    "running",
    "service",
    "upkeep",
    "workflow",
]

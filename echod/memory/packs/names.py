"""What a doc pack may be called, and the domains that entries of the global memory are sorted by."""

from __future__ import annotations

import re

_STACK = re.compile(r"[A-Za-z][A-Za-z0-9_-]{1,63}")

DOMAINS = ("backend", "frontend", "devops", "database", "testing", "architecture", "design", "general")
"""Readers of these files take every other word for `general`."""


def is_stack(name: str) -> bool:
    """Whether this can be a pack's name: it becomes a part of paths, and stands on command lines."""
    return _STACK.fullmatch(name) is not None

"""How much of a file is read."""

from __future__ import annotations

SIZE_LIMIT = 10 * 1024 * 1024
"""Bytes of a memory, knowledge or findings file. Other readers of these files stop at the same size."""

"""What a memory file begins with."""

from __future__ import annotations


def new_memory_file(role: str) -> bytes:
    """What a memory file holds before its first entry; the role without a name is the global memory's."""
    name = role or "global"
    return f"<!-- echo-schema: v1 -->\n# {name[:1].upper()}{name[1:]} Memory\n".encode()

"""Reading a memory or knowledge file for whoever only looks; whoever changes it reads it with more care."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from echod.memory.limits import SIZE_LIMIT
from echod.plain_file import read_plain

if TYPE_CHECKING:
    from echod.memory.model import Document


def read_document(file: Path) -> Document | None:
    """What a file holds; None where there is none, or none that can be understood.

    Raises:
        OSError: it cannot be read.
    """
    # Slow to load, and mostly nothing has to be read.
    from echod.memory.document import parse  # noqa: PLC0415
    from echod.memory.model import Unreadable  # noqa: PLC0415

    try:
        document = parse(read_plain(file, SIZE_LIMIT))
    except FileNotFoundError:
        return None
    return None if isinstance(document, Unreadable) else document

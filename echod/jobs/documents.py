"""Reading a memory or knowledge file for whoever only looks; whoever changes it reads it with more care."""

from __future__ import annotations

from pathlib import Path

from echod.memory.model import SIZE_LIMIT, Document
from echod.plain_file import read_plain


def read_document(file: Path) -> Document | None:
    """What a file holds; None where there is none, or none that can be understood.

    Raises:
        OSError: it cannot be read.
    """
    from echod.memory.document import parse  # noqa: PLC0415  slow to load, and mostly nothing has to be read

    try:
        document = parse(read_plain(file, SIZE_LIMIT))
    except FileNotFoundError:
        return None
    return document if isinstance(document, Document) else None

"""The last look at a plan: does the file that it would write read as what it was made of?

A code block or comment that is never closed ends before the next entry, so taking an entry out can change what the
text around it means. A plan that would do so is not carried out.
"""

from __future__ import annotations

from echod.memory.document import parse
from echod.memory.model import Document, Unreadable


def reads_as_written(document: Document) -> bool:
    """Whether the document's bytes, read again, give just this document."""
    again = parse(document.render())
    return not isinstance(again, Unreadable) and again == document

"""Counting lines: a line is what a newline ends, and an entry's lines do not count the blank ones at its end."""

from __future__ import annotations

from echod.memory.model import Document


def room(text: str) -> int:
    """Lines that a text takes in its file, blank ones at its end included."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def entry_lines(text: str) -> int:
    """Lines of an entry."""
    return room(text.rstrip(" \t\r\n"))


def document_lines(document: Document) -> int:
    """Lines of a whole file."""
    texts = [text for text in (document.preamble, *(block.text for block in document.blocks)) if text]
    # A byte order mark before the first heading is text, but no line.
    return sum(text.count("\n") for text in texts) + (bool(texts) and not texts[-1].endswith("\n"))

"""Adding knowledge blocks to a knowledge file: at its end, each once, every earlier byte as it was."""

from __future__ import annotations

from collections.abc import Sequence

from echod.memory.compose import ComposeError, append_entries, newline_of
from echod.memory.document import parse
from echod.memory.model import Document, Unreadable


def new_knowledge_file(role: str) -> bytes:
    """What a knowledge file holds before its first block."""
    return f"<!-- echo-schema: v1 -->\n# {role[:1].upper()}{role[1:]} Knowledge\n".encode()


def with_blocks(role: str, knowledge: bytes | None, blocks: Sequence[str]) -> bytes | Unreadable:
    """The knowledge file with these blocks at its end; those that it holds already are passed over.

    Args:
        role: the role's name, for the title of a new file.
        knowledge: the file's bytes; None if there is none.
        blocks: texts as `knowledge_blocks` gives them.

    Raises:
        ComposeError: a code block or comment that is never closed in the file would swallow the new blocks.
    """
    document = parse(new_knowledge_file(role) if knowledge is None else knowledge)
    if isinstance(document, Unreadable):
        return document
    standing = {_content(block.text) for block in document.blocks}
    new = [text for text in dict.fromkeys(blocks) if _content(text) not in standing]
    if not new:
        return document.render() if knowledge is None else knowledge
    newline = newline_of(document)
    data = append_entries(document, [text.replace("\n", newline) for text in new])
    after = parse(data)
    if isinstance(after, Unreadable) or not _continues(document, after, new):
        raise ComposeError("A code block or comment that is never closed in this file would swallow the new blocks.")
    return data


def _continues(before: Document, after: Document, new: Sequence[str]) -> bool:
    """Whether `after` has the blocks of `before` and the new ones behind them, and nothing else."""
    contents = [_content(block.text) for block in (*before.blocks,)] + [_content(text) for text in new]
    return [_content(block.text) for block in after.blocks] == contents


def _content(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip()

"""Compress entries without a language model: one topic in three to five lines, with every reference.

Read in this order: `text` (learnings, statements and references of a text), `blocks` (entries of one topic as a
knowledge block), `compress` (a whole file). Scores, today's date, pins and archives are `policy`'s.

For callers:

- `knowledge_blocks(materials)`: the blocks that entries become; `extract_material(block, entry, day)` reads one.
- `with_blocks(role, knowledge, blocks)`: a knowledge file with blocks added.
- `compress_knowledge(document, sources, limit)`: a compressed knowledge file.
- `extract_references(entry, body)`: the references that are kept.
"""

from __future__ import annotations

from echod.memory.knowledge.blocks import (
    BlockMaterial,
    compose_block,
    extract_material,
    is_knowledge_block,
    knowledge_blocks,
    new_knowledge_file,
    with_blocks,
)
from echod.memory.knowledge.compress import CompressibleEntry, CompressionResult, compress_knowledge
from echod.memory.knowledge.text import extract_references

__all__ = [
    "BlockMaterial",
    "CompressibleEntry",
    "CompressionResult",
    "compose_block",
    "compress_knowledge",
    "extract_material",
    "extract_references",
    "is_knowledge_block",
    "knowledge_blocks",
    "new_knowledge_file",
    "with_blocks",
]

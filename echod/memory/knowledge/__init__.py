"""Compress entries without a language model: one bullet for each learning, with every reference.

Read in this order: `text` (learnings, statements and references of a text), `blocks` (entries of one topic as a
knowledge block), `compress` (a whole file). Scores, today's date, pins and archives are `policy`'s.
"""

from __future__ import annotations

from echod.memory.knowledge.blocks import (
    BlockMaterial,
    compose_block,
    extract_materials,
    is_knowledge_block,
    knowledge_blocks,
    new_knowledge_file,
    with_blocks,
)
from echod.memory.knowledge.compress import CompressibleEntry, CompressionResult, compress_knowledge
from echod.memory.knowledge.text import extract_references

__all__ = [
    "BlockMaterial", "CompressibleEntry", "CompressionResult", "compose_block", "compress_knowledge",
    "extract_materials", "extract_references", "is_knowledge_block", "knowledge_blocks", "new_knowledge_file",
    "with_blocks",
]  # fmt: skip

"""Compression without a model: what the entries of one topic say, in three to five lines, with every reference.

Read in this order: `sentences`, `learnings` and `references` (what is taken from a text), `material` (what one entry
puts into a block), `topics` (which entries belong together), `blocks` (how a block is written), `compress` (a whole
file), `addition` (new blocks for a file). Knows nothing of scores, dates of today, pins and archives; `policy` does.

For others:

- `knowledge_blocks(materials)`: the blocks that entries become; `extract_material(block, entry, day)` reads one.
- `with_blocks(role, knowledge, blocks)`: a knowledge file with blocks added.
- `compress_knowledge(document, sources, limit)`: a knowledge file compressed.
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

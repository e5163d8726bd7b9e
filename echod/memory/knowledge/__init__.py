"""Compression without a model: what the entries of one topic say, in three to five lines, with every reference.

Read in this order: `sentences`, `learnings` and `references` (what is taken from a text), `material` (what one entry
puts into a block), `topics` (which entries belong together), `blocks` (how a block is written), `compress` (a whole
file), `addition` (new blocks for a file). Knows nothing of scores, dates of today, pins and archives; `policy` does.

For others:

- `knowledge_blocks(materials)`: the blocks that entries become; `material_of(block, entry, day)` reads one.
- `with_blocks(role, knowledge, blocks)`: a knowledge file with blocks added.
- `compress(document, sources, limit)`: a knowledge file compressed.
- `references_of(entry, body)`: the references that are kept.
"""

from __future__ import annotations

from echod.memory.knowledge.blocks import (
    Material,
    compose_block,
    is_knowledge,
    knowledge_blocks,
    material_of,
    new_knowledge_file,
    with_blocks,
)
from echod.memory.knowledge.compress import Compressed, Source, compress
from echod.memory.knowledge.text import references_of

__all__ = [
    "Compressed",
    "Material",
    "Source",
    "compose_block",
    "compress",
    "is_knowledge",
    "knowledge_blocks",
    "material_of",
    "new_knowledge_file",
    "references_of",
    "with_blocks",
]

"""How much less there is to read after compression, and that every reference is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from echod.memory.document import parse
from echod.memory.knowledge import extract_materials, extract_references, knowledge_blocks
from echod.memory.model import Block, Document, Layer
from tests.bench.corpus import corpus
from tests.bench.figures import Cells, Figures, Row, Table, at_least, none
from tests.bench.made import knowledge_file
from tests.bench.workspace import Workspace

_BAR_PERCENT = 22
_TODAY = date(2026, 12, 31)
_TOKEN = 4
"""Characters that are counted as one token."""


def measure(space: Workspace) -> Figures:
    """Made knowledge files and, where the corpus is, real memories, with and without their observations."""
    del space
    files = {f"made, {count} entries": _read(knowledge_file(count)) for count in (40, 400)}
    if (root := corpus()) is not None:
        for path in sorted(root.glob("*-echoes/**/MEMORY.md")):
            files[f"{path.parent.parent.name}/{path.parent.name}"] = _read(path.read_bytes())
    lines = [line for name, document in files.items() for line in _compressed(name, document)]
    least = min(int(line[5]) for line in lines)
    lost = sum(int(line[6]) - int(line[7]) for line in lines)
    header = ("file", "entries", "blocks", "tokens", "then", "less %", "references", "kept")
    return Figures(
        (
            Row("fewer tokens after compression, the least of all files", least, "%", bar=at_least(_BAR_PERCENT)),
            Row("references that compression lost", lost, "", bar=none()),
        ),
        tables=(Table("Compression", header, tuple(lines)),),
    )


def _compressed(name: str, document: Document) -> Iterator[Cells]:
    everything = [block for block in document.blocks if block.entry]
    learnings = [block for block in everything if block.entry and block.entry.layer is not Layer.OBSERVATIONS]
    yield _counted(name, everything)
    if learnings and len(learnings) != len(everything):
        yield _counted(f"{name}, learnings", learnings)


def _counted(name: str, chosen: Sequence[Block]) -> Cells:
    blocks = knowledge_blocks(
        [
            material
            for block in chosen
            if (entry := block.entry)
            for material in extract_materials(block, entry, entry.verified or entry.heading_date or _TODAY)
        ]
    )
    text = "\n".join(blocks)
    references = {
        reference
        for block in chosen
        if block.entry
        for reference in extract_references(block.entry, block.text[block.entry.body.start : block.entry.body.end])
    }
    kept = sum(reference in text for reference in references)
    before, after = sum(len(block.text) for block in chosen), len(text)
    less = int(100 * (1 - after / before))
    return name, len(chosen), len(blocks), before // _TOKEN, after // _TOKEN, less, len(references), kept


def _read(data: bytes) -> Document:
    document = parse(data)
    assert isinstance(document, Document)
    return document

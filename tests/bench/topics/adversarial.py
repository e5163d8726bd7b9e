"""What a kilobyte costs each reader of foreign files at most: input that was made to take long."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

from echod.inspection.inspect import inspect_file
from echod.memory.consolidation.deduplicate import FindingsFile, read_and_redact
from echod.memory.document import estimate_parsed_bytes, parse
from echod.memory.merge import merge
from echod.memory.model import Document
from echod.memory.packs.manifest import read_manifest, read_registry
from echod.memory.redact import locate_secrets, redact_bytes
from echod.projects.section import SectionError, read_section
from tests.bench.figures import Figures, Row, Table
from tests.bench.workspace import Workspace

_DAY = date(2026, 11, 1)
_BYTES = 12_000
_GROWTH = 4
_ENTRY = "## Notes \u2014 a (2026-01-01)\n"

INPUTS: dict[str, str] = {
    "headings": "## a\n",
    "entries": _ENTRY,
    "bullet entries": "### [2026-01-01] x\n- **layer**: traced\n",
    "equal lines": "  x\n",
    "list items": "- a\n",
    "fences": "```x\n",
    "quotations": "> ",
    "nested lists": "- ",
    "near secrets": "password: aB3x9Kq2 ",
    "brackets": "[",
    "flow mappings": "{a: ",
    "values": "a: b\n",
}
"""Units that are repeated; each was the worst for one of the readers."""


def measure(space: Workspace) -> Figures:
    """The worst cost per kilobyte of each reader, and how it grows with the size."""
    del space
    rows, cells = [], []
    for reader, read in READERS.items():
        costs = {name: _cost(read, unit, _BYTES) for name, unit in INPUTS.items()}
        worst = max(costs, key=lambda name: costs[name])
        per_kilobyte = costs[worst] / (_BYTES / 1000) * 1000
        growth = _cost(read, INPUTS[worst], _BYTES * _GROWTH) / max(costs[worst], 1e-6)
        rows.append(Row(f"adversarial input: {reader}", per_kilobyte, "ms/KB", note=worst))
        cells.append((reader, worst, f"{per_kilobyte:.3f}", f"{growth:.1f}"))
    header = ("reader", "worst input", "ms/KB", f"time of {_GROWTH} times the size")
    return Figures(tuple(rows), tables=(Table("Adversarial input", header, tuple(cells)),))


def _cost(read: Callable[[bytes], object], unit: str, size: int) -> float:
    data = (unit * (size // len(unit.encode()) + 1)).encode()[:size].decode(errors="ignore").encode()
    begin = time.process_time()
    read(data)
    return time.process_time() - begin


def _merge_edited(data: bytes) -> object:
    versions = [parse(b"## first\n" + text) for text in (data, b"new\n" + data, data + b"\nlast\n")]
    base, visible, other = versions
    if isinstance(base, Document) and isinstance(visible, Document) and isinstance(other, Document):
        return merge(base, visible, other)
    return None


def _read_settings(data: bytes) -> object:
    try:
        return read_section(b"echoes: " + data, Path("talisman.yml"))
    except SectionError as error:
        return error


READERS: dict[str, Callable[[bytes], object]] = {
    "estimate": estimate_parsed_bytes,
    "memory file": parse,
    "inspection": lambda data: inspect_file(Path("MEMORY.md"), (0, 0, 0, 0), data),
    "findings file": lambda data: read_and_redact(FindingsFile("a-findings.md", "a", data, _DAY), _DAY),
    "secrets": redact_bytes,
    "secret scan": locate_secrets,
    "three-way merge": _merge_edited,
    "project settings": _read_settings,
    "registry": read_registry,
    "manifest": lambda data: read_manifest(data, "fastapi"),
}

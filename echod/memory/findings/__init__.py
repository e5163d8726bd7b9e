"""Read what an agent wrote into its findings file, in whatever form it wrote it.

Lenient about form (headings, bullets, bold, dates, order, missing metadata) and strict about one thing: no word of a
learning is dropped. Everything that is not clearly a heading's decoration, a known label or boilerplate around the
findings becomes a part of a finding.

Read in this order: `reader` (from bytes to findings), `sections` (the file's envelope, and where a learning starts),
`lists` (learnings without headings), `records` (which lines are headings; tables, JSON, YAML), `nothing` (what is no
learning), `fields` (metadata apart from the learning) and `text` (dates, layers, labels and titles).
"""

from __future__ import annotations

from echod.memory.findings.reader import DEFAULT_LAYER, Finding, read_findings
from echod.memory.findings.text import canonical_title

__all__ = ["DEFAULT_LAYER", "Finding", "canonical_title", "read_findings"]

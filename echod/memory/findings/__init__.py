"""Reads what an agent wrote into its findings file, however it wrote it.

Lenient in everything that is form (headings, bullets, bold, dates, order, missing metadata) and strict in one thing:
no word of a learning is dropped. What is not clearly a heading's decoration, a known label or chatter around the
findings goes into a finding.

Read in this order: `reader` (from bytes to findings), `wrapping` and `unfolding`
(what stands around and in place of headings), `sections` (what starts a learning), `outline` (what is a
heading), `titles` (what a heading says), `gleaning` (metadata apart from learning), `stated` (what becomes of it),
`spellings` (how dates, layers and labels are written), `chatter` (what says nothing).
"""

from __future__ import annotations

from echod.memory.findings.reader import DEFAULT_LAYER, Finding, read_findings

__all__ = ["DEFAULT_LAYER", "Finding", "read_findings"]

"""The pure core: bytes -> document -> decisions -> bytes.

Nothing here uses files, the clock, settings or the log. Dates and policy values are arguments. Modules are imported one
by one, because light callers need only `model` or `policy_model`. Read in this order: `model` (the values of a memory
file), `document` (from bytes to a document), `markdown` (headings), `forms` (entries), `edit`, `identity`, `findings`,
`similarity`, `compose`, `consolidation`, `policy`, `knowledge`, `packs`, `redact`, `merge`, `lineage`, `conservation`.

`archive` is the format of entries that left a memory, and `branches` merges two branches of a memory or an archive.

Modules for other packages: `archive`, `branches`, `entry_matching`, `lineage`, `observations`,
`prompt_injection`, `proposals`, `session_summary`, `shorten`, `specificity`, `text`.
"""

MAX_FILE_BYTES = 10 * 1024 * 1024
"""The size limit of a memory, knowledge or findings file. Larger files are not read."""

MEMORY_FILE = "MEMORY.md"
KNOWLEDGE_FILE = "knowledge.md"

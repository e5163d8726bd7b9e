"""The pure core: bytes -> document -> decisions -> bytes.

Nothing here uses files, the clock, settings or the log. Dates and policy values are arguments. Modules are imported one
by one, because light callers need only `model` or `policy_model`. Read in this order: `model` (the values of a memory
file), `document` (from bytes to a document), `markdown` (headings), `forms` (entries), `edit`, `identity`, `findings`,
`similarity`, `compose`, `consolidation`, `policy`, `knowledge`, `packs`, `redact`, `merge`, `lineage`, `conservation`.

Two branches of a file are merged by `branches`, and of an archive by `archive_union`, which also keeps forgotten
entries out.

Modules for other packages: `archive_union`, `branches`, `entry_matching`, `exposed_secrets`, `lineage`, `observations`,
`prompt_injection`, `proposals`, `renames`, `session_summary`, `shorten`, `specificity`, `text`.
"""

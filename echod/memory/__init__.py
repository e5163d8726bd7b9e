"""The pure core: bytes -> document -> decisions -> bytes.

No file, clock, setting or log is touched here; dates and policy values come in as arguments. Read in this order:
`document` and its values in `model` (what a memory file is), `forms` with `fields` and `values` (how entries look in
the field), `scan` with `commonmark` (what is a heading and what only looks like one), `edit`, `identity`, `findings`,
`similarity`, `compose`, `consolidate`, `redact`, `merge`, `conservation`.
"""

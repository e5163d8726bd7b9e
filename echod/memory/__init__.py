"""The pure core: bytes -> document -> decisions -> bytes.

No file, clock, setting or log is touched here; dates and policy values come in as arguments. Read in this order:
`document` (what a memory file is), `forms` (how entries look in the field), `edit`, `identity`, `findings`,
`similarity`, `compose`, `consolidate`, `redact`, `merge`, `conservation`.
"""

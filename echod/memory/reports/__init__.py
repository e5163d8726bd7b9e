"""Turn the reports that workflows leave behind into memory.

Read in this order: `model` (the values), `reader` (every form of report), `history` (which findings are one flaw),
`intake` (each run once, without secrets, and what the user's own command thinks of a learning) and `learnings` (what
becomes an entry).
"""

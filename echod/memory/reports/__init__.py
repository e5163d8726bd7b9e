"""Turn the reports that workflows leave behind into memory.

Read in this order: `model` (the values), `reader` (every form of report), `history` (which findings are one flaw),
`intake` (each run once, without secrets), `learnings` (what becomes an entry) and `validation` (asking the user's own
command about a learning).
"""

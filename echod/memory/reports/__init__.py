"""Turn the reports that workflows leave behind into memory.

Read in this order: `reader` (every form of report), `history` (what was read, and which findings are one flaw),
`learnings` (what becomes an entry) and `validation` (asking the user's own command about a learning).
"""

"""Solutions for people: what `docs/solutions/` contains, and the rules by which an entry becomes one.

Read in this order: `document` (reads and writes a solution, and finds its parts in an entry), `promotion` (the rules,
duplicates, file names and the hash that refers to an entry). docs/solutions.md has the rules for users.

Modules for other packages: `document`, `promotion`.
"""

"""Claude Code's own memory: a directory of small files and an index, checked as the host reads them.

`notes` reads a directory: the index, what the host loads of it, and the files. `checks` finds what is wrong, and
`repair` plans changes of the index alone.

Modules for other packages: `checks`, `notes`, `repair`.
"""

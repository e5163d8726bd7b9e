"""The solutions of a project on the disk: list and check them, and make them searchable. Read-only.

`memory.solutions` reads and plans them, and `jobs.solutions` writes them.

Modules for other packages: `library`, `source`.
"""

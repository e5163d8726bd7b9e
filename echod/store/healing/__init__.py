"""Restores entries that another program overwrote, and merges writes that arrive after a commit.

Modules for other packages: `archives`, `heal`, `late_writes`.
"""

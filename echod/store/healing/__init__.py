"""Finishes commits after a crash, restores overwritten entries, and merges writes that arrive after a commit.

Modules for other packages: `heal`, `late_writes`, `recovery`.
"""

"""Apply a commit plan: stage, record the intent, archive, exchange, claim.

Modules for other packages: `apply`, `commit`, `context`, `file_steps`.
"""

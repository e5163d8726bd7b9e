"""Plan how findings are added to a memory: read, match, supersede, compose.

Read in this order: `deduplicate`, `plan`. Callers import from the modules, because `inspection.review` needs
only the values of `deduplicate`, and `plan` loads the policies.
"""

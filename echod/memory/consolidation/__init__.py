"""Plan how findings are added to a memory: read, match, supersede, compose.

Read in this order: `intake`, `deduplicate`, `supersede`, `plan`. Callers import from the modules, because
`inspection.review` needs only the values of `supersede`, and `plan` loads the policies.
"""

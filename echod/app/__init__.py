"""Composition roots, and the deletion of a project's data.

Imported by module path: `context` for read-only commands, which must not load the job code that `services` needs.

Modules for other packages: `evidence` (the evidence of found entries), `forget_project`, `import_access`,
`moved_projects`, `search` (which sources a search looks at).
"""

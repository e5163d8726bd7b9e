"""Composition roots, and the deletion of a project's data.

Imported by module path: `context` for read-only commands, which must not load the job code that `services` needs.

Modules for other packages: `import_access`, `moved_projects` (and how a project is forgotten), `search` (which sources
a search looks at), `found_evidence` (the evidence of what it found).
"""

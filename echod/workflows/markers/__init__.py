"""Read the workflow markers on disk: one module for the kinds that belong together.

Modules for other packages: `agents`, `arcs`, `edits`, `state_files`.
"""

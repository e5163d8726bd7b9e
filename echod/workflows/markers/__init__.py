"""Read the workflow markers on disk: one module for the kinds that belong together.

Modules for other packages: `activity`, `workflow_files`.
"""

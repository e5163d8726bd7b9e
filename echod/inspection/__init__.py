"""Read-only views of a project's memory: counts, entries, review items and secrets on disk."""

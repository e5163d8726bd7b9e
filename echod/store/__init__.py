"""The only code that writes echo files: layout, locks, commit, journal, undo (docs/durability.md)."""

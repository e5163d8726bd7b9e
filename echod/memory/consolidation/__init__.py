"""Plans how findings are added to a memory: read, match, supersede, compose."""

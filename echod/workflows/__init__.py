"""Is a workflow running in this project? Markers on disk -> a verdict with reasons (docs/workflows.md)."""

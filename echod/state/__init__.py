"""The one SQLite database: jobs, workflows seen, references, activity. Rebuilt from the disk when damaged."""

"""Read the workflow markers on disk: one module for each kind, called as `module.read_markers(...)`."""

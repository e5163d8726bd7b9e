"""One module for each kind of workflow marker on disk."""

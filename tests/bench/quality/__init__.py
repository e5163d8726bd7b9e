"""A made memory file of 2,000 lines, the judged list of what a future reader should find in it, and the score."""

"""The user's settings: their values and defaults, and the loader that checks the file and the environment."""

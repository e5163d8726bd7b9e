"""The command line as a tree: every command with its options, its help and an example, and nothing else.

Each command's work is in a module of its own in `echod.cli`, imported when the command runs.
"""

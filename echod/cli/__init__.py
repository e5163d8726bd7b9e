"""The command line. `main.main` is the entry point; no other package imports from here, so nothing is exported.

To read in this order: `main` (errors and exit codes), `root` (the table of commands), `context` (what a command works
with), `targets` (which store, role and entry is meant), `execute` (how a typed command changes memory), `commands/`
(one module for related commands, imported when one of them is used).
"""

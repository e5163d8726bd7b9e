"""The commands. `echod.cli.root` names the module of each and imports it when the command is used.

Modules for completions: `log`, `packs`, `review`.
"""

"""Claude Code's own memory on the disk: where it is, changes of it with an undo, and copies of it.

Read only, except for `changes`, which writes when the user asks for it. `memory/auto_memory` decides what is wrong.

Modules for other packages: `changes`, `copies`, `places`.
"""

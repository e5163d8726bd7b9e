"""The declarations of all commands, by section of the help: their names, options and help.

Help and usage errors load one of these modules and none of `cli/commands`, whose functions `implemented_by` finds when
a command runs. The completion of values (entries, packs, jobs) loads what lists them.
"""

"""The declarations of all commands, by section of the help: their names, options and help.

Help, usage errors and completion load one of these modules and nothing more. `cli/commands` has the functions, which
`implemented_by` finds when a command runs.
"""

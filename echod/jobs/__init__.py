"""One module per job kind: plan from the state of a role, commit the change set, and return an outcome.

The daemon and the commands run the same code. `base` has what all kinds share, `archives` what those share that archive
entries. Modules may be short, since each kind has its own. Other packages import them by path, since a command needs
only one of them.
"""

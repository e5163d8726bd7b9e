"""The job kinds: plan from the state of a role, commit the change set, and return an outcome.

The daemon and the commands run the same code. `base` has what they share, `manual` the user's decisions about entries.
Other packages import the modules by path, since a command needs only one of them.

Every job raises the BusyError, RefusedError and StoreError of `RoleSession.commit`; nothing was changed then.

Modules for other packages: `answer_review`, `archive`, `compress`, `consolidate`, `ingest`, `migrate`, `observe`,
`packs`, `promote`, `propose`, `prune`, `solutions`, `sync`.
"""

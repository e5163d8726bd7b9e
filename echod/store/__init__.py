"""The only code that writes echo files: layout, locks, commit, journal, undo (docs/durability.md).

Other packages import its modules, not this package, because most callers need only light ones:

    layout, errors, git           paths, what is passed over, limits and checks, without reading memory
    reader                        read-only access to stores and their journal
    engine, undo                  writing: the engine, a role held for one job, the result of an undo
    role                          the lock of other writers
    changes                       the values that jobs pass to a session
    leftovers, private_directory  files of echod's own in a store
    create, fs                    new stores and roles, notes without a commit, safe system calls and reads
    commit.steps                  the steps of a commit, for tracers
    journal.ledger, .retention    items for the user, and the deletion of a store's journal

All other modules are internal.

Modules for other packages: `changes`, `create`, `engine`, `errors`, `fs`, `git`, `layout`, `leftovers`,
`private_directory`, `reader`, `role`, `undo`.
"""

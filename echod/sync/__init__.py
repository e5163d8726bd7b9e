"""More than one clone, more than one machine: a merge driver for git, and memories that travel through a remote.

`driver` imports little, because git starts it once for each file that it merges. `registration` sets a clone up, and
`resolve` is for a merge that is in conflict already. `repository` also runs the user's git. `exchange` brings a memory
that no project tracks together with its remote, in a `repository` of its own, and `job` joins it with the store.
"""

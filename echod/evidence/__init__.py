"""Check the evidence of entries against the files of a project and the history that git keeps, without running git.

Read in this order: `git_objects` (objects, loose and packed), `repository` (the files of a project as they are now, and
the commits, trees and history of a path), `verifier` (the state of each citation), `entries` (those of a memory file,
which loads the parser). The comparison itself is pure, in
`echod.memory.evidence`; fingerprints are stored by `echod.state.fingerprints`.

Modules for other packages: `entries`, `verifier`.
"""

"""Check the evidence of entries against the files of a project and the history that git keeps, without running git.

Read in this order: `git_objects` (objects, loose and packed), `repository` (commits, trees and the history of a path),
`project_files` (the files as they are now), `verifier` (the state of each citation). The comparison itself is pure, in
`echod.memory.evidence`; fingerprints are stored by `echod.state.fingerprints`.

Modules for other packages: `book`, `verifier`.
"""

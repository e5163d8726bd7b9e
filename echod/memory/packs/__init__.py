"""Doc packs and the global memory as values: manifests, registries, upgrades, provenance.

Read in this order: `manifest` (an installed pack, its age and version, and which manifest belongs to its file),
`registry` (the packs on offer), `upgrade` (a new version under the user's edits) and `elevation` (where an entry comes
from, and how one becomes global). docs/packs.md is the user's view.

Callers import from the modules, because `upgrade` and `elevation` load the merge and the writer of memory files, which
read-only commands do not need.
"""

"""Doc packs and the global memory as values: manifests, registries, upgrades, provenance.

Read in this order: `manifest` (an installed pack, its age and version, which manifest belongs to its file, and the
packs on offer) and `elevation` (a new version under the user's edits, where an entry comes from, and how one becomes
global). docs/packs.md is the user's view.

Callers import from the modules, because `elevation` loads the merge and the writer of memory files, which read-only
commands do not need.
"""

"""Doc packs and the global memory as values: names, versions, ages, manifests, registries, where an entry comes from.

Read in this order: `names`, `versions`, `ages`, `manifest` (what is known of an installed pack), `registry` (which
packs there are), `renewal` (a new version under a person's edits), `agreement` (which manifest belongs to what was
done), `provenance`, `elevation`. docs/packs.md tells people the same.
"""

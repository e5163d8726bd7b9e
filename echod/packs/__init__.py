"""Doc packs on disk: registries, installed packs, their manifests, and checks for updates.

Read in this order: `registries` (which packs exist), `installed` (which of them the global store contains, and how they
compare) and `manifests` (writes the file beside each pack).

Callers import from the modules, because `manifests` loads the store's engine, which read-only commands do not need.
"""

"""Doc packs on disk: registries, installed packs, their manifests, and checks for updates.

`installed` has them: which packs exist, which of them the global store contains, and how they compare. `jobs.packs`
writes them.
"""

"""Doc packs on the disk: the registries they come from, what is installed, its manifests, and how it stands."""

"""Whether anything changed since packs and registries were looked at; cheap enough to be asked every few seconds."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from echod.packs.places import MANIFEST_SUFFIX, REGISTRY, SHIPPED, list_in, registry_at
from echod.store.commons import MANIFESTS, global_store, packs_store
from echod.store.layout import MEMORY


def installed_stamp(home: Path) -> tuple[object, ...]:
    """Changes when a pack or a manifest may have changed. `home` is Claude Code's own directory."""
    files: list[Path] = []
    for directory in (global_store(home).root / MANIFESTS, packs_store(home).root):
        try:
            with os.scandir(directory) as entries:
                files += [Path(entry.path) for entry in entries if not entry.name.startswith(".")]
        except OSError:
            continue
    return tuple(_of(file if file.suffix == MANIFEST_SUFFIX else file / MEMORY) for file in sorted(files))


def registries_stamp(named: Iterable[str]) -> tuple[object, ...]:
    """Changes when the list of a registry may have changed. `named` are the places that the settings name."""
    return tuple(_of(list_in(place) / REGISTRY) for place in (SHIPPED, *map(registry_at, named)))


def _of(file: Path) -> tuple[str, int, int, int] | None:
    try:
        status = file.stat(follow_symlinks=False)
    except OSError:
        return None
    return str(file), status.st_ino, status.st_size, status.st_mtime_ns

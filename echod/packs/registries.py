"""Read the registries on disk: the shipped one, and directories that the settings name.

Read-only. Of two registries that have a pack of the same name, the later one has precedence. A registry's location is
trusted, because the settings name it. Its content is not: no symlink in it is followed, sizes are bounded, and every
text is checked before it can be installed.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from echod.errors import os_reason
from echod.isolation import isolated
from echod.lazy_imports import lazy_imports
from echod.memory.packs.manifest import REGISTRY_SIZE_LIMIT, PackListing, read_registry
from echod.store.fs import open_dir
from echod.store.layout import MEMORY

with lazy_imports(__name__):
    from echod.memory.packs import elevation

SHIPPED_REGISTRY = Path(__file__).parent / "data"
"""The registry that comes with echod."""

REGISTRY_FILE = "registry.json"
MANIFEST_SUFFIX = ".json"

_PLUGIN_DIRECTORY = Path("data/doc-packs")
_NUMBERS = re.compile(r"([0-9]+)")

PACK_SIZE_LIMIT = 1024 * 1024
"""Bytes of a pack's text. Agents read it whole, so even a tenth of it would be too long."""


class AvailablePack(NamedTuple):
    """A pack that can be installed. `text` is free of secrets; `registry_path` is the registry's directory."""

    listing: PackListing
    text: bytes
    registry_path: Path

    @property
    def stack(self) -> str:
        """Its name."""
        return self.listing.stack

    @property
    def sha256(self) -> str:
        """The digest of its text."""
        return hashlib.sha256(self.text).hexdigest()

    @property
    def origin(self) -> str:
        """The registry's name in manifests: `echod`, or its directory."""
        return registry_name(self.registry_path)


class PackRegistry(NamedTuple):
    """One registry: its usable packs, and one sentence for each problem."""

    path: Path
    packs: tuple[AvailablePack, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class RegistrySet:
    """All registries, the shipped one first."""

    registries: tuple[PackRegistry, ...]

    @cached_property
    def packs(self) -> Mapping[str, AvailablePack]:
        """Every pack by its name; later registries override earlier ones."""
        return {pack.stack: pack for registry in self.registries for pack in registry.packs}


def read_registries(paths: Iterable[str]) -> RegistrySet:
    """Return the shipped registry and those at the given paths.

    Args:
        paths: absolute directories, `~` allowed: with a `registry.json`, or of a plugin that has one in
            `data/doc-packs`. Of several that a glob matches, the one with the highest number is taken.
    """
    own = (find_registry_directory(resolve_registry_path(path)) for path in paths)
    return RegistrySet(tuple(map(_read_registry, (SHIPPED_REGISTRY, *own))))


def _read_registry(root: Path) -> PackRegistry:
    try:
        with open_dir(root, ()) as directory:
            contents = read_registry(directory.read(REGISTRY_FILE, REGISTRY_SIZE_LIMIT))
    except OSError as error:
        return PackRegistry(root, (), (f"The registry {root / REGISTRY_FILE} cannot be read: {os_reason(error)}.",))
    problems = [f"{root / REGISTRY_FILE}: {problem}" for problem in contents.problems]
    packs: list[AvailablePack | None] = []
    for listing in contents.listings:
        with isolated(f"The pack {listing.stack}", problems.append):
            packs.append(_read_pack(root, listing, problems))
    return PackRegistry(root, tuple(pack for pack in packs if pack is not None), tuple(problems))


def _read_pack(root: Path, listing: PackListing, problems: list[str]) -> AvailablePack | None:
    """Return the pack with its text; None where it cannot be used. Adds every problem to `problems`."""
    path, skipped = root / listing.stack / MEMORY, f"The pack {listing.stack} is skipped:"
    try:
        with open_dir(root, (listing.stack,)) as directory:
            data = directory.read(MEMORY, PACK_SIZE_LIMIT)
    except OSError as error:
        problems.append(f"{skipped} {path} cannot be read: {os_reason(error)}.")
        return None
    if len(data) > PACK_SIZE_LIMIT:
        problems.append(f"{skipped} {path} is larger than {PACK_SIZE_LIMIT >> 20} MiB.")
        return None
    text, faults = elevation.check_pack(data, listing.stack)
    if text is None:
        problems += [f"{skipped} {path} {fault}" for fault in faults]
        return None
    problems += [f"{path} {fault}" for fault in faults]
    return AvailablePack(listing, text, root)


def registry_name(directory: Path) -> str:
    """Return the name of a registry in manifests and messages."""
    return "echod" if directory == SHIPPED_REGISTRY else str(directory)


def resolve_registry_path(pattern: str) -> Path:
    """Return the directory that a path in the settings means; see `read_registries`."""
    path = os.path.expanduser(pattern)  # noqa: PTH111  a pattern is no path
    if not glob.has_magic(path):
        return Path(path)
    matches = sorted(glob.glob(path), key=_natural_sort_key)  # noqa: PTH207  Path.glob takes no absolute pattern
    return Path(matches[-1] if matches else path)


def _natural_sort_key(path: str) -> list[tuple[int, str]]:
    """Return a key that sorts 1.10 after 1.9."""
    return [(int(part), "") if _NUMBERS.fullmatch(part) else (0, part) for part in _NUMBERS.split(path)]


def find_registry_directory(directory: Path) -> Path:
    """Return the directory that has the list: `directory` itself, or the one in which a plugin keeps it."""
    nested = directory / _PLUGIN_DIRECTORY
    has_link = nested.parent.is_symlink() or nested.is_symlink()  # which could lead out of the registry
    return nested if (nested / REGISTRY_FILE).is_file() and not has_link else directory

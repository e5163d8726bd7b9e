"""Read the doc packs in the global store: the manifest and file of each. Read-only.

No symlink is followed. A pack that is damaged, unknown or of a later version is reported with its reason, and the
others are read all the same. `PackLocations` holds the paths of one user, from which commands and the service start.
The fingerprints show whether anything changed since packs and registries were read, at a cost that allows a check every
few seconds.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from echod.errors import os_reason
from echod.files import FileVersion, file_version
from echod.isolation import isolated
from echod.memory.model import MAX_FILE_BYTES, Document
from echod.memory.packs.manifest import MANIFEST_SIZE_LIMIT, InvalidManifest, PackManifest, is_stack_name, read_manifest
from echod.packs.registries import (
    MANIFEST_SUFFIX,
    REGISTRY_FILE,
    SHIPPED_REGISTRY,
    RegistrySet,
    find_registry_directory,
    read_registries,
    resolve_registry_path,
)
from echod.store.errors import as_store_error
from echod.store.fs import Dir, open_dir
from echod.store.layout import MANIFESTS, MEMORY, Role, Store, global_role, global_store, packs_store

_SYMLINK_REASON = "it is a symbolic link, which echod does not follow"


@dataclass(frozen=True, slots=True)
class InstalledPack:
    """A pack in the global store, or a part of one. Missing or unusable parts are None.

    `memory` is its file. `problem` is a sentence about what is wrong with it. It is `blocked` if its place is taken by
    something that echod cannot use, and so must not overwrite.
    """

    stack: str
    manifest: PackManifest | None = None
    manifest_bytes: bytes | None = None
    memory: bytes | None = None
    problem: str | None = None
    blocked: bool = False


class InstalledPacks(NamedTuple):
    """All packs by name, and a sentence about each file that is not a pack."""

    packs: tuple[InstalledPack, ...]
    problems: tuple[str, ...]

    def get(self, stack: str) -> InstalledPack:
        """Return a pack by name; an empty one if nothing of it is installed."""
        return next((pack for pack in self.packs if pack.stack == stack), InstalledPack(stack))


def manifest_path(claude_home: Path, stack: str) -> Path:
    """Return the path of a pack's manifest."""
    return global_store(claude_home).root / MANIFESTS / f"{stack}{MANIFEST_SUFFIX}"


def read_installed_packs(claude_home: Path) -> InstalledPacks:
    """Return all packs in the global store below Claude Code's directory.

    Raises:
        StoreError: it cannot be read.
    """
    root = global_store(claude_home).root
    packs_by_name: dict[str, InstalledPack] = {}
    problems: list[str] = []
    with as_store_error("look into", root):
        with _open_directory(claude_home, root / MANIFESTS) as manifests:
            for name in [] if manifests is None else manifests.list_names():
                if manifests is not None and name.endswith(MANIFEST_SUFFIX) and not name.startswith("."):
                    stack = name.removesuffix(MANIFEST_SUFFIX)
                    if is_stack_name(stack):
                        with isolated(f"The doc pack {stack}", problems.append):
                            packs_by_name[stack] = _with_manifest(manifests, name, stack)
                    else:
                        problems.append(f"{manifests.path / name!s} is skipped: it is not named after a doc pack.")
        with _open_directory(claude_home, packs_store(claude_home).root) as packs:
            if packs is not None:
                for stack in packs_by_name.keys() | set(filter(is_stack_name, packs.list_names())):
                    with isolated(f"The doc pack {stack}", problems.append):
                        packs_by_name[stack] = _with_memory(packs, packs_by_name.get(stack) or InstalledPack(stack))
    checked: list[InstalledPack] = []
    for pack in packs_by_name.values():
        if pack != InstalledPack(pack.stack):
            with isolated(f"The doc pack {pack.stack}", problems.append):
                checked.append(_with_problem(pack))
    return InstalledPacks(tuple(sorted(checked, key=lambda pack: pack.stack)), tuple(problems))


@contextmanager
def _open_directory(claude_home: Path, path: Path) -> Iterator[Dir | None]:
    """Open a directory of the global store; None where it is missing."""
    try:
        directory = open_dir(claude_home, path.relative_to(claude_home).parts)
    except FileNotFoundError:
        yield None
        return
    with directory:
        yield directory


def _with_manifest(directory: Dir, name: str, stack: str) -> InstalledPack:
    path = directory.path / name
    try:
        data = directory.read(name, MANIFEST_SIZE_LIMIT)
    except OSError as error:
        reason = _SYMLINK_REASON if _is_link(directory, name) else os_reason(error)
        return InstalledPack(stack, problem=f"{path} cannot be read: {reason}.", blocked=True)
    manifest = read_manifest(data, stack)
    if isinstance(manifest, InvalidManifest):
        problem = f"{path} is skipped: {manifest.reason}."
        return InstalledPack(stack, manifest_bytes=data, problem=problem, blocked=True)
    return InstalledPack(stack, manifest, data)


def _with_memory(packs: Dir, pack: InstalledPack) -> InstalledPack:
    location, name = packs, pack.stack
    try:
        with packs.open_subdir(name) as directory:
            location, name = directory, MEMORY
            return replace(pack, memory=directory.read(MEMORY, MAX_FILE_BYTES))
    except FileNotFoundError:
        return pack
    except OSError as error:
        if location is packs and not _is_link(packs, name):
            return pack  # a file of that name is no pack
        reason = _SYMLINK_REASON if location is packs else os_reason(error)
        problem = pack.problem or f"{packs.path / pack.stack / MEMORY} cannot be read: {reason}."
        return replace(pack, problem=problem, blocked=True)


def _with_problem(pack: InstalledPack) -> InstalledPack:
    """Add what is wrong about manifest and file together."""
    from echod.memory.document import parse  # noqa: PLC0415  `echod status` loads this module and rarely parses

    problem = pack.problem
    document = None if pack.memory is None else parse(pack.memory)
    if problem is None and pack.manifest is not None and pack.memory is None:
        problem = f"The doc pack {pack.stack} has a manifest, but its file is missing."
    elif problem is None and pack.manifest is None:
        problem = f"The doc pack {pack.stack} has no manifest, so its version and age are unknown."
    elif problem is None and document is not None and not isinstance(document, Document):
        problem = f"The doc pack {pack.stack} cannot be read: {document.reason}"
    return replace(pack, problem=problem)


def _is_link(directory: Dir, name: str) -> bool:
    status = directory.stat(name)
    return status is not None and stat.S_ISLNK(status.st_mode)


class PackLocations(NamedTuple):
    """The paths of one user: Claude Code's own directory, resolved, and the registries in the settings."""

    claude_home: Path
    registry_paths: tuple[str, ...]

    @property
    def stores(self) -> tuple[Store, Store]:
        """The two global stores: the one of elevated entries and the one of packs."""
        return global_store(self.claude_home), packs_store(self.claude_home)

    @property
    def exists(self) -> bool:
        """True where any kind of file has the global store's path, or where that is unknown."""
        root = global_store(self.claude_home).root
        try:
            os.lstat(root)
        except FileNotFoundError:
            return root.parent.is_symlink()  # which is not followed
        except OSError:
            pass  # unknown does not mean absent
        return True

    @property
    def memory_role(self) -> Role:
        """The role of the global memory file."""
        return global_role(self.claude_home)

    def pack_role(self, stack: str) -> Role:
        """Return the role of a pack."""
        return Role(packs_store(self.claude_home), stack)

    def read_registries(self) -> RegistrySet:
        """Return the registries as they are now."""
        return read_registries(self.registry_paths)

    def read_installed(self) -> InstalledPacks:
        """Return the installed packs as they are now; see `read_installed_packs`."""
        return read_installed_packs(self.claude_home)


def installed_fingerprint(claude_home: Path) -> tuple[object, ...]:
    """Return a value that changes when a pack or a manifest may have changed."""
    files: list[Path] = []
    for directory in (global_store(claude_home).root / MANIFESTS, packs_store(claude_home).root):
        try:
            with os.scandir(directory) as entries:
                files += [Path(entry.path) for entry in entries if not entry.name.startswith(".")]
        except OSError:
            continue
    return tuple(_file_fingerprint(file if file.suffix == MANIFEST_SUFFIX else file / MEMORY) for file in sorted(files))


def registries_fingerprint(registry_paths: Iterable[str]) -> tuple[object, ...]:
    """Return a value that changes when the list of a registry may have changed."""
    directories = map(find_registry_directory, (SHIPPED_REGISTRY, *map(resolve_registry_path, registry_paths)))
    return tuple(_file_fingerprint(directory / REGISTRY_FILE) for directory in directories)


def _file_fingerprint(file: Path) -> tuple[str, FileVersion] | None:
    try:
        return str(file), file_version(file.lstat())
    except OSError:
        return None

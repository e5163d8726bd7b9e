"""Read the doc packs in the global store and the registries, and compare them. Read-only.

No symlink is followed. A pack that is damaged, unknown or of a later version is reported with its reason, and the
others are read all the same. `PackLocations` holds the paths of one user, from which commands and the service start.
The fingerprints show whether anything changed since packs and registries were read, at a cost that allows a check every
few seconds.

Registries are the shipped one, and directories that the settings name. Of two registries that have a pack of the same
name, the later one has precedence. A registry's location is trusted, because the settings name it. Its content is not:
no symlink in it is followed, sizes are bounded, and every text is checked before it can be installed.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from echod.clock import local_datetime
from echod.errors import isolated, os_reason
from echod.files import FileVersion, file_version
from echod.lazy import lazy_imports, lazy_pattern
from echod.memory import MAX_FILE_BYTES
from echod.memory.model import Document
from echod.memory.packs.manifest import (
    MANIFEST_SIZE_LIMIT,
    REGISTRY_SIZE_LIMIT,
    InvalidManifest,
    PackAges,
    PackListing,
    PackManifest,
    VersionOrder,
    age_in_days,
    compare_versions,
    is_stack_name,
    is_stale,
    read_manifest,
    read_registry,
)
from echod.store.errors import as_store_error
from echod.store.fs import Dir, open_dir
from echod.store.layout import MANIFESTS, MEMORY, Role, Store, global_role, global_store, packs_store

with lazy_imports(__name__):
    from echod.memory import document as document_module
    from echod.memory.packs import elevation


SHIPPED_REGISTRY = Path(__file__).parent / "data"
"""The registry that comes with echod."""

REGISTRY_FILE = "registry.json"
MANIFEST_SUFFIX = ".json"

_PLUGIN_DIRECTORY = Path("data/doc-packs")
_NUMBERS = lazy_pattern(r"([0-9]+)")

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


_SYMLINK_REASON = "it is a symbolic link, which echod does not follow"


class InstalledPack(NamedTuple):
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
                for stack in sorted(packs_by_name.keys() | set(filter(is_stack_name, packs.list_names()))):
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
            return pack._replace(memory=directory.read(MEMORY, MAX_FILE_BYTES))
    except FileNotFoundError:
        return pack
    except OSError as error:
        if location is packs and not _is_link(packs, name):
            return pack  # a file of that name is no pack
        reason = _SYMLINK_REASON if location is packs else os_reason(error)
        problem = pack.problem or f"{packs.path / pack.stack / MEMORY} cannot be read: {reason}."
        return pack._replace(problem=problem, blocked=True)


def _with_problem(pack: InstalledPack) -> InstalledPack:
    """Add what is wrong about manifest and file together."""
    problem = pack.problem
    document = None if pack.memory is None else document_module.parse(pack.memory)
    if problem is None and pack.manifest is not None and pack.memory is None:
        problem = f"The doc pack {pack.stack} has a manifest, but its file is missing."
    elif problem is None and pack.manifest is None:
        problem = f"The doc pack {pack.stack} has no manifest, so its version and age are unknown."
    elif problem is None and document is not None and not isinstance(document, Document):
        problem = f"The doc pack {pack.stack} cannot be read: {document.reason}"
    return pack._replace(problem=problem)


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


class UpdateStatus(StrEnum):
    """The result of comparing an installed pack with the registries.

    `NEW_TEXT`: another text under the same version. `OLDER_VERSION`: only an older version. `UNKNOWN`: the same
    version, but the installed text is unknown, and the file is another one.
    """

    NO_UPDATE = "nothing"
    NEW_VERSION = "version"
    NEW_TEXT = "text"
    OLDER_VERSION = "older"
    NOT_IN_REGISTRY = "absent"
    UNKNOWN = "unknown"


class PackState(NamedTuple):
    """The state of one pack: its files in the global store (perhaps none), and the pack in the registries, or None.

    `stale` is whether it is too old; None where that is unknown, or it is not installed. `edited` is whether the file
    was changed since it was installed; None where that is unknown.
    """

    stack: str
    installed: InstalledPack
    pack: AvailablePack | None
    ages: PackAges
    stale: bool | None
    edited: bool | None
    update_status: UpdateStatus

    @property
    def is_installed(self) -> bool:
        """True where its file or its manifest exists."""
        return self.installed.memory is not None or self.installed.manifest is not None

    @property
    def update_available(self) -> bool:
        """True where an update would change it."""
        return self.update_status in (UpdateStatus.NEW_VERSION, UpdateStatus.NEW_TEXT)


class PackCheckResult(NamedTuple):
    """The state of every pack, and the problems of registries and of the global store."""

    packs: tuple[PackState, ...]
    registry_problems: tuple[str, ...]
    store_problems: tuple[str, ...]

    @property
    def installed(self) -> tuple[PackState, ...]:
        """The packs that are in the global store."""
        return tuple(state for state in self.packs if state.is_installed)


def check_packs(
    locations: PackLocations, installed_packs: InstalledPacks, now: float, staleness_days: int
) -> PackCheckResult:
    """Return the state of every pack: those of the registries in their order, then the others that are installed.

    `now` is in Unix seconds. A pack that is older than `staleness_days` is stale.
    """
    registries = locations.read_registries()
    local_now = local_datetime(now)
    names = dict.fromkeys((*registries.packs, *(pack.stack for pack in installed_packs.packs)))
    states = tuple(
        pack_state(installed_packs.get(name), registries.packs.get(name), local_now, staleness_days) for name in names
    )
    pack_problems = (pack.problem for pack in installed_packs.packs if pack.problem is not None)
    registry_problems = tuple(problem for registry in registries.registries for problem in registry.problems)
    return PackCheckResult(states, registry_problems, (*pack_problems, *installed_packs.problems))


def pack_state(installed: InstalledPack, pack: AvailablePack | None, now: datetime, staleness_days: int) -> PackState:
    """Return the state of one pack. `now` is an aware datetime in the local zone."""
    manifest = installed.manifest
    timestamps = (manifest.last_updated, manifest.installed_at, manifest.checked_at) if manifest else (None,) * 3
    ages = PackAges(*(age_in_days(timestamp, now) for timestamp in timestamps))
    stale = None if manifest is None else is_stale(ages, staleness_days)
    edited, update_status = _is_edited(installed, pack), _update_status(installed, pack)
    return PackState(installed.stack, installed, pack, ages, stale, edited, update_status)


def _is_edited(installed: InstalledPack, pack: AvailablePack | None) -> bool | None:
    manifest = installed.manifest
    if manifest is None or installed.memory is None:
        return None
    digest = hashlib.sha256(installed.memory).hexdigest()
    if manifest.sha256 is not None:
        return digest != manifest.sha256
    return False if pack is not None and digest == pack.sha256 else None


def _update_status(installed: InstalledPack, pack: AvailablePack | None) -> UpdateStatus:
    manifest = installed.manifest
    if pack is None:
        return UpdateStatus.NOT_IN_REGISTRY
    if manifest is None:
        return UpdateStatus.NO_UPDATE
    match compare_versions(manifest.source_version, pack.listing.version):
        case VersionOrder.OLDER | VersionOrder.UNKNOWN:
            return UpdateStatus.NEW_VERSION
        case VersionOrder.NEWER:
            return UpdateStatus.OLDER_VERSION
        case VersionOrder.SAME if manifest.sha256 is not None:
            return UpdateStatus.NO_UPDATE if manifest.sha256 == pack.sha256 else UpdateStatus.NEW_TEXT
        case VersionOrder.SAME:
            return UpdateStatus.UNKNOWN if _is_edited(installed, pack) is None else UpdateStatus.NO_UPDATE

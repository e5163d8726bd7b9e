"""What stands in the global store: each pack's manifest and file, as they are. Looks only, follows no symlink.

One that is damaged, unknown or of a later version is told with its reason, and the others are looked at all the same.

Where packs come from and where they go, for one user: what commands and the service start from.

Whether anything changed since packs and registries were looked at; cheap enough to be asked every few seconds.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from echod.errors import reason_of
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.packs.manifest import SIZE_LIMIT, Manifest, Unusable, is_stack, read_manifest
from echod.packs.registries import MANIFEST_SUFFIX, REGISTRY, SHIPPED, list_in, registry_at
from echod.store.errors import told
from echod.store.fs import Dir, open_dir
from echod.store.layout import MANIFESTS, MEMORY, Role, Store, global_role, global_store, packs_store
from echod.store.snapshot import MAX_FILE_BYTES

if TYPE_CHECKING:
    from echod.packs.registries import Registries


_LINK = "it is a symbolic link, and none is followed here"


@dataclass(frozen=True, slots=True)
class Installed:
    """A pack in the global store, or what is left of one.

    Attributes:
        manifest: what is known of it; None where there is none, or none that can be used.
        raw: the manifest's bytes; None where there is no such file.
        memory: its file's bytes; None where there is none, or it cannot be read.
        problem: what is wrong with it, a sentence; None for nothing.
        barred: something stands in its place that echod cannot use, and so must not write over.
    """

    stack: str
    manifest: Manifest | None = None
    raw: bytes | None = None
    memory: bytes | None = None
    problem: str | None = None
    barred: bool = False


class Holding(NamedTuple):
    """All packs by name, and sentences about what is no pack."""

    packs: tuple[Installed, ...]
    problems: tuple[str, ...]

    def pack(self, stack: str) -> Installed:
        """What there is of a pack, perhaps nothing."""
        return next((pack for pack in self.packs if pack.stack == stack), Installed(stack))


def manifest_path(home: Path, stack: str) -> Path:
    """Where the manifest of a pack is."""
    return global_store(home).root / MANIFESTS / f"{stack}{MANIFEST_SUFFIX}"


def look(home: Path) -> Holding:
    """Everything there is in the global store below Claude Code's directory.

    Raises:
        StoreFault: it cannot be looked into.
    """
    root = global_store(home).root
    found: dict[str, Installed] = {}
    problems: list[str] = []
    with told("look into", root):
        with _directory(home, root / MANIFESTS) as manifests:
            names = [] if manifests is None else manifests.names()
            for name in names:
                if manifests is not None and name.endswith(MANIFEST_SUFFIX) and not name.startswith("."):
                    stack = name.removesuffix(MANIFEST_SUFFIX)
                    if is_stack(stack):
                        found[stack] = _with_manifest(manifests, name, stack)
                    else:
                        problems.append(f"{manifests.path / name!s} is passed over: it is not named after a doc pack.")
        with _directory(home, packs_store(home).root) as packs:
            stacks = set(found) | {name for name in ([] if packs is None else packs.names()) if is_stack(name)}
            for stack in stacks:
                known = found.get(stack) or Installed(stack)
                found[stack] = known if packs is None else _with_memory(packs, known)
    complete = (_judged(pack) for pack in found.values() if pack != Installed(pack.stack))
    return Holding(tuple(sorted(complete, key=lambda pack: pack.stack)), tuple(problems))


@contextmanager
def _directory(home: Path, path: Path) -> Iterator[Dir | None]:
    """A directory of the global store, open; None where there is none."""
    try:
        directory = open_dir(home, path.relative_to(home).parts)
    except FileNotFoundError:
        yield None
        return
    with directory:
        yield directory


def _with_manifest(directory: Dir, name: str, stack: str) -> Installed:
    path = directory.path / name
    try:
        raw = directory.read(name, SIZE_LIMIT)
    except OSError as error:
        problem = f"{path} cannot be read: {_why(directory, name, error)}."
        return Installed(stack, problem=problem, barred=True)
    manifest = read_manifest(raw, stack)
    if isinstance(manifest, Unusable):
        return Installed(stack, raw=raw, problem=f"{path} is passed over: {manifest.reason}.", barred=True)
    return Installed(stack, manifest, raw)


def _with_memory(packs: Dir, known: Installed) -> Installed:
    place, name = packs, known.stack
    try:
        with packs.below(name) as home:
            place, name = home, MEMORY
            return replace(known, memory=home.read(MEMORY, MAX_FILE_BYTES))
    except FileNotFoundError:
        return known
    except OSError as error:
        if place is packs and not _is_link(packs, name):
            return known  # a file of that name is no pack
        why = _LINK if place is packs else reason_of(error)
        problem = known.problem or f"{packs.path / known.stack / MEMORY} cannot be read: {why}."
        return replace(known, problem=problem, barred=True)


def _judged(pack: Installed) -> Installed:
    """With what is wrong about manifest and file together."""
    problem = pack.problem
    document = None if pack.memory is None else parse(pack.memory)
    if problem is None and pack.manifest is not None and pack.memory is None:
        problem = f"The doc pack {pack.stack} has a manifest, but its file is gone."
    elif problem is None and pack.manifest is None:
        problem = f"The doc pack {pack.stack} has no manifest, so that its version and age are not known."
    elif problem is None and document is not None and not isinstance(document, Document):
        problem = f"The doc pack {pack.stack} cannot be read: {document.reason}"
    return replace(pack, problem=problem)


def _why(directory: Dir, name: str, error: OSError) -> str:
    return _LINK if _is_link(directory, name) else reason_of(error)


def _is_link(directory: Dir, name: str) -> bool:
    found = directory.stat(name)
    return found is not None and stat.S_ISLNK(found.st_mode)


class PackRoom(NamedTuple):
    """`home` is Claude Code's own directory, resolved; `registries` are the places that the settings name."""

    home: Path
    registries: tuple[str, ...]

    @property
    def stores(self) -> tuple[Store, Store]:
        """The global store's two: that of elevated entries and that of the packs."""
        return global_store(self.home), packs_store(self.home)

    @property
    def is_there(self) -> bool:
        """Whether there is something in the global store's place, of whatever kind, or that cannot be told."""
        root = global_store(self.home).root
        try:
            os.lstat(root)
        except FileNotFoundError:
            return root.parent.is_symlink()  # which is not followed
        except OSError:
            pass  # unknown is not absent
        return True

    @property
    def memory(self) -> Role:
        """The role of the global memory file."""
        return global_role(self.home)

    def role(self, stack: str) -> Role:
        """The role of a pack."""
        return Role(packs_store(self.home), stack)

    def available(self) -> Registries:
        """The registries as they are now."""
        from echod.packs.registries import read_registries  # noqa: PLC0415  slow to load, and few have packs

        return read_registries(self.registries)

    def installed(self) -> Holding:
        """The global store as it is now.

        Raises:
            StoreFault: it cannot be looked into.
        """
        return look(self.home)


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

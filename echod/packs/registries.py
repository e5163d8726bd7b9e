"""The registries on the disk: the packs that come with echod, and directories that the settings name. Looks only.

Of two registries that have a pack of the same name the later one counts. A registry is trusted to be where the
settings say; what lies in it is not: no symlink is followed in it, sizes are bounded, and every text is looked at
before it can be installed.

Where registries of doc packs are, and what files are called in them and in the global store.
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

from echod.errors import reason_of
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.packs.elevation import belongs_to
from echod.memory.packs.registry import SIZE_LIMIT, Listed, read_registry
from echod.memory.prompt_injection import speaks_to_agents
from echod.memory.redact import redact
from echod.store.fs import open_dir
from echod.store.layout import MEMORY

SHIPPED = Path(__file__).parent / "data"
"""The registry that comes with echod."""

REGISTRY = "registry.json"
MANIFEST_SUFFIX = ".json"

_IN_A_PLUGIN = Path("data/doc-packs")
_NUMBERS = re.compile(r"([0-9]+)")


def origin_of(place: Path) -> str:
    """How a registry is named in manifests and for people."""
    return "echod" if place == SHIPPED else str(place)


def registry_at(place: str) -> Path:
    """The directory that the settings mean: `~` and patterns allowed; of several matches the highest number counts."""
    path = os.path.expanduser(place)  # noqa: PTH111  a pattern is no path
    if not glob.has_magic(path):
        return Path(path)
    matches = sorted(glob.glob(path), key=_natural)  # noqa: PTH207  Path.glob takes no absolute pattern
    return Path(matches[-1] if matches else path)


def list_in(place: Path) -> Path:
    """The directory that has the list: `place` itself, or where a plugin keeps it."""
    return place / _IN_A_PLUGIN if (place / _IN_A_PLUGIN / REGISTRY).is_file() else place


def _natural(path: str) -> list[tuple[int, str]]:
    """Sorts 1.10 behind 1.9."""
    return [(int(part), "") if _NUMBERS.fullmatch(part) else (0, part) for part in _NUMBERS.split(path)]


PACK_LIMIT = 1024 * 1024
"""Bytes of a pack's text; it is read whole by agents, so that even a tenth of it would be too long."""


class Pack(NamedTuple):
    """A pack that can be installed. `text` is free of secrets; `place` is the registry's directory."""

    listed: Listed
    text: bytes
    place: Path

    @property
    def stack(self) -> str:
        """Its name."""
        return self.listed.stack

    @property
    def sha256(self) -> str:
        """Names its text."""
        return hashlib.sha256(self.text).hexdigest()

    @property
    def origin(self) -> str:
        """The registry's name in manifests: `echod`, or its directory."""
        return origin_of(self.place)


class Registry(NamedTuple):
    """One registry: the packs that can be used, and a sentence for everything that is wrong or odd."""

    place: Path
    packs: tuple[Pack, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Registries:
    """All registries, the shipped one first."""

    each: tuple[Registry, ...]

    @cached_property
    def packs(self) -> Mapping[str, Pack]:
        """Every pack by its name; later registries override earlier ones."""
        return {pack.stack: pack for registry in self.each for pack in registry.packs}


def read_registries(named: Iterable[str]) -> Registries:
    """The shipped registry and those at the given places.

    Args:
        named: absolute directories, `~` allowed: with a `registry.json`, or of a plugin that has one in
            `data/doc-packs`. Of several that a glob matches, the one with the highest number counts.
    """
    return Registries((_registry(SHIPPED), *(_registry(list_in(registry_at(place))) for place in named)))


def _registry(place: Path) -> Registry:
    try:
        with open_dir(place, ()) as directory:
            read = read_registry(directory.read(REGISTRY, SIZE_LIMIT))
    except OSError as error:
        return Registry(place, (), (f"The registry {place / REGISTRY} cannot be read: {reason_of(error)}.",))
    problems = [f"{place / REGISTRY}: {problem}" for problem in read.problems]
    packs = []
    for listed in read.listed:
        found = _pack(place, listed, problems)
        packs += [found] if found else []
    return Registry(place, tuple(packs), tuple(problems))


def _pack(place: Path, listed: Listed, problems: list[str]) -> Pack | None:
    """The pack with its text; None where it cannot be used, which is said in `problems`, and so is what is odd."""
    where = place / listed.stack / MEMORY
    try:
        with open_dir(place, (listed.stack,)) as directory:
            data = directory.read(MEMORY, PACK_LIMIT)
    except OSError as error:
        problems.append(f"The pack {listed.stack} is passed over: {where} cannot be read: {reason_of(error)}.")
        return None
    if len(data) > PACK_LIMIT:
        problems.append(f"The pack {listed.stack} is passed over: {where} is larger than {PACK_LIMIT >> 20} MiB.")
        return None
    document = parse(data)
    if not isinstance(document, Document):
        problems.append(f"The pack {listed.stack} is passed over: {where}: {document.reason}")
        return None
    entries = [block for block in document.blocks if block.entry]
    if not entries:
        problems.append(f"The pack {listed.stack} is passed over: {where} holds no entry.")
        return None
    cleaned = redact(data.decode())
    if cleaned.spans:
        problems.append(f"{where} holds secrets, which are taken out when it is installed.")
    if foreign := sum(not belongs_to(block.entry, listed.stack) for block in entries):
        problems.append(f"{where}: {foreign} of {len(entries)} entries do not name doc-pack:{listed.stack} as source.")
    problems += [
        f"{where}: {block.entry.title!r} reads like an instruction to agents ({phrase})."
        for block in entries
        if block.entry and (phrase := speaks_to_agents(block.text)) is not None
    ]
    return Pack(listed, cleaned.text.encode(), place)

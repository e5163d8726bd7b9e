"""Where registries of doc packs are, and what files are called in them and in the global store."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

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

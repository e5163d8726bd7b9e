"""What shall be watched, where that is on the disk just now, and which event paths matter for it.

Targets are given by the names that the rest of the program uses; the kernel reports real paths. A target that does
not exist yet is awaited at its nearest existing ancestor. Looks at the disk, watches nothing. Works on strings: an
event storm brings tens of thousands of paths at once.
"""

# ruff: noqa: PTH112, PTH119, PTH120  (and Path.is_dir raises where a directory may not be entered)

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Targets:
    """What shall be watched. Nothing here needs to exist yet.

    Attributes:
        roots: directories watched with everything below them (stores).
        hints: directories of which only the entries matter (workflow markers, the canary, the wake file).
    """

    roots: tuple[Path, ...] = ()
    hints: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Dirt:
    """Where to look. `rescan` says, in words, why everything must be looked at; empty if it need not."""

    paths: frozenset[Path]
    rescan: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A real directory to schedule; several targets may share one while they do not exist."""

    path: str
    recursive: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """Which event paths matter, and under which name they are reported."""

    roots: frozenset[str]
    hints: frozenset[str]
    turning: frozenset[str]
    links: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, targets: Targets, links: Mapping[str, str]) -> Scope:
        """The scope of targets; `links` maps real paths to the given ones where they differ."""
        ends = {*targets.roots, *targets.hints, *map(Path, links)}
        return cls(
            roots=frozenset(map(str, targets.roots)),
            hints=frozenset(map(str, targets.hints)),
            turning=frozenset(str(path) for end in ends for path in (end, *end.parents)),
            links=tuple(sorted(links.items(), key=lambda link: -len(link[0]))),
        )

    def turns_on(self, paths: Iterable[str]) -> bool:
        """Whether a target, or a directory on the way to one, came, went or was replaced."""
        return any(path in self.turning or self._given(path) in self.turning for path in paths)

    def select(self, paths: Iterable[str]) -> frozenset[Path]:
        """The paths that matter, under the given names."""
        return frozenset(Path(given) for given in map(self._given, paths) if self._matters(given))

    def _given(self, path: str) -> str:
        for real, given in self.links:
            if path == real or path.startswith(real + os.sep):
                return given + path[len(real) :]
        return path

    def _matters(self, path: str) -> bool:
        if path in self.roots or path in self.hints or os.path.dirname(path) in self.hints:
            return True
        while (above := os.path.dirname(path)) != path:
            if os.path.basename(path).startswith("."):
                return False  # stages, swap files, indexes: no job reads a dot-name; a rename names its other end
            if above in self.roots:
                return True
            path = above
        return False


def places_of(targets: Targets) -> tuple[dict[str, str], dict[Place, tuple[Path, ...]]]:
    """What to schedule for which targets, and the real paths that are reported under another name."""
    links: dict[str, str] = {}
    served: dict[Place, list[Path]] = {}
    for recursive, paths in ((True, targets.roots), (False, targets.hints)):
        for target in dict.fromkeys(paths):
            real = real_path(target)
            place = Place(real, recursive) if os.path.isdir(real) else Place(_nearest(target), recursive=False)
            served.setdefault(place, []).append(target)
            if real != str(target):
                links[real] = str(target)
    return links, {place: tuple(for_targets) for place, for_targets in served.items()}


def real_path(target: Path) -> str:
    """Where a target is on the disk, symlinks resolved as far as they exist."""
    return os.path.realpath(target)


def _nearest(target: Path) -> str:
    """The nearest ancestor that is a directory now; the root directory always is."""
    return next(real for above in target.parents if os.path.isdir(real := real_path(above)))

"""Which entries belong to one topic: they refer to the same file, or their titles share most of their words.

The groups do not depend on the order in which the entries come, and no group is larger than one block can hold.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from echod.memory.knowledge.material import CAPACITY, Material
from echod.memory.similarity.words import jaccard

ALIKE = 0.5
"""Share of two titles' words that makes them one topic."""

REFERENCE_CAPACITY = 1500
"""Characters of the references of one block; they are all kept, so a block that has more takes in no others."""

_LATEST = 16  # groups of one feature that may still take in others; thousands of equal titles stay linear
_COMMON_FROM = 24  # a file or word that so many entries have tells no topics apart


@dataclass(slots=True)
class _Group:
    members: list[int]
    size: int
    references: dict[str, None] = field(default_factory=dict)

    @property
    def reference_size(self) -> int:
        return sum(map(len, self.references))


def topics(materials: Sequence[Material]) -> tuple[tuple[int, ...], ...]:
    """The groups, each in order of date and title; the groups in the order of their first members in `materials`."""
    order = sorted(range(len(materials)), key=lambda at: canonical(materials[at]))
    common = _common(materials)
    groups: list[_Group] = []
    open_by_feature: defaultdict[tuple[str, str], dict[int, None]] = defaultdict(dict)
    for at in order:
        material = materials[at]
        features = [feature for feature in _features(material) if feature not in common]
        candidates = dict.fromkeys(number for feature in features for number in open_by_feature[feature])
        number = _best(material, candidates, groups, materials, common)
        if number is None:
            number = len(groups)
            groups.append(_Group([], 0))
        group = groups[number]
        group.members.append(at)
        group.size += _size(material)
        group.references |= dict.fromkeys(material.references)
        for feature in features:
            latest = open_by_feature[feature]
            latest[number] = None
            if len(latest) > _LATEST:
                del latest[next(iter(latest))]
    return tuple(sorted((tuple(group.members) for group in groups), key=min))


def canonical(material: Material) -> tuple[object, ...]:
    """The order of materials that does not depend on where they stand."""
    return (material.day, material.title, material.points, material.references)


def _best(
    material: Material,
    candidates: dict[int, None],
    groups: Sequence[_Group],
    materials: Sequence[Material],
    common: set[tuple[str, str]],
) -> int | None:
    """The group that the material belongs to most, if it belongs to one that has room."""
    best: tuple[float, int] | None = None
    for number in candidates:
        group = groups[number]
        if group.size + _size(material) > CAPACITY:
            continue
        new = sum(len(reference) for reference in material.references if reference not in group.references)
        if group.reference_size + new > REFERENCE_CAPACITY:
            continue
        affinity = max(_affinity(material, materials[member], common) for member in group.members)
        if affinity >= ALIKE and (best is None or (-affinity, number) < best):
            best = (-affinity, number)
    return best[1] if best else None


def _affinity(one: Material, other: Material, common: set[tuple[str, str]]) -> float:
    shared = any(("file", name) not in common for name in one.files & other.files)
    titles = jaccard(one.words, other.words) if one.words and other.words else float(one.title == other.title)
    return shared + titles


def _size(material: Material) -> int:
    return sum(map(len, material.titled_points))


def _features(material: Material) -> Iterator[tuple[str, str]]:
    yield from (("file", name) for name in sorted(material.files))
    yield from (("word", word) for word in sorted(material.words))
    yield ("title", material.title)


def _common(materials: Sequence[Material]) -> set[tuple[str, str]]:
    counts = Counter(feature for material in materials for feature in _features(material))
    return {feature for feature, count in counts.items() if count >= _COMMON_FROM and feature[0] != "title"}

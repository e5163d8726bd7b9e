"""Read and write the manifest of an installed pack, and read which packs a registry lists (`registry.json`).

A manifest is JSON that other programs read and write too. Fields that echod does not know are kept. A file that is not
a manifest, or has a later schema, is an `InvalidManifest`, never empty.

Two clocks measure the age of a pack: when its text was last worked on (`last_updated`) and when it was installed
(`installed_at`). A pack is stale as soon as one of them is over the limit, unless the user has since had it checked for
something newer. Versions are compared as versions: 1.10.0 is newer than 1.9.0, and 2.0.0-rc.1 older than 2.0.0.

A pack's file and its manifest cannot be written in one step. Every change of a pack therefore leaves a line in its
archive with the manifest before and after it. After a crash between the two writes, and after an undo,
`expected_manifest` derives from those lines which manifest the pack must have.

A problem with one pack is reported and does not affect the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from itertools import takewhile, zip_longest
from typing import Any, NamedTuple

from echod.lazy import lazy_pattern

_STACK_NAME = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]{1,63}")

DOMAINS = ("backend", "frontend", "devops", "database", "testing", "architecture", "design", "general")
"""The domains of global entries. Readers of these files take every other word for `general`."""

MANIFEST_SIZE_LIMIT = 64 * 1024
MANIFEST_SCHEMA = 1
_SCHEMA_FIELDS = ("schema", "schema_version", "manifest_version")
_MANIFEST_FIELDS = (
    "name", "version", "installed_at", "last_updated", "source_version", "domains", "sha256", "registry", "checked_at",
)  # fmt: skip

_MAX_DATE_LENGTH = 64
_DATE_LENGTHS = (8, 10)  # 20261120, 2026-11-20, 2026-W47-5

_VERSION = lazy_pattern(
    r"v?(\d{1,18}(?:\.\d{1,18}){0,7})"
    r"(?:-([0-9A-Za-z-]{1,40}(?:\.[0-9A-Za-z-]{1,40}){0,7}))?"
    r"(?:\+\S{1,80})?",
    re.ASCII,
)

_PreRelease = tuple[tuple[int, int, str], ...]


def is_stack_name(name: str) -> bool:
    """Return whether this can be a pack's name, which becomes a part of paths and is typed on command lines."""
    return _STACK_NAME.fullmatch(name) is not None


class PackManifest(NamedTuple):
    """An installed pack. Dates are as written (ISO 8601, see `age_in_days`); None: not stated."""

    name: str
    version: str
    installed_at: str | None  # when its present version was installed
    last_updated: str | None  # when that version's text was last worked on
    source_version: str  # the version in the registry that it came from
    domains: tuple[str, ...] = ()
    sha256: str | None = None  # digest of the pack's text as it was installed, before any edit
    registry: str | None = None  # the directory that it came from
    checked_at: str | None = None  # when the user last had it checked for something newer, and there was nothing
    extra_fields: tuple[tuple[str, str], ...] = ()  # fields that echod does not know, each with its value as JSON

    def is_same_install(self, other: PackManifest | None) -> bool:
        """Return whether both describe the same installation, whenever it was last checked."""
        return other is not None and self._replace(checked_at=None) == other._replace(checked_at=None)


class InvalidManifest(NamedTuple):
    """Why a manifest is skipped: a sentence without its full stop."""

    reason: str


def read_manifest(data: bytes, stack: str) -> PackManifest | InvalidManifest:
    """Return the manifest in a file that is named after the pack `stack`."""
    if not is_stack_name(stack):
        return InvalidManifest("its name is not a valid name of a doc pack")
    if len(data) > MANIFEST_SIZE_LIMIT:
        return InvalidManifest(f"it is larger than {MANIFEST_SIZE_LIMIT // 1024} KiB")
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return InvalidManifest("it is not JSON")
    if not isinstance(values, dict):
        return InvalidManifest("it is not a JSON object")
    if any(isinstance(schema := values.get(field), int) and schema > MANIFEST_SCHEMA for field in _SCHEMA_FIELDS):
        return InvalidManifest("it was written by a later version; update echod")
    name, version = values.get("name"), values.get("version")
    if not isinstance(version, str) or not version.strip():
        return InvalidManifest("it has no version")
    if name != stack:
        return InvalidManifest("it names a different pack than its file name")
    known = {*_MANIFEST_FIELDS, "schema"}
    return PackManifest(
        name=stack,
        version=version.strip(),
        installed_at=_text_value(values, "installed_at"),
        last_updated=_text_value(values, "last_updated"),
        source_version=_text_value(values, "source_version") or version.strip(),
        domains=_text_list(values.get("domains")),
        sha256=_text_value(values, "sha256"),
        registry=_text_value(values, "registry"),
        checked_at=_text_value(values, "checked_at"),
        extra_fields=tuple((key, json.dumps(value)) for key, value in values.items() if key not in known),
    )


def compose_manifest(manifest: PackManifest) -> bytes:
    """Return the file's bytes, from which `read_manifest` gives the same manifest again."""
    values = {field: getattr(manifest, field) for field in _MANIFEST_FIELDS} | {"schema": MANIFEST_SCHEMA}
    fields = {field: value for field, value in values.items() if value is not None}
    extra = {field: json.loads(value) for field, value in manifest.extra_fields}
    return f"{json.dumps({**fields, **extra}, ensure_ascii=False, indent=2)}\n".encode()


def _text_value(values: Mapping[str, Any], key: str) -> str | None:
    value = values.get(key)
    return value.strip() or None if isinstance(value, str) else None


def _text_list(value: Any) -> tuple[str, ...]:
    items: Iterable[Any] = value if isinstance(value, list) else ()
    return tuple(text for text in items if isinstance(text, str))


class PackAges(NamedTuple):
    """Whole days since each event; None where that is unknown."""

    updated: int | None
    installed: int | None
    checked: int | None


def age_in_days(timestamp: str | None, now: datetime) -> int | None:
    """Return the whole days from a date or moment until `now`. Negative for the future, None for anything else.

    A moment in ISO 8601 has Z, an offset or neither, then it is local. The zone of `now` is the local one.
    """
    text = (timestamp or "").strip()
    if not text or len(text) > _MAX_DATE_LENGTH:
        return None
    try:
        if len(text) in _DATE_LENGTHS:
            return (now.date() - date.fromisoformat(text)).days
        moment = datetime.fromisoformat(text)
        return (now - (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo))).days
    except (ValueError, OverflowError):
        return None


def is_stale(ages: PackAges, days: int) -> bool | None:
    """Return whether a pack is over `days` old; at exactly that age it is fresh. None: its age is unknown."""
    if ages.checked is not None and ages.checked <= days:
        return False
    known = [age for age in (ages.updated, ages.installed) if age is not None]
    return any(age > days for age in known) if known else None


class VersionOrder(StrEnum):
    """The order of two versions; `UNKNOWN` where one of them cannot be compared."""

    OLDER = "older"
    SAME = "same"
    NEWER = "newer"
    UNKNOWN = "unknown"


def is_version(text: str) -> bool:
    """Return whether it can be compared: numbers with dots, then perhaps a preview (`-rc.1`) and a build (`+7`)."""
    return _VERSION.fullmatch(text.strip()) is not None


def compare_versions(one: str, other: str) -> VersionOrder:
    """Return the order of `one` relative to `other`. The build (`+7`) does not count, and missing numbers are zero."""
    if one.strip() == other.strip():
        return VersionOrder.SAME
    first, second = _parse_version(one), _parse_version(other)
    if first is None or second is None:
        return VersionOrder.UNKNOWN
    for a, b in zip_longest(first[0], second[0], fillvalue=0):
        if a != b:
            return VersionOrder.NEWER if a > b else VersionOrder.OLDER
    if first[1] == second[1]:
        return VersionOrder.SAME
    if not first[1] or not second[1]:
        return VersionOrder.OLDER if first[1] else VersionOrder.NEWER
    return VersionOrder.NEWER if first[1] > second[1] else VersionOrder.OLDER


def _parse_version(text: str) -> tuple[tuple[int, ...], _PreRelease] | None:
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    numbers = tuple(map(int, match[1].split(".")))
    parts = match[2].split(".") if match[2] else []
    # The parts of a preview: numbers by value and before words, words by their letters.
    return numbers, tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)


class ManifestChange(NamedTuple):
    """One change of a pack: the manifest's text before and after, None for no manifest."""

    before: str | None
    after: str | None
    in_effect: bool  # it was not undone


class ExpectedManifest(NamedTuple):
    """The text that the manifest must have; None: there must be no manifest."""

    text: str | None


def compose_manifest_change(job: int, before: bytes | None, after: bytes | None) -> bytes:
    """Return the line that a change leaves in the archive."""
    texts = {"before": before and before.decode(errors="replace"), "after": after and after.decode()}
    return f"{json.dumps({'job': job, **texts}, ensure_ascii=False)}\n".encode()


def read_manifest_changes(data: bytes) -> Mapping[int, tuple[str | None, str | None]]:
    """Return before and after of every line, by the job that left it; other lines are skipped."""
    changes: dict[int, tuple[str | None, str | None]] = {}
    for line in data.decode(errors="replace").splitlines():
        try:
            values = json.loads(line)
            before, after = values["before"], values["after"]
        except (ValueError, RecursionError, TypeError, KeyError):
            continue
        if isinstance(values["job"], int) and all(t is None or isinstance(t, str) for t in (before, after)):
            changes[values["job"]] = (before, after)
    return changes


def expected_manifest(
    stack: str, changes: Sequence[ManifestChange], present: str | None, *, has_file: bool
) -> ExpectedManifest | None:
    """Return the manifest that a pack must have; None where the present one may stay.

    A manifest that matches no step was written by another program, and stays. `changes` are the newest first, `present`
    is None without a manifest, and `has_file` is whether the pack's memory file exists.
    """
    if not changes:
        return None
    undone = tuple(takewhile(lambda step: not step.in_effect, changes))
    # Not the result of the step before: the manifest may have changed since by other means.
    expected = undone[-1].before if undone else changes[0].after
    installation = next((step for step in changes if step.before is None), None)
    if not has_file and installation is not None and not installation.in_effect:
        expected = None  # a mere change of the manifest is in effect, but its installation is not
    if (expected is not None) != has_file or _is_same_manifest(stack, present, expected):
        return None
    known_texts = {text for step in changes for text in (step.before, step.after)}
    return ExpectedManifest(expected) if any(_is_same_manifest(stack, present, text) for text in known_texts) else None


def _is_same_manifest(stack: str, one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one is other
    first, second = (read_manifest(text.encode(), stack) for text in (one, other))
    if isinstance(first, PackManifest):
        return isinstance(second, PackManifest) and first.is_same_install(second)
    return one == other


REGISTRY_SIZE_LIMIT = 1024 * 1024
_ANY_DATE = datetime(2000, 1, 1, tzinfo=UTC)
_MAX_QUOTED = 60


class PackListing(NamedTuple):
    """A pack as its registry describes it; `stack` is its name in paths, `title` its display name."""

    stack: str
    title: str
    version: str
    last_updated: str
    description: str
    domains: tuple[str, ...]


class RegistryContents(NamedTuple):
    """The usable packs in the registry's order, and one sentence for each problem."""

    listings: tuple[PackListing, ...]
    problems: tuple[str, ...]


class _InvalidRegistryError(Exception):
    """Why one pack, or the whole registry, cannot be used: half a sentence."""


def read_registry(data: bytes) -> RegistryContents:
    """Return the packs that a registry lists, and its problems."""
    problems: list[str] = []
    try:
        packs = _read_packs(data)
    except _InvalidRegistryError as error:
        return RegistryContents((), (f"The registry cannot be used: {error}.",))
    listings = []
    for key, values in packs.items():
        try:
            listing = _read_listing(key, values)
        except _InvalidRegistryError as error:
            problems.append(f"The pack {_quoted(key)} is skipped: {error}.")
            continue
        listings.append(listing)
        if unknown_domains := [domain for domain in listing.domains if domain not in DOMAINS]:
            problems.append(f"The pack {key} has unknown domains: {_quoted(', '.join(unknown_domains))}.")
    return RegistryContents(tuple(listings), tuple(problems))


def _read_packs(data: bytes) -> Mapping[str, Any]:
    if len(data) > REGISTRY_SIZE_LIMIT:
        raise _InvalidRegistryError(f"it is larger than {REGISTRY_SIZE_LIMIT // 1024 // 1024} MiB")
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _InvalidRegistryError("it is not JSON") from error
    packs = values.get("packs") if isinstance(values, dict) else None
    if not isinstance(packs, dict):
        raise _InvalidRegistryError('it has no object "packs"')
    return packs


def _read_listing(key: str, values: Any) -> PackListing:
    if not is_stack_name(key):
        raise _InvalidRegistryError("a name begins with a letter and has 2 to 64 letters, digits, - and _")
    if not isinstance(values, dict):
        raise _InvalidRegistryError("it is not an object")
    version, updated = _required_text(values, "version"), _required_text(values, "last_updated")
    if not is_version(version):
        raise _InvalidRegistryError(f"{_quoted(version)} is not a version; write it like 1.2.0")
    if age_in_days(updated, _ANY_DATE) is None:
        raise _InvalidRegistryError(f"last_updated is {_quoted(updated)}; write a date like 2026-11-20")
    domains = values.get("domains", [])
    if not isinstance(domains, list) or not all(isinstance(domain, str) for domain in domains):
        raise _InvalidRegistryError("domains is not a list of strings")
    description = values.get("description", "")
    return PackListing(
        stack=key,
        title=_required_text(values, "name"),
        version=version,
        last_updated=updated,
        description=description.strip() if isinstance(description, str) else "",
        domains=tuple(domains),
    )


def _required_text(values: Mapping[str, Any], field: str) -> str:
    value = values.get(field)
    if not isinstance(value, str) or not value.strip():
        raise _InvalidRegistryError(f"it has no {field}")
    return value.strip()


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}...")

"""Read which packs a registry lists (`registry.json`).

A problem with one pack is reported and does not affect the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from echod.memory.packs.manifest import DOMAINS, age_in_days, is_stack_name, is_version

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

"""Which packs a registry lists (`registry.json`). What is wrong with it is said for each pack, and the rest works."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from echod.memory.packs.manifest import DOMAINS, age_in_days, is_stack, is_version

SIZE_LIMIT = 1024 * 1024
_SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)
_SHOWN = 60


class Listed(NamedTuple):
    """A pack as its registry describes it; `stack` is its name in paths, `title` its name for people."""

    stack: str
    title: str
    version: str
    last_updated: str
    description: str
    domains: tuple[str, ...]


class RegistryRead(NamedTuple):
    """The packs that can be used, in the registry's order, and a sentence for everything that cannot, or is odd."""

    listed: tuple[Listed, ...]
    problems: tuple[str, ...]


class _WrongError(Exception):
    """Why one pack, or the whole registry, cannot be used: half a sentence."""


def read_registry(data: bytes) -> RegistryRead:
    """Read a registry."""
    problems: list[str] = []
    try:
        packs = _packs(data)
    except _WrongError as error:
        return RegistryRead((), (f"The registry cannot be used: {error}.",))
    found = []
    for key, values in packs.items():
        try:
            listed = _listed(key, values)
        except _WrongError as error:
            problems.append(f"The pack {_shown(key)} is passed over: {error}.")
            continue
        found.append(listed)
        if odd := [domain for domain in listed.domains if domain not in DOMAINS]:
            problems.append(f"The pack {key} has domains that readers do not know: {_shown(', '.join(odd))}.")
    return RegistryRead(tuple(found), tuple(problems))


def _packs(data: bytes) -> Mapping[str, Any]:
    if len(data) > SIZE_LIMIT:
        raise _WrongError(f"it is larger than {SIZE_LIMIT // 1024 // 1024} MiB")
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _WrongError("it is not JSON") from error
    packs = values.get("packs") if isinstance(values, dict) else None
    if not isinstance(packs, dict):
        raise _WrongError('it has no object "packs"')
    return packs


def _listed(key: str, values: Any) -> Listed:
    if not is_stack(key):
        raise _WrongError("a name begins with a letter and has 2 to 64 letters, digits, - and _")
    if not isinstance(values, dict):
        raise _WrongError("it is no object")
    version, updated = _said(values, "version"), _said(values, "last_updated")
    if not is_version(version):
        raise _WrongError(f"{_shown(version)} is no version; write it like 1.2.0")
    if age_in_days(updated, _SOME_DAY) is None:
        raise _WrongError(f"last_updated is {_shown(updated)}; write a date like 2026-11-20")
    domains = values.get("domains", [])
    if not isinstance(domains, list) or not all(isinstance(domain, str) for domain in domains):
        raise _WrongError("domains is no list of words")
    description = values.get("description", "")
    return Listed(
        stack=key,
        title=_said(values, "name"),
        version=version,
        last_updated=updated,
        description=description.strip() if isinstance(description, str) else "",
        domains=tuple(domains),
    )


def _said(values: Mapping[str, Any], field: str) -> str:
    value = values.get(field)
    if not isinstance(value, str) or not value.strip():
        raise _WrongError(f"it has no {field}")
    return value.strip()


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")

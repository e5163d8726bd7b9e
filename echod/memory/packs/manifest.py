"""What is known of an installed pack: the JSON beside it, which other programs write and read too.

Fields that echod does not know are kept. What is no manifest, or one of a later schema, is `Unusable`, never empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from echod.memory.packs.names import is_stack

SIZE_LIMIT = 64 * 1024
SCHEMA = 1
_SCHEMA_FIELDS = ("schema", "schema_version", "manifest_version")
_OWN = (
    "schema", "name", "version", "installed_at", "last_updated", "source_version", "domains", "sha256", "registry",
    "checked_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manifest:
    """An installed pack. Dates are as written (ISO 8601, see `ages`); None: not said.

    Attributes:
        installed_at: when its present version was put here.
        last_updated: when that version's text was last worked on.
        source_version: the version in the registry that it came from.
        sha256: digest of the pack's text as it was installed, before anybody edited it.
        registry: the directory that it came from.
        checked_at: when a person last had it checked for something newer, and there was nothing.
        others: fields that echod does not know, each with its value as JSON.
    """

    name: str
    version: str
    installed_at: str | None
    last_updated: str | None
    source_version: str
    domains: tuple[str, ...] = ()
    sha256: str | None = None
    registry: str | None = None
    checked_at: str | None = None
    others: tuple[tuple[str, str], ...] = ()

    def same_install(self, other: Manifest | None) -> bool:
        """Whether both tell of the same installation, whenever it was last checked."""
        return other is not None and replace(self, checked_at=None) == replace(other, checked_at=None)


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a manifest is passed over: a sentence without its full stop."""

    reason: str


def read_manifest(data: bytes, stack: str) -> Manifest | Unusable:
    """The manifest in a file that is named after the pack `stack`."""
    if not is_stack(stack):
        return Unusable("its name is no name of a doc pack")
    if len(data) > SIZE_LIMIT:
        return Unusable(f"it is larger than {SIZE_LIMIT // 1024} KiB")
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return Unusable("it is not JSON")
    if not isinstance(values, dict):
        return Unusable("it is no JSON object")
    if any(isinstance(found := values.get(field), int) and found > SCHEMA for field in _SCHEMA_FIELDS):
        return Unusable("a later version wrote it; update echod")
    name, version = values.get("name"), values.get("version")
    if not isinstance(version, str) or not version.strip():
        return Unusable("it names no version")
    if name != stack:
        return Unusable("it names another pack than its file")
    return Manifest(
        name=stack,
        version=version.strip(),
        installed_at=_text(values, "installed_at"),
        last_updated=_text(values, "last_updated"),
        source_version=_text(values, "source_version") or version.strip(),
        domains=_texts(values.get("domains")),
        sha256=_text(values, "sha256"),
        registry=_text(values, "registry"),
        checked_at=_text(values, "checked_at"),
        others=tuple((key, json.dumps(value)) for key, value in values.items() if key not in _OWN),
    )


def compose_manifest(manifest: Manifest) -> bytes:
    """The file's bytes; `read_manifest` gives the same manifest again."""
    values: dict[str, Any] = {
        "name": manifest.name,
        "version": manifest.version,
        "installed_at": manifest.installed_at,
        "last_updated": manifest.last_updated,
        "source_version": manifest.source_version,
        "domains": list(manifest.domains),
        "sha256": manifest.sha256,
        "registry": manifest.registry,
        "checked_at": manifest.checked_at,
        "schema": SCHEMA,
    }
    said = {key: value for key, value in values.items() if value is not None}
    kept = {key: json.loads(value) for key, value in manifest.others}
    return f"{json.dumps({**said, **kept}, ensure_ascii=False, indent=2)}\n".encode()


def _text(values: Mapping[str, Any], key: str) -> str | None:
    value = values.get(key)
    return value.strip() or None if isinstance(value, str) else None


def _texts(value: Any) -> tuple[str, ...]:
    found: Iterable[Any] = value if isinstance(value, list) else ()
    return tuple(text for text in found if isinstance(text, str))

"""Compare the installed packs with the registries: age, edits by the user, updates."""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from echod.clock import local_datetime
from echod.memory.packs.manifest import PackAges, VersionOrder, age_in_days, compare_versions, is_stale
from echod.packs.installed import InstalledPack, InstalledPacks, PackLocations
from echod.packs.registries import AvailablePack


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

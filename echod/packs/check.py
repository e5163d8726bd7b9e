"""How the packs stand: which are installed, how old, changed by hand, and whether a registry has something newer.

One look at all doc packs: what is installed, compared with what the registries have.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from echod.memory.packs.manifest import Ages, Manifest, Order, age_in_days, compare, is_stale
from echod.packs.installed import Holding, Installed, PackRoom
from echod.packs.registries import Pack, Registries


class Offer(StrEnum):
    """What the registries have for an installed pack."""

    NOTHING = "nothing"
    VERSION = "version"
    """A newer version."""
    TEXT = "text"
    """Another text under the same version."""
    OLDER = "older"
    """An older version only."""
    ABSENT = "absent"
    """No registry has the pack."""
    UNKNOWN = "unknown"
    """The same version, but it is not known which text was installed, and the file is another one."""


class PackState(NamedTuple):
    """A pack as it stands.

    Attributes:
        installed: what is in the global store, perhaps nothing.
        pack: what the registries have; None for nothing.
        stale: whether it is too old; None where that is not known, or it is not installed.
        edited: whether the file was changed since it was installed; None where that is not known.
        offer: what the registries have for it.
    """

    stack: str
    installed: Installed
    pack: Pack | None
    ages: Ages
    stale: bool | None
    edited: bool | None
    offer: Offer

    @property
    def is_installed(self) -> bool:
        """Whether its file is there, or it is said to be."""
        return self.installed.memory is not None or self.installed.manifest is not None

    @property
    def renewable(self) -> bool:
        """Whether an update would bring something."""
        return self.offer in (Offer.VERSION, Offer.TEXT)


def states(holding: Holding, registries: Registries, now: datetime, staleness_days: int) -> tuple[PackState, ...]:
    """Every pack that is installed or in a registry: those of the registries in their order, then the others.

    Args:
        holding: what is installed.
        registries: what could be.
        now: an aware datetime in the local zone.
        staleness_days: a pack that is older is stale.
    """
    names = dict.fromkeys((*registries.packs, *(pack.stack for pack in holding.packs)))
    return tuple(state_of(holding.pack(name), registries.packs.get(name), now, staleness_days) for name in names)


def state_of(installed: Installed, pack: Pack | None, now: datetime, staleness_days: int) -> PackState:
    """How one pack stands; the arguments as for `states`."""
    manifest = installed.manifest
    ages = Ages(None, None, None)
    if manifest is not None:
        stamps = (manifest.last_updated, manifest.installed_at, manifest.checked_at)
        ages = Ages(*(age_in_days(stamp, now) for stamp in stamps))
    return PackState(
        stack=installed.stack,
        installed=installed,
        pack=pack,
        ages=ages,
        stale=None if manifest is None else is_stale(ages, staleness_days),
        edited=_edited(installed, pack),
        offer=_offer(installed, pack),
    )


def _edited(installed: Installed, pack: Pack | None) -> bool | None:
    manifest = installed.manifest
    if manifest is None or installed.memory is None:
        return None
    digest = hashlib.sha256(installed.memory).hexdigest()
    if manifest.sha256 is not None:
        return digest != manifest.sha256
    return False if pack is not None and digest == pack.sha256 else None


def _offer(installed: Installed, pack: Pack | None) -> Offer:
    manifest = installed.manifest
    if pack is None:
        return Offer.ABSENT
    if manifest is None:
        return Offer.NOTHING
    match compare(manifest.source_version, pack.listed.version):
        case Order.OLDER | Order.UNKNOWN:
            return Offer.VERSION
        case Order.NEWER:
            return Offer.OLDER
        case Order.SAME:
            return _offer_of_text(installed, manifest, pack)


def _offer_of_text(installed: Installed, manifest: Manifest, pack: Pack) -> Offer:
    if manifest.sha256 is not None:
        return Offer.NOTHING if manifest.sha256 == pack.sha256 else Offer.TEXT
    return Offer.UNKNOWN if _edited(installed, pack) is None else Offer.NOTHING


class Inventory(NamedTuple):
    """One look at everything: how each pack stands, and what is wrong with a registry or a manifest."""

    packs: tuple[PackState, ...]
    registry_problems: tuple[str, ...]
    store_problems: tuple[str, ...]

    @property
    def installed(self) -> tuple[PackState, ...]:
        """The packs that are in the global store."""
        return tuple(state for state in self.packs if state.is_installed)


def take_inventory(room: PackRoom, holding: Holding, now: float, staleness_days: int) -> Inventory:
    """Compare what is installed with what the registries have.

    Args:
        room: where the registries are.
        holding: what is installed.
        now: Unix seconds.
        staleness_days: a pack that is older is stale.
    """
    registries = room.available()
    found = states(holding, registries, datetime.fromtimestamp(now).astimezone(), staleness_days)
    broken = (pack.problem for pack in holding.packs if pack.problem is not None)
    problems = tuple(problem for registry in registries.each for problem in registry.problems)
    return Inventory(found, problems, (*broken, *holding.problems))

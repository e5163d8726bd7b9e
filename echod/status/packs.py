"""The look at installed doc packs: are they old, is there something newer, can every manifest be read? Only reported.

Whether anything changed is asked every few seconds, which costs some dozen file states and writes nothing; looked at
is everything again when it did, when a registry did, and on every new day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from echod.app.context import Lookout
from echod.clock import local_day
from echod.contract.status import PackInfo, Severity, Warn
from echod.log import get_logger
from echod.packs.installed import installed_stamp, registries_stamp
from echod.packs.registries import origin_of
from echod.store.errors import StoreFault

if TYPE_CHECKING:
    from echod.memory.packs.manifest import Manifest
    from echod.packs.check import PackState

log = get_logger(__name__)


class _Look(NamedTuple):
    """What there is to tell of the packs: their texts are not kept for that. `newer`: what could be updated."""

    infos: tuple[PackInfo, ...] = ()
    newer: tuple[str, ...] = ()
    store_problems: tuple[str, ...] = ()
    registry_problems: tuple[str, ...] = ()

    @property
    def stale(self) -> tuple[str, ...]:
        return tuple(info.name for info in self.infos if info.stale)


class PackWatch:
    """How the packs stood when they were last looked at; owned by one thread."""

    def __init__(self, lookout: Lookout) -> None:
        self._lookout = lookout
        self._told = _Look()
        self._days = lookout.settings.packs.staleness_days
        self._registries: tuple[object, ...] = ()
        self._seen: tuple[object, date] | None = None

    def mark(self, projects: Iterable[Path]) -> None:
        """Registries or the settings of projects may have changed."""
        room, days = self._lookout.packs, self._lookout.staleness_days(projects)
        found = registries_stamp(room.registries)
        if (found, days) != (self._registries, self._days):
            self._registries, self._days = found, days
            self._seen = None

    def step(self, now: float) -> bool:
        """Look again if something changed, or a new day began; whether what there is to tell is another now.

        Args:
            now: Unix seconds.
        """
        seen = (installed_stamp(self._lookout.packs.home), local_day(now))
        if seen == self._seen:
            return False
        self._seen = seen
        before, self._told = self._told, self._look(now)
        if self._told.infos or before.infos:
            # A command that only looks must not begin a log to say that there is nothing.
            log.info("packs_looked_at", installed=len(self._told.infos), stale=len(self._told.stale))
        return before != self._told

    @property
    def infos(self) -> tuple[PackInfo, ...]:
        """The installed packs, for the status."""
        return self._told.infos

    def warnings(self, now: float) -> tuple[Warn, ...]:
        """What a person should know; it is gone when it is mended."""
        return tuple(self._warnings(now))

    def _look(self, now: float) -> _Look:
        if not self._lookout.packs.is_there:
            return _Look()
        from echod.packs.check import take_inventory  # noqa: PLC0415  slow to load, and few have packs

        try:
            holding = self._lookout.packs.installed()
            if not (holding.packs or holding.problems):
                return _Look()  # whoever has no pack needs no registry either
            found = take_inventory(self._lookout.packs, holding, now, self._days)
        except StoreFault as error:
            return _Look(store_problems=(str(error),))
        return _Look(
            infos=tuple(map(pack_info, found.installed)),
            newer=tuple(state.stack for state in found.installed if state.renewable),
            store_problems=found.store_problems,
            registry_problems=found.registry_problems,
        )

    def _warnings(self, now: float) -> Iterator[Warn]:
        if stale := self._told.stale:
            text = f"Installed doc packs are older than {self._days} days: {', '.join(stale)}."
            yield Warn("packs-stale", Severity.WARNING, now, text, "Bring them up to date: echod packs update")
        if newer := self._told.newer:
            text = f"There is something newer than the installed doc packs: {', '.join(newer)}."
            yield Warn("packs-newer", Severity.NOTICE, now, text, "Have it: echod packs update")
        for problem in self._told.store_problems:
            yield Warn("packs-unreadable", Severity.WARNING, now, problem, "Mend it; see: echod packs status")
        for problem in self._told.registry_problems:
            yield Warn("packs-registry", Severity.NOTICE, now, problem, "See: echod packs list")


def pack_info(state: PackState) -> PackInfo:
    """A pack as scripts are told of it."""
    manifest, pack = state.installed.manifest, state.pack
    return PackInfo(
        name=state.stack,
        title=pack.listed.title if pack else state.stack,
        version=manifest.version if manifest else pack.listed.version if pack else "",
        installed=state.is_installed,
        stale=state.stale,
        edited=state.edited,
        available=pack.listed.version if pack else None,
        offer=None if manifest is None else state.offer.value,
        registry=_registry(state),
        domains=manifest.domains if manifest else pack.listed.domains if pack else (),
        installed_at=manifest.installed_at if manifest else None,
        last_updated=_last_updated(state, manifest),
        installed_days=state.ages.installed,
        updated_days=state.ages.updated,
        problem=state.installed.problem,
    )


def _registry(state: PackState) -> str | None:
    manifest = state.installed.manifest
    if manifest is not None:
        return manifest.registry
    return origin_of(state.pack.place) if state.pack else None


def _last_updated(state: PackState, manifest: Manifest | None) -> str | None:
    if manifest is not None:
        return manifest.last_updated
    return state.pack.listed.last_updated if state.pack else None

"""The look at installed doc packs: are they old, is there something newer, can every manifest be read? Only reported.

Whether anything changed is asked every few seconds, which costs some dozen file states and writes nothing; looked at
is everything again when it did, when a registry did, and on every new day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from echod.app.context import ReadContext
from echod.clock import local_date
from echod.contract.status import PackInfo, Severity, StatusWarning
from echod.log import get_logger
from echod.packs.installed import installed_fingerprint, registries_fingerprint
from echod.packs.registries import registry_name
from echod.store.errors import StoreError

if TYPE_CHECKING:
    from echod.memory.packs.manifest import PackManifest
    from echod.packs.check import PackState

log = get_logger(__name__)


class _PackInspection(NamedTuple):
    """What there is to tell of the packs: their texts are not kept for that. `updatable`: what could be updated."""

    infos: tuple[PackInfo, ...] = ()
    updatable: tuple[str, ...] = ()
    store_problems: tuple[str, ...] = ()
    registry_problems: tuple[str, ...] = ()

    @property
    def stale(self) -> tuple[str, ...]:
        return tuple(info.name for info in self.infos if info.stale)


class PackStatus:
    """How the packs stood when they were last looked at; owned by one thread."""

    def __init__(self, read_context: ReadContext) -> None:
        self._read_context = read_context
        self._inspection = _PackInspection()
        self._staleness_days = read_context.settings.packs.staleness_days
        self._registries_version: tuple[object, ...] = ()
        self._inspected_version: tuple[object, date] | None = None

    def invalidate(self, projects: Iterable[Path]) -> None:
        """Registries or the settings of projects may have changed."""
        locations, days = self._read_context.pack_locations, self._read_context.staleness_days(projects)
        registries_version = registries_fingerprint(locations.registry_paths)
        if (registries_version, days) != (self._registries_version, self._staleness_days):
            self._registries_version, self._staleness_days = registries_version, days
            self._inspected_version = None

    def refresh(self, now: float) -> bool:
        """Look again if something changed, or a new day began; whether what there is to tell is another now.

        Args:
            now: Unix seconds.
        """
        version = (installed_fingerprint(self._read_context.pack_locations.claude_home), local_date(now))
        if version == self._inspected_version:
            return False
        self._inspected_version = version
        previous, self._inspection = self._inspection, self._inspect(now)
        if self._inspection.infos or previous.infos:
            # A command that only looks must not begin a log to say that there is nothing.
            log.info("packs_inspected", installed=len(self._inspection.infos), stale=len(self._inspection.stale))
        return previous != self._inspection

    @property
    def infos(self) -> tuple[PackInfo, ...]:
        """The installed packs, for the status."""
        return self._inspection.infos

    def warnings(self, now: float) -> tuple[StatusWarning, ...]:
        """What a person should know; it is gone when it is mended."""
        return tuple(self._warnings(now))

    def _inspect(self, now: float) -> _PackInspection:
        if not self._read_context.pack_locations.exists:
            return _PackInspection()
        from echod.packs.check import check_packs  # noqa: PLC0415  slow to load, and few have packs

        try:
            installed = self._read_context.pack_locations.read_installed()
            if not (installed.packs or installed.problems):
                return _PackInspection()  # whoever has no pack needs no registry either
            checked = check_packs(self._read_context.pack_locations, installed, now, self._staleness_days)
        except StoreError as error:
            return _PackInspection(store_problems=(str(error),))
        return _PackInspection(
            infos=tuple(map(pack_info, checked.installed)),
            updatable=tuple(state.stack for state in checked.installed if state.update_available),
            store_problems=checked.store_problems,
            registry_problems=checked.registry_problems,
        )

    def _warnings(self, now: float) -> Iterator[StatusWarning]:
        if stale := self._inspection.stale:
            text = f"Installed doc packs are older than {self._staleness_days} days: {', '.join(stale)}."
            yield StatusWarning("packs-stale", Severity.WARNING, now, text, "Bring them up to date: echod packs update")
        if newer := self._inspection.updatable:
            text = f"There is something newer than the installed doc packs: {', '.join(newer)}."
            yield StatusWarning("packs-updatable", Severity.NOTICE, now, text, "Have it: echod packs update")
        for problem in self._inspection.store_problems:
            yield StatusWarning("packs-unreadable", Severity.WARNING, now, problem, "Mend it; see: echod packs status")
        for problem in self._inspection.registry_problems:
            yield StatusWarning("packs-registry", Severity.NOTICE, now, problem, "See: echod packs list")


def pack_info(state: PackState) -> PackInfo:
    """A pack as scripts are told of it."""
    manifest, pack = state.installed.manifest, state.pack
    return PackInfo(
        name=state.stack,
        title=pack.listing.title if pack else state.stack,
        version=manifest.version if manifest else pack.listing.version if pack else "",
        installed=state.is_installed,
        stale=state.stale,
        edited=state.edited,
        available=pack.listing.version if pack else None,
        offer=None if manifest is None else state.update_status.value,
        registry=_registry_name(state),
        domains=manifest.domains if manifest else pack.listing.domains if pack else (),
        installed_at=manifest.installed_at if manifest else None,
        last_updated=_last_updated(state, manifest),
        installed_days=state.ages.installed,
        updated_days=state.ages.updated,
        problem=state.installed.problem,
    )


def _registry_name(state: PackState) -> str | None:
    manifest = state.installed.manifest
    if manifest is not None:
        return manifest.registry
    return registry_name(state.pack.registry_path) if state.pack else None


def _last_updated(state: PackState, manifest: PackManifest | None) -> str | None:
    if manifest is not None:
        return manifest.last_updated
    return state.pack.listing.last_updated if state.pack else None

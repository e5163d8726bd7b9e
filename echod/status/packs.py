"""Report the installed doc packs: ages, available updates, unreadable manifests. Read-only.

The daemon checks every few seconds whether anything changed, which costs a few dozen `stat` calls. The packs are
inspected again when a pack or a registry changed, and on every new day.
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
    from echod.packs.check import PackState

log = get_logger(__name__)


class _PackInspection(NamedTuple):
    """The report about the packs. Their texts are not kept. `updatable` are the names of those with an update."""

    infos: tuple[PackInfo, ...] = ()
    updatable: tuple[str, ...] = ()
    store_problems: tuple[str, ...] = ()
    registry_problems: tuple[str, ...] = ()

    @property
    def stale(self) -> tuple[str, ...]:
        return tuple(info.name for info in self.infos if info.stale)


class PackStatus:
    """The packs as of their last inspection. Used by one thread."""

    def __init__(self, read_context: ReadContext) -> None:
        self._read_context = read_context
        self._inspection = _PackInspection()
        self._staleness_days = read_context.settings.packs.staleness_days
        self._registries_version: tuple[object, ...] = ()
        self._inspected_version: tuple[object, date] | None = None

    def invalidate(self, projects: Iterable[Path]) -> None:
        """Schedule an inspection if a registry or the projects' settings have changed."""
        locations, days = self._read_context.pack_locations, self._read_context.staleness_days(projects)
        registries_version = registries_fingerprint(locations.registry_paths)
        if (registries_version, days) != (self._registries_version, self._staleness_days):
            self._registries_version, self._staleness_days = registries_version, days
            self._inspected_version = None

    def refresh(self, now: float) -> bool:
        """Inspect the packs if something changed or a new day began. Return whether the report is different now."""
        version = (installed_fingerprint(self._read_context.pack_locations.claude_home), local_date(now))
        if version == self._inspected_version:
            return False
        self._inspected_version = version
        previous, self._inspection = self._inspection, self._inspect(now)
        if self._inspection.infos or previous.infos:
            # A read-only command must not create a log just to record that there are no packs.
            log.info("packs_inspected", installed=len(self._inspection.infos), stale=len(self._inspection.stale))
        return previous != self._inspection

    @property
    def infos(self) -> tuple[PackInfo, ...]:
        """The installed packs, for the status."""
        return self._inspection.infos

    def warnings(self, now: float) -> tuple[StatusWarning, ...]:
        """Return the warnings about the packs, until their causes are fixed."""
        return tuple(self._warnings(now))

    def _inspect(self, now: float) -> _PackInspection:
        if not self._read_context.pack_locations.exists:
            return _PackInspection()
        from echod.packs.check import check_packs  # noqa: PLC0415  takes long to load, and few users have packs

        try:
            installed = self._read_context.pack_locations.read_installed()
            if not (installed.packs or installed.problems):
                return _PackInspection()  # without packs the registries do not matter
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
            yield StatusWarning("packs-stale", Severity.WARNING, now, text, "Update with: echod packs update")
        if newer := self._inspection.updatable:
            text = f"Updates are available for installed doc packs: {', '.join(newer)}."
            yield StatusWarning("packs-updatable", Severity.NOTICE, now, text, "Update with: echod packs update")
        for problem in self._inspection.store_problems:
            fix = "Repair it. Details: echod packs status"
            yield StatusWarning("packs-unreadable", Severity.WARNING, now, problem, fix)
        for problem in self._inspection.registry_problems:
            yield StatusWarning("packs-registry", Severity.NOTICE, now, problem, "Details: echod packs list")


def pack_info(state: PackState) -> PackInfo:
    """Return a pack in the form of the JSON contract."""
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
        registry=manifest.registry if manifest else registry_name(pack.registry_path) if pack else None,
        domains=manifest.domains if manifest else pack.listing.domains if pack else (),
        installed_at=manifest.installed_at if manifest else None,
        last_updated=manifest.last_updated if manifest else pack.listing.last_updated if pack else None,
        installed_days=state.ages.installed,
        updated_days=state.ages.updated,
        problem=state.installed.problem,
    )

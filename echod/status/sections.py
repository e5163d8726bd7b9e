"""The sections of the status about doc packs and conversations. Read-only.

The daemon checks every few seconds whether anything changed, which costs a few dozen `stat` calls. The packs are
inspected again when a pack or a registry changed, and on every new day.

Costs nothing unless the user has switched archiving on for a project.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from echod.app.context import ReadContext
from echod.clock import local_date
from echod.contract.status import PackInfo, SessionsInfo, Severity, StatusWarning
from echod.errors import EchodError
from echod.log import get_logger
from echod.memory.conversation.distill import analyse_memory, pressure_of
from echod.packs.installed import check_packs, installed_fingerprint, registries_fingerprint, registry_name
from echod.sessions.roots import CURATED, EXPIRY_WARNING_DAYS, SessionError, SessionRoot
from echod.store.errors import StoreError

if TYPE_CHECKING:
    from echod.packs.installed import PackState


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


REFRESH_SECONDS: Final = 60.0
"""The transcripts of a busy project change all the time, and this is no list of them."""


class SessionStatus:
    """The conversations of all projects. Looks at the disk at most once a minute. Used by one thread."""

    def __init__(self, read_context: ReadContext) -> None:
        self._read_context = read_context
        self._looked_at: float | None = None
        self._projects: tuple[Path, ...] = ()
        self.infos: tuple[SessionsInfo, ...] = ()
        self._problems: tuple[str, ...] = ()

    @property
    def known_infos(self) -> tuple[SessionsInfo, ...] | None:
        """The conversations of each project; None before the first look, and while something cannot be read."""
        return None if self._looked_at is None or self._problems else self.infos

    def refresh(self, projects: Iterable[Path], now: float) -> None:
        """Look again at the conversations of these projects, unless that was done a moment ago."""
        selected = tuple(projects)
        is_fresh = self._looked_at is not None and 0 <= now - self._looked_at < REFRESH_SECONDS
        if is_fresh and selected == self._projects:
            return
        self._looked_at, self._projects = now, selected
        problems: list[str] = []
        try:
            enabled = self._read_context.session_projects.enabled(selected)
        except EchodError as error:
            self.infos, self._problems = (), (str(error),)
            return
        self.infos = tuple(self._inspect(project, now, problems) for project in enabled)
        self._problems = tuple(problems)

    def _inspect(self, project: Path, now: float, problems: list[str]) -> SessionsInfo:
        context = self._read_context
        root, host = context.session_projects.root(project), None
        archives, share = 0, 0.0
        try:
            host = context.host_state(project, now)
            archives = len(root.archives())
            share = _memory_share(root, now)
        except SessionError as error:
            problems.append(str(error))
        return SessionsInfo(
            project=str(project),
            root=str(root.entity),
            archives=archives,
            waiting=0 if host is None else len(host.waiting),
            expiring=0 if host is None else host.expiring(now),
            host_days=context.host_days,
            memory_percent=int(share * 100),
            pressure=pressure_of(share),
        )

    def warnings(self, now: float) -> Iterator[StatusWarning]:
        """Yield what needs the user."""
        for problem in self._problems:
            yield StatusWarning("sessions-unreadable", Severity.WARNING, now, problem, "")
        for info in self.infos:
            at = shlex.quote(info.project)
            if info.expiring:
                are = "session is" if info.expiring == 1 else "sessions are"
                text = (
                    f"{info.expiring} {are} not archived and within {EXPIRY_WARNING_DAYS} days of deletion in "
                    f"{info.project}: Claude Code keeps transcripts for {info.host_days} days."
                )
                fix = f"Archive now: cd {at} && echod sessions archive"
                yield StatusWarning("sessions-expiring", Severity.WARNING, now, text, fix)
            if info.pressure != "none":
                severity = Severity.NOTICE if info.pressure == "notice" else Severity.WARNING
                text = (
                    f"{info.root}/memory/MEMORY.md is {info.memory_percent} % full. The host loads no more than that."
                )
                fix = f"Show what can be moved or removed: cd {at} && echod sessions distill"
                yield StatusWarning("sessions-memory-full", severity, now, text, fix)


def _memory_share(root: SessionRoot, now: float) -> float:
    return analyse_memory(root.read_text(CURATED), local_date(now)).share

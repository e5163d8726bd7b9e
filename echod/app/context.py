"""Composition root for read-only commands.

Separate from `services`, so that a command that changes nothing loads no job code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path

from echod.clock import local_date
from echod.inbox.spool import Spool
from echod.lazy import lazy_imports
from echod.packs.installed import PackLocations
from echod.paths import Paths, claude_home, codex_home
from echod.projects import registry
from echod.projects.discovery import DiscoveredStores, ProjectLocator, discover_stores
from echod.projects.registry import ProjectRegistry
from echod.projects.settings import MaintenancePolicy, ProjectSettings, ProjectSettingsCache
from echod.scheduler.needs import NeedSettings, ProjectGate
from echod.sessions.roots import SessionProjects
from echod.settings.schema import Settings
from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.state.fingerprints import FingerprintStore
from echod.state.jobs import ProcessIdentity, QueueView
from echod.state.session_log import HookEventLog, SessionLog
from echod.state.workflow_log import WorkflowLog
from echod.store import layout
from echod.store.errors import EngineLimits
from echod.store.journal.ledger import Notices
from echod.store.layout import Store, project_root
from echod.store.reader import StoreReader
from echod.workflows import GateLimits, SystemProcessTable

with lazy_imports(__name__):
    import psutil

    from echod import inspection
    from echod.sessions import needs, text_search, transcripts


_START_TOLERANCE_SECONDS = 2.0


class ReadContext:
    """Everything a read-only command needs, for projects and their queue. Each part is made when it is first used.

    Args:
        environ: names Claude Code's own directory.
        database: None if there is no state database yet. The parts made of it are None then, too.
        records_workflows: the gate also records the workflows it sees, as the service wants.
    """

    def __init__(
        self,
        paths: Paths,
        settings: Settings,
        environ: Mapping[str, str],
        reader: StoreReader,
        database: Database | None,
        *,
        records_workflows: bool = False,
    ) -> None:
        self.paths = paths
        self.settings = settings
        self.reader = reader
        self.locator = ProjectLocator.from_environment(environ)
        self.claude_home = claude_home(environ)
        self._codex_home = codex_home(environ) if settings.sessions.codex else None
        self._database = database
        self._records_workflows = records_workflows

    @cached_property
    def projects(self) -> ProjectRegistry:
        """The registered and the paused projects."""
        return ProjectRegistry(self.paths.projects)

    @cached_property
    def project_settings(self) -> ProjectSettingsCache:
        """The projects' own settings, parsed again only when their files change."""
        return ProjectSettingsCache()

    @cached_property
    def project_gate(self) -> ProjectGate:
        """The gate of every project."""
        workflow_log = None if self._database is None else WorkflowLog(self._database)
        return ProjectGate(
            reader=self.reader,
            workflows=workflow_log,
            recorder=workflow_log if self._records_workflows else None,
            claude_home=self.claude_home,
            processes=SystemProcessTable(),
            limits=GateLimits(quiet_seconds=self.settings.quiet_seconds, sessions=self.settings.gate.sessions),
        )

    @cached_property
    def inspections(self) -> inspection.InspectionCache:
        """The stored inspections of memory files."""
        return inspection.load_inspections(self.paths.inspections)

    @cached_property
    def review_collector(self) -> inspection.ReviewCollector:
        """The review items."""
        return inspection.ReviewCollector(self.entries, self.inspections)

    @cached_property
    def session_projects(self) -> SessionProjects:
        """The projects whose conversations are archived."""
        return SessionProjects(self.paths, self.settings.sessions, self._settings_of)

    @cached_property
    def session_need_finder(self) -> needs.SessionNeedFinder:
        """The finder of sessions that have to be archived."""
        return needs.SessionNeedFinder(
            self.session_projects,
            transcripts.TranscriptFinder(self.claude_home, self._codex_home),
            self.session_log,
            idle_seconds=self.settings.sessions.idle_minutes * 60,
            summarises=bool(self.settings.sessions.summary_command),
        )

    def session_need_finder_for(self, projects: Iterable[Path]) -> needs.SessionNeedFinder | None:
        """Return the finder of sessions; None if the conversations of none of these projects are archived.

        That is usual, and nothing is loaded for it then.
        """
        return self.session_need_finder if self.session_projects.enabled(projects) else None

    @cached_property
    def session_log(self) -> SessionLog | None:
        """The transcripts that were read."""
        return None if self._database is None else SessionLog(self._database)

    def host_state(self, project: Path, now: float) -> needs.HostState:
        """Return what the host still has of a project's conversations."""
        finder = self.session_need_finder_for([project])
        waiting = () if finder is None else finder.waiting(project, now)
        return needs.HostState(project, finder is not None, waiting, self.host_days)

    def collect_notices(self, store: Store, now: float) -> Notices:
        """Return the items for the user in a store's journal, and one if the project's curated memory is full."""
        notices = self.reader.collect_notices(store)
        if not self.session_projects.enabled([store.project]):
            return notices
        if layout.find_stores_in_resolved_root(store.project)[:1] != (store,):
            return notices  # a project with two stores has one such item
        full = text_search.full_memory_notice(self.session_projects.root(store.project), local_date(now))
        return notices if full is None else notices._replace(notices=(*notices.notices, full))

    @property
    def host_days(self) -> int:
        """For how many days the host keeps transcripts, by its own settings."""
        return transcripts.host_retention_days(self.claude_home)

    def _settings_of(self, project: Path) -> ProjectSettings:
        return self.project_settings.read(project).settings

    @cached_property
    def spool(self) -> Spool:
        """The spooled hook events."""
        return Spool(self.paths.spool)

    @cached_property
    def pack_locations(self) -> PackLocations:
        """The locations of doc packs and of the global store."""
        return PackLocations(project_root(self.claude_home), self.settings.packs.registries)

    @cached_property
    def queue_view(self) -> QueueView | None:
        """The queue."""
        return None if self._database is None else QueueView(self._database)

    @cached_property
    def hook_events(self) -> HookEventLog | None:
        """The log of hook events."""
        return None if self._database is None else HookEventLog(self._database)

    @cached_property
    def entries(self) -> EntryStore | None:
        """The facts about entries."""
        return None if self._database is None else EntryStore(self._database)

    @cached_property
    def fingerprints(self) -> FingerprintStore | None:
        """The fingerprints of cited lines."""
        return None if self._database is None else FingerprintStore(self._database)

    def snapshot(self) -> AbstractContextManager[None]:
        """Return a context in which every query sees the database at one moment, and costs less."""
        return nullcontext() if self._database is None else self._database.snapshot()

    def save_inspections(self) -> None:
        """Save changed inspections for the next process."""
        inspection.save_inspections(self.inspections, self.paths.inspections)

    def discover_stores(self) -> DiscoveredStores:
        """Return the present projects and stores: the registered ones and those that match the settings' globs."""
        roots = (*self.projects.roots(), *registry.expand_globs(self.settings.projects))
        return discover_stores(roots, self.locator)

    def need_settings(self, project: Path) -> NeedSettings:
        """Return the settings that decide which work a project needs."""
        settings = self.project_settings.read(project).settings
        maintenance = self.maintenance_policy_from(settings)
        has_remote = self.settings.sync.minutes > 0 and self.paths.memory_repository(project).exists()
        return NeedSettings(
            self.settings.quiet_seconds,
            settings.consolidate,
            self.settings.mode,
            maintenance,
            sync_minutes=self.settings.sync.minutes if has_remote else 0.0,
            ingest=self.settings.ingest.workflows,
        )

    def maintenance_policy(self, project: Path) -> MaintenancePolicy:
        """Return the maintenance policy of a project."""
        return self.maintenance_policy_from(self.project_settings.read(project).settings)

    def maintenance_policy_from(self, settings: ProjectSettings) -> MaintenancePolicy:
        """Return the maintenance policy of a project with these settings."""
        limit = settings.effective_line_limit(self.settings.memory_line_limit)
        return MaintenancePolicy(
            policy=self.settings.policy_settings(limit),
            prune=settings.prune,
            compress=settings.compress,
            maintain_tracked=settings.maintain_tracked,
        )

    def line_limit(self, project: Path) -> int:
        """Return the line limit of a project's memory files."""
        return self.project_settings.read(project).settings.effective_line_limit(self.settings.memory_line_limit)

    def staleness_days(self, projects: Iterable[Path]) -> int:
        """Return after how many days a doc pack is stale: the least of these projects' settings, or the user's."""
        project_days = (self.project_settings.read(project).settings.staleness_days for project in projects)
        return min((days for days in project_days if days is not None), default=self.settings.packs.staleness_days)


@contextmanager
def open_read_context(
    paths: Paths, settings: Settings, environ: Mapping[str, str], clock: Callable[[], float]
) -> Iterator[ReadContext]:
    """Open the context of a read-only command. It creates no file, and works while a daemon runs.

    Raises:
        StateError: the database cannot be read.
    """
    with ExitStack() as stack:
        database = Database.open_readonly(paths.database)
        if database is not None:
            stack.enter_context(database)
        reader = StoreReader(paths.journal, limits=EngineLimits(), clock=clock)
        yield ReadContext(paths, settings, environ, reader, database)


def process_is_alive(process: ProcessIdentity) -> bool:
    """Return whether the process that claimed a job is alive; True if that is unknown."""
    try:
        return abs(psutil.Process(process.pid).create_time() - process.started) < _START_TOLERANCE_SECONDS
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True

"""The composition root for whoever only looks, apart from what works on memories, since that takes long to load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from echod.inbox.spool import Spool
from echod.inspection.counts import FileStatsCache, load_file_stats
from echod.inspection.review import ReviewCollector
from echod.inspection.survey import StoreInspector
from echod.packs.installed import PackLocations
from echod.paths import Paths, claude_home
from echod.projects import registry
from echod.projects.discovery import DiscoveredStores, discover_stores
from echod.projects.maintenance import MaintenancePolicy
from echod.projects.registry import ProjectRegistry
from echod.projects.settings import ProjectSettings, ProjectSettingsCache
from echod.scheduler.gate import ProjectGate
from echod.settings.values import Settings
from echod.state.database import Database
from echod.state.entries import EntryStore
from echod.state.hook_events import HookEventLog
from echod.state.job import ProcessIdentity
from echod.state.job_rows import QueueView
from echod.state.workflow_log import WorkflowLog
from echod.store.layout import project_root
from echod.store.limits import EngineLimits
from echod.store.reader import StoreReader
from echod.workflows import GateLimits, SystemProcessTable

if TYPE_CHECKING:
    from echod.scheduler.needs import NeedSettings

_START_TOLERANCE_SECONDS = 2.0


class ReadContext(NamedTuple):
    """What looks at projects and their queue and changes nothing. `queue_view` is None where nothing was ever recorded.

    `project_settings` are the projects' own settings; parsing them at every look would cost more than the look. While
    `one_moment()` lasts, all that is asked of the database is of one moment, and costs less.
    """

    paths: Paths
    settings: Settings
    projects: ProjectRegistry
    queue_view: QueueView | None
    reader: StoreReader
    project_gate: ProjectGate
    stats_cache: FileStatsCache
    store_inspector: StoreInspector
    spool: Spool
    project_settings: ProjectSettingsCache
    hook_events: HookEventLog | None
    entries: EntryStore | None
    review_collector: ReviewCollector
    pack_locations: PackLocations
    snapshot: Callable[[], AbstractContextManager[None]]

    def discover_stores(self) -> DiscoveredStores:
        """The projects and stores as they are now: registered ones and those the settings' globs match."""
        return discover_stores((*self.projects.roots(), *registry.expand_globs(self.settings.projects)))

    def need_settings(self, project: Path) -> NeedSettings:
        """What counts as work in a project."""
        from echod.scheduler.needs import NeedSettings  # noqa: PLC0415  a command that only looks asks for no work

        project_settings = self.project_settings.read(project).settings
        return NeedSettings(
            quiet_seconds=self.settings.quiet_seconds,
            consolidate=project_settings.consolidate,
            mode=self.settings.mode,
            maintenance=self.maintenance_policy_from(project_settings),
        )

    def maintenance_policy(self, project: Path) -> MaintenancePolicy:
        """What may be done to the project's memory beyond consolidation, and by which numbers."""
        return self.maintenance_policy_from(self.project_settings.read(project).settings)

    def maintenance_policy_from(self, project_settings: ProjectSettings) -> MaintenancePolicy:
        """The same, for what the project's settings say."""
        return MaintenancePolicy(
            policy=self.settings.policy_settings(
                project_settings.effective_line_limit(self.settings.memory_line_limit)
            ),
            prune=project_settings.prune,
            compress=project_settings.compress,
            maintain_tracked=project_settings.maintain_tracked,
        )

    def line_limit(self, project: Path) -> int:
        """How long a memory file of the project may be."""
        return self.project_settings.read(project).settings.effective_line_limit(self.settings.memory_line_limit)

    def staleness_days(self, projects: Iterable[Path]) -> int:
        """After how many days a doc pack is stale: the least that these projects say, else the user's setting."""
        project_days = (self.project_settings.read(project).settings.staleness_days for project in projects)
        return min((days for days in project_days if days is not None), default=self.settings.packs.staleness_days)


@contextmanager
def open_read_context(
    paths: Paths, settings: Settings, environ: Mapping[str, str], clock: Callable[[], float]
) -> Iterator[ReadContext]:
    """What a command needs that only looks. Creates nothing, and works while a daemon runs.

    Raises:
        StateError: the database cannot be read.
    """
    with ExitStack() as stack:
        database = Database.open_readonly(paths.database)
        if database is not None:
            stack.enter_context(database)
        reader = StoreReader(paths.journal, limits=EngineLimits(), clock=clock)
        workflow_log = None if database is None else WorkflowLog(database)
        yield build_read_context(paths, settings, environ, reader, database, workflow_log, None)


def build_read_context(
    paths: Paths,
    settings: Settings,
    environ: Mapping[str, str],
    reader: StoreReader,
    database: Database | None,
    workflow_log: WorkflowLog | None,
    recorder: WorkflowLog | None,
) -> ReadContext:
    """Build what looks.

    Args:
        paths: where echod's own files live.
        settings: the settings.
        environ: says where Claude Code keeps its own directory.
        reader: reads the stores and the journal.
        database: None where nothing was ever recorded.
        workflow_log: what is known of workflows, likewise.
        recorder: where the workflows that are seen are recorded, None for whoever only looks.
    """
    project_gate = ProjectGate(
        reader=reader,
        workflows=workflow_log,
        recorder=recorder,
        claude_home=claude_home(environ),
        processes=SystemProcessTable(),
        limits=GateLimits(quiet_seconds=settings.quiet_seconds, sessions=settings.gate.sessions),
    )
    entries = None if database is None else EntryStore(database)
    stats_cache = load_file_stats(paths.file_stats)
    return ReadContext(
        paths=paths,
        settings=settings,
        projects=ProjectRegistry(paths.projects),
        queue_view=None if database is None else QueueView(database),
        reader=reader,
        project_gate=project_gate,
        stats_cache=stats_cache,
        store_inspector=StoreInspector(stats_cache),
        spool=Spool(paths.spool),
        project_settings=ProjectSettingsCache(),
        hook_events=None if database is None else HookEventLog(database),
        entries=entries,
        review_collector=ReviewCollector(entries, stats_cache),
        pack_locations=PackLocations(project_root(claude_home(environ)), settings.packs.registries),
        snapshot=nullcontext if database is None else database.snapshot,
    )


def process_is_alive(process: ProcessIdentity) -> bool:
    """Whether the process that claimed a job lives; True where that cannot be told."""
    import psutil  # noqa: PLC0415  slow to load, and mostly no job runs

    try:
        return abs(psutil.Process(process.pid).create_time() - process.started) < _START_TOLERANCE_SECONDS
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True

"""The composition root for whoever only looks, apart from what works on memories, since that takes long to load."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from echod.inbox.spool import Spool
from echod.inspection.counts import Counted, take_up
from echod.inspection.review import Review
from echod.inspection.survey import Survey
from echod.packs.installed import PackRoom
from echod.paths import Paths, claude_home
from echod.projects import registry
from echod.projects.discovery import Roster, call
from echod.projects.maintenance import Care
from echod.projects.registry import Projects
from echod.projects.settings import ProjectSettings, ProjectSettingsReader
from echod.scheduler.gate import Gatekeeper
from echod.settings.values import Settings
from echod.state.database import Database
from echod.state.entries import EntryLog
from echod.state.hook_events import ObservedLog
from echod.state.job import ProcessIdentity
from echod.state.job_rows import QueueView
from echod.state.workflow_log import WorkflowLog
from echod.store.layout import project_root
from echod.store.limits import EngineLimits
from echod.store.reader import Reader
from echod.workflows.model import GateLimits, SystemProcesses

if TYPE_CHECKING:
    from echod.scheduler.needs import NeedRules

_SAME_START_SECONDS = 2.0


class Lookout(NamedTuple):
    """What looks at projects and their queue and changes nothing. `view` is None where nothing was ever recorded.

    `wishes` are the projects' own settings; parsing them at every look would cost more than the look. While
    `one_moment()` lasts, all that is asked of the database is of one moment, and costs less.
    """

    paths: Paths
    settings: Settings
    projects: Projects
    view: QueueView | None
    reader: Reader
    gatekeeper: Gatekeeper
    counted: Counted
    survey: Survey
    spool: Spool
    wishes: ProjectSettingsReader
    observed: ObservedLog | None
    entries: EntryLog | None
    reviews: Review
    packs: PackRoom
    one_moment: Callable[[], AbstractContextManager[None]]

    def roster(self) -> Roster:
        """The projects and stores as they are now: registered ones and those the settings' globs match."""
        return call((*self.projects.roots(), *registry.expand(self.settings.projects)))

    def rules(self, project: Path) -> NeedRules:
        """What counts as work in a project."""
        from echod.scheduler.needs import NeedRules  # noqa: PLC0415  a command that only looks asks for no work

        asked = self.wishes.read(project).settings
        return NeedRules(
            quiet_seconds=self.settings.quiet_seconds,
            consolidate=asked.consolidate,
            mode=self.settings.mode,
            care=self.care_for(asked),
        )

    def care(self, project: Path) -> Care:
        """What may be done to the project's memory beyond consolidation, and by which numbers."""
        return self.care_for(self.wishes.read(project).settings)

    def care_for(self, asked: ProjectSettings) -> Care:
        """The same, for what the project's settings say."""
        return Care(
            policy=self.settings.policy_numbers(asked.line_limit(self.settings.memory_line_limit)),
            prune=asked.prune,
            compress=asked.compress,
            maintain_tracked=asked.maintain_tracked,
        )

    def line_limit(self, project: Path) -> int:
        """How long a memory file of the project may be."""
        return self.wishes.read(project).settings.line_limit(self.settings.memory_line_limit)

    def staleness_days(self, projects: Iterable[Path]) -> int:
        """After how many days a doc pack is stale: the least that these projects say, else the user's setting."""
        asked = (self.wishes.read(project).settings.staleness_days for project in projects)
        return min((days for days in asked if days is not None), default=self.settings.packs.staleness_days)


@contextmanager
def look_out(
    paths: Paths, settings: Settings, environ: Mapping[str, str], clock: Callable[[], float]
) -> Iterator[Lookout]:
    """What a command needs that only looks. Creates nothing, and works while a daemon runs.

    Raises:
        StateError: the database cannot be read.
    """
    with ExitStack() as stack:
        database = Database.open_reading(paths.database)
        if database is not None:
            stack.enter_context(database)
        reader = Reader(paths.journal, limits=EngineLimits(), clock=clock)
        log = None if database is None else WorkflowLog(database)
        yield make_lookout(paths, settings, environ, reader, database, log, None)


def make_lookout(
    paths: Paths,
    settings: Settings,
    environ: Mapping[str, str],
    reader: Reader,
    database: Database | None,
    workflows: WorkflowLog | None,
    recorder: WorkflowLog | None,
) -> Lookout:
    """Build what looks.

    Args:
        paths: where echod's own files live.
        settings: the settings.
        environ: says where Claude Code keeps its own directory.
        reader: reads the stores and the journal.
        database: None where nothing was ever recorded.
        workflows: what is known of workflows, likewise.
        recorder: where the workflows that are seen are recorded, None for whoever only looks.
    """
    gatekeeper = Gatekeeper(
        reader=reader,
        workflows=workflows,
        recorder=recorder,
        claude_home=claude_home(environ),
        processes=SystemProcesses(),
        limits=GateLimits(quiet_seconds=settings.quiet_seconds, sessions=settings.gate.sessions),
    )
    entries = None if database is None else EntryLog(database)
    counted = take_up(paths.counts)
    return Lookout(
        paths=paths,
        settings=settings,
        projects=Projects(paths.projects),
        view=None if database is None else QueueView(database),
        reader=reader,
        gatekeeper=gatekeeper,
        counted=counted,
        survey=Survey(counted),
        spool=Spool(paths.spool),
        wishes=ProjectSettingsReader(),
        observed=None if database is None else ObservedLog(database),
        entries=entries,
        reviews=Review(entries, counted),
        packs=PackRoom(project_root(claude_home(environ)), settings.packs.registries),
        one_moment=nullcontext if database is None else database.one_moment,
    )


def still_runs(worker: ProcessIdentity) -> bool:
    """Whether the process that claimed a job lives; True where that cannot be told."""
    import psutil  # noqa: PLC0415  slow to load, and mostly no job runs

    try:
        return abs(psutil.Process(worker.pid).create_time() - worker.started) < _SAME_START_SECONDS
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True

"""The archive job: archive a session that ended or was idle, or make its checkpoint before the host compacts it.

It writes only to the directory of archives, in which no agent works, so no workflow holds it up.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from echod.jobs.base import JobDeferred, JobDone, JobFailed, JobOutcome, report_only
from echod.log import get_logger
from echod.memory.conversation.model import ArchiveOrigin
from echod.sessions.archiver import Archiver, SessionSource, Summarizer
from echod.sessions.journal import RootJournal, Tracer
from echod.sessions.needs import SessionNeedFinder
from echod.sessions.roots import MEMORY_DIRECTORY, RootBusyError, SessionError, SessionProjects, SessionRoot
from echod.state.jobs import Job, JobKind
from echod.state.session_log import SessionLog

_BUSY_SECONDS = 10.0

log = get_logger(__name__)


class SessionServices(NamedTuple):
    """Everything that works on conversations.

    Attributes:
        summarizer: the user's command; None without one.
        trace: called before each step of a change.
    """

    projects: SessionProjects
    need_finder: SessionNeedFinder
    session_log: SessionLog
    summarizer: Summarizer | None
    clock: Callable[[], float]
    trace: Tracer

    def apply_retention(self) -> int:
        """Delete what undo needs no longer, for all projects, and return the freed bytes. A busy directory waits."""
        freed = 0
        for root in self.known_roots():
            try:
                with root.locked():
                    journal = RootJournal(root)
                    journal.recover()
                    freed += journal.apply_retention(self.clock())
            except SessionError as error:
                log.warning("session_retention_failed", root=str(root.entity), reason=str(error))
        return freed

    def known_roots(self) -> tuple[SessionRoot, ...]:
        """Return every directory of archives that exists and was ever used."""
        roots = (
            SessionRoot(Path(key).parent) for key in self.session_log.list_roots() if key.endswith(MEMORY_DIRECTORY)
        )
        return tuple(root for root in roots if root.private.is_dir())

    def archiver(self, project: Path) -> Archiver:
        """Return the archiver of a project."""
        return Archiver(
            self.projects.root(project), self.session_log, self.clock, summarizer=self.summarizer, trace=self.trace
        )


def run(services: SessionServices, job: Job, project: Path, *, allow_writes: bool) -> JobOutcome:
    """Archive one session of a project, whose id is the role of the job."""
    choice = services.projects.choice(project)
    if not choice.enabled:
        return JobDone(f"nothing was done: {choice.reason}", changed=False)
    if not allow_writes:
        return report_only(f"{job.kind.value} session {job.role}")
    try:
        return _archive(services, job, project)
    except RootBusyError as error:
        return JobDeferred(str(error), services.clock() + _BUSY_SECONDS)
    except SessionError as error:
        return JobFailed(str(error))


def _archive(services: SessionServices, job: Job, project: Path) -> JobOutcome:
    archiver, now = services.archiver(project), services.clock()
    transcripts = services.need_finder.transcripts_of(project, job.role, now)
    is_checkpoint = job.kind is JobKind.CHECKPOINT
    if transcripts and not is_checkpoint:
        due = max(services.need_finder.due(transcript, now) for transcript in transcripts)
        if due > now:
            return JobDeferred("the session goes on", due)
    archiver.root.create()
    kind = ArchiveOrigin.CHECKPOINT if is_checkpoint else ArchiveOrigin.SESSION
    texts, changed = [], False
    for transcript in transcripts:
        source = SessionSource(transcript.path, str(project), is_complete=not is_checkpoint)
        outcome = archiver.archive(source, kind, job.id)
        texts.append(outcome.text)
        changed = changed or outcome.archive is not None
    if is_checkpoint:
        services.session_log.clear_compacting(job.role)
    elif written := archiver.summarise_pending(job.id, job.role):
        texts.append(f"summarised by the user's command ({written})")
        changed = True
    return JobDone("; ".join(dict.fromkeys(texts)) or "its transcript is gone", changed=changed)

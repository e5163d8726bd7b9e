"""The sync job: an exchange of one project, which commits in each role that received something.

A module of its own, and short, because it joins the exchange, which knows git, with the jobs, which know the store.
"""

from __future__ import annotations

from pathlib import Path

from echod.jobs import sync
from echod.jobs.base import JobBlocked, JobDone, JobOutcome, JobResources, report_only
from echod.jobs.sync import Incoming
from echod.store.layout import Role
from echod.sync.exchange import exchange
from echod.sync.repository import MemoryRepository


class _StoppedError(Exception):
    """A role could not take what came in, so nothing is pushed."""

    def __init__(self, outcome: JobOutcome) -> None:
        super().__init__()
        self.outcome = outcome


def run_exchange(project: Path, repository: MemoryRepository, resources: JobResources) -> JobOutcome:
    """Exchange the memory of a project with its remote.

    Raises:
        GitError: the remote cannot be used now; the job is tried again.
        RefusedError: it is the wrong remote, or something must not be pushed.
    """
    settings = repository.settings
    if settings is None:
        return JobBlocked("no remote is set up for this memory")
    if not resources.allow_writes:
        return report_only("exchange the memory with its remote")

    def pull(role: Role, incoming: Incoming) -> bool:
        resources.engine.create_role(role)
        with resources.open_role(role) as context:
            outcome = sync.run(context, incoming)
        if isinstance(outcome, JobDone):
            return outcome.changed
        raise _StoppedError(outcome)

    try:
        result = exchange(project, repository, settings, pull, resources.clock())
    except _StoppedError as stopped:
        return stopped.outcome
    return JobDone(result.summary, changed=bool(result.pulled))

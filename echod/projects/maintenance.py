"""Decide which maintenance jobs a project allows, and which of them only on request.

A module of its own because it needs job kinds and git's files, which readers of project settings do not load.
"""

from __future__ import annotations

from dataclasses import dataclass

from echod.memory.policy_model import PolicySettings
from echod.state.job import JobKind
from echod.store.layout import Role
from echod.workflows.markers.git import may_track


@dataclass(frozen=True, slots=True)
class MaintenancePolicy:
    """The numbers and rules for prune, promote and compress in one project, which may forbid `prune` and `compress`.

    `maintain_tracked` is whether both also run without a request where git tracks the files.
    """

    policy: PolicySettings
    prune: bool
    compress: bool
    maintain_tracked: bool

    def disabled_reason(self, kind: JobKind) -> str | None:
        """Return why the project forbids such a job, even on request; None if it does not."""
        enabled = {JobKind.PRUNE: self.prune, JobKind.COMPRESS: self.compress}.get(kind, True)
        return None if enabled else f"the project's own settings contain {kind.value}: false"


def request_only_reason(kind: JobKind, role: Role, maintenance: MaintenancePolicy) -> str | None:
    """Return why such a job runs only on request; None if it may run without one.

    Changes to files that git tracks are reviewed line by line, and concern everyone who shares the repository.
    """
    if maintenance.maintain_tracked or kind not in (JobKind.PRUNE, JobKind.COMPRESS):
        return None
    file = role.memory if kind is JobKind.PRUNE else role.knowledge
    if not may_track(role.store.root):
        return None
    return (
        f"git tracks {file.name}, so this runs only on request (echod {kind.value}), "
        "or if the project's settings contain maintain_tracked: true"
    )

"""What may be done to a project's memory beyond consolidation, and by which numbers."""

from __future__ import annotations

from dataclasses import dataclass

from echod.memory.policy_model import PolicySettings
from echod.state.job import JobKind
from echod.store.layout import Role
from echod.workflows.markers.git import may_track


@dataclass(frozen=True, slots=True)
class MaintenancePolicy:
    """What holds for prune, promote and compress in a project.

    Attributes:
        policy: every number.
        prune: entries may leave memory files.
        compress: knowledge files may be compressed.
        maintain_tracked: both may also be done unasked where git tracks the files.
    """

    policy: PolicySettings
    prune: bool
    compress: bool
    maintain_tracked: bool

    def disabled_reason(self, kind: JobKind) -> str | None:
        """Why the project does not want such a job, even if a person asks for it; None if it may be done."""
        enabled = {JobKind.PRUNE: self.prune, JobKind.COMPRESS: self.compress}.get(kind, True)
        return None if enabled else f"the project's own settings say {kind.value}: false"


def request_only_reason(kind: JobKind, role: Role, maintenance: MaintenancePolicy) -> str | None:
    """Why such a job is done only when a person asks for it; None if it may be done unasked.

    What git tracks is looked at by people line by line, and belongs to all who share the repository.
    """
    if maintenance.maintain_tracked or kind not in (JobKind.PRUNE, JobKind.COMPRESS):
        return None
    file = role.memory if kind is JobKind.PRUNE else role.knowledge
    if not may_track(role.store.root):
        return None
    return (
        f"git tracks {file.name}, so this is only done on request (echod {kind.value}), "
        "or if the project's settings say maintain_tracked: true"
    )

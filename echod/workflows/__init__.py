"""Detect whether a workflow is running in a project: markers on disk in, a verdict with reasons out.

`collect` reads the disk, `gate` decides (docs/workflows.md). Nothing here writes anything, and nothing here depends on
jobs. Read `model` first, then `gate`, `collect`, and `markers` for each kind of marker.
`collect` also finds the reports that workflows left behind; for those, other packages import it by path.
"""

from echod.workflows.collect import SystemProcessTable, collect_observations, marker_directories
from echod.workflows.gate import WorkflowRun, WorkflowRunState, find_workflow_runs, gate, quiet_streak
from echod.workflows.markers.activity import may_track
from echod.workflows.model import (
    DeclaredWorkflow,
    GateLimits,
    GateObservations,
    GateState,
    MarkerKind,
    ProcessState,
    ProcessStatus,
    ProcessTable,
    Verdict,
    VerdictReason,
)

__all__ = [
    "DeclaredWorkflow", "GateLimits", "GateObservations", "GateState", "MarkerKind", "ProcessState",
    "ProcessStatus", "ProcessTable", "SystemProcessTable", "Verdict", "VerdictReason", "WorkflowRun",
    "WorkflowRunState", "collect_observations", "find_workflow_runs", "gate", "marker_directories", "may_track",
    "quiet_streak",
]  # fmt: skip

"""Is a workflow running in this project? Markers on disk -> a verdict with reasons (docs/workflows.md).

`observe` looks, `gate` judges. Nothing here writes anything, and nothing here knows of jobs.
"""

from echod.workflows.collect import collect_observations, marker_directories
from echod.workflows.gate import WorkflowRun, WorkflowRunState, find_workflow_runs, gate
from echod.workflows.model import (
    DeclaredWorkflow,
    GateLimits,
    GateObservations,
    GateState,
    MarkerKind,
    ProcessState,
    ProcessStatus,
    ProcessTable,
    SystemProcessTable,
    Verdict,
    VerdictReason,
    quiet_streak,
)

__all__ = [
    "DeclaredWorkflow",
    "GateLimits",
    "GateObservations",
    "GateState",
    "MarkerKind",
    "ProcessState",
    "ProcessStatus",
    "ProcessTable",
    "SystemProcessTable",
    "Verdict",
    "VerdictReason",
    "WorkflowRun",
    "WorkflowRunState",
    "collect_observations",
    "find_workflow_runs",
    "gate",
    "marker_directories",
    "quiet_streak",
]

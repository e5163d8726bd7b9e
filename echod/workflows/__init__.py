"""Is a workflow running in this project? Markers on disk -> a verdict with reasons (docs/workflows.md).

`observe` looks, `gate` judges. Nothing here writes anything, and nothing here knows of jobs.
"""

from echod.workflows.collect import marker_directories, observe
from echod.workflows.gate import SeenState, SeenWorkflow, active_workflows, gate
from echod.workflows.model import (
    DeclaredWorkflow,
    GateLimits,
    GateState,
    Kind,
    Life,
    Observations,
    Process,
    Processes,
    Reason,
    SystemProcesses,
    Verdict,
    quiet_streak,
)

__all__ = [
    "DeclaredWorkflow",
    "GateLimits",
    "GateState",
    "Kind",
    "Life",
    "Observations",
    "Process",
    "Processes",
    "Reason",
    "SeenState",
    "SeenWorkflow",
    "SystemProcesses",
    "Verdict",
    "active_workflows",
    "gate",
    "marker_directories",
    "observe",
    "quiet_streak",
]

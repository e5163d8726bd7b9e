"""Is a workflow running in this project? Markers on disk -> a verdict with reasons (docs/workflows.md).

`observe` looks, `gate` judges. Nothing here writes anything, and nothing here knows of jobs.
"""

from echod.workflows.collect import observe
from echod.workflows.gate import gate
from echod.workflows.hints import marker_directories
from echod.workflows.limits import GateLimits
from echod.workflows.model import DeclaredWorkflow, Observations
from echod.workflows.processes import Life, Process, Processes, SystemProcesses
from echod.workflows.seen import SeenState, SeenWorkflow, active_workflows
from echod.workflows.verdict import GateState, Kind, Reason, Verdict, quiet_streak

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

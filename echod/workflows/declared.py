"""Workflows that someone announced (`echod workflow begin`): where they are kept is not known here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from echod.workflows import fields
from echod.workflows.model import NOBODY, START_SLACK_SECONDS, Claim, DeclaredWorkflow, Marker, Owner
from echod.workflows.processes import Life, Process
from echod.workflows.verdict import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from echod.workflows.processes import Processes


def read(declared: Sequence[DeclaredWorkflow], processes: Processes) -> tuple[Marker, ...]:
    """The announced workflows as markers: each holds until its time is over or its process is gone."""
    return tuple(_marker(workflow, processes) for workflow in declared)


def _marker(workflow: DeclaredWorkflow, processes: Processes) -> Marker:
    name = fields.shown(workflow.name)
    return Marker(
        kind=Kind.DECLARED,
        path=name,
        name=name,
        says=f'workflow "{name}" was announced with echod workflow begin',
        claim=Claim.RUNNING,
        written=workflow.began,
        touched=workflow.began,
        owner=_owner(workflow, processes),
        started=workflow.began,
        deadline=workflow.until,
        workflow="announced",
        key=f"declared:{workflow.name}:{workflow.began:.0f}",
    )


def _owner(workflow: DeclaredWorkflow, processes: Processes) -> Owner:
    if workflow.pid is None:
        return NOBODY
    process = processes.look(workflow.pid)
    then, now = workflow.pid_started, process.started
    if then is not None and now is not None and abs(then - now) > START_SLACK_SECONDS:
        return Owner(workflow.pid, Process(Life.GONE, now))
    return Owner(workflow.pid, process)

"""What a person asked for is a job of its own: it has a number, a row in `echod jobs`, and an undo."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from echod.app.context import process_is_alive
from echod.app.services import Services
from echod.cli.context import CommandContext
from echod.cli.output import wrap
from echod.cli.targets import WriteNotAllowedError, build_manual_gate, workflow_running_error
from echod.errors import EchodError
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDeferred,
    JobDone,
    JobFailed,
    JobOutcome,
    JobResources,
)
from echod.runtime.locks import this_process, worker_lock
from echod.state.job import Job, JobKind, Need
from echod.store.changes import CommitGate, no_gate
from echod.store.errors import BusyError
from echod.store.layout import Role, global_root

ResultT = TypeVar("ResultT")

_LOCK_TIMEOUT_SECONDS = 30.0
_BUSY_RETRIES, _BUSY_RETRY_SECONDS = 20, 0.5
"""Other programs hold the lock of the global store for moments, so a command waits instead of failing."""


class JobRefusedError(EchodError):
    """A file was left as it is; the sentence says why."""


class ManualJob(NamedTuple):
    """What is to be done to a role, and why, in a sentence for `echod jobs`."""

    kind: JobKind
    role: Role
    reason: str


class ManualJobResult(NamedTuple):
    """What was done, in a line, as which job, and a sentence for each file that was skipped."""

    job: Job
    summary: str
    skipped: tuple[str, ...] = ()

    @property
    def undo_hint(self) -> str:
        """How a person takes it back."""
        return f"To take it back: echod undo {self.job.id}"

    def describe(self, subject: str) -> str:
        """What was done to `subject`, and the way back, fit for the screen."""
        return wrap(f"{subject}: {self.summary}. {self.undo_hint}", hang="  ")


def run_manual_job(
    context: CommandContext,
    services: Services,
    manual_job: ManualJob,
    action: Callable[[JobContext], JobOutcome],
    *,
    prepare: Callable[[], None] = lambda: None,
    force: bool = False,
) -> ManualJobResult:
    """Run a job on one role at once. The role is locked for it.

    Args:
        context: the command.
        services: what works on memories.
        manual_job: the job.
        action: does the work.
        prepare: called before the role is locked, for example to create it.
        force: run although a workflow is active.

    Raises:
        WriteNotAllowedError: a workflow is active; nothing was changed.
        EchodError: an error of `action`, or its outcome; the job is recorded as given up.
    """
    is_global = global_root(manual_job.role.store) is not None

    def attempt(resources: JobResources) -> JobOutcome:
        with resources.open_role(manual_job.role) as job_context:
            return action(job_context)

    def work(resources: JobResources) -> JobOutcome:
        prepare()
        return retry_while_busy(lambda: attempt(resources)) if is_global else attempt(resources)

    # No workflow holds the global store, which belongs to no project; but other programs write there.
    return run_multi_role_job(context, services, manual_job, work, force=force or is_global)


def run_multi_role_job(
    context: CommandContext,
    services: Services,
    manual_job: ManualJob,
    work: Callable[[JobResources], JobOutcome],
    *,
    force: bool = False,
) -> ManualJobResult:
    """Run a job at once that locks no role, several roles, or one role several times.

    Args:
        context: the command.
        services: what works on memories.
        manual_job: the job.
        work: does the work, and locks the roles that it needs.
        force: run although a workflow is active.

    Raises:
        WriteNotAllowedError: a workflow is active; nothing was changed.
        EchodError: an error of `work`, or its outcome; the job is recorded as given up.
    """
    project = manual_job.role.store.project
    check_gate = no_gate if force else build_manual_gate(context, services.read_context.project_gate, project)
    gate_reasons: list[str] = []

    def gate() -> str | None:
        reason = check_gate()
        gate_reasons.extend([] if reason is None else [reason])
        return reason

    now = context.now()
    need = Need(
        manual_job.kind, manual_job.role.store.key, manual_job.role.name, f"requested at {now}", manual_job.reason, now
    )
    with worker_lock(context.paths.worker_lock, this_process(), _LOCK_TIMEOUT_SECONDS):
        services.queue.recover(process_is_alive, now)
        job = services.queue.start_manual(need, now)
        try:
            if (reason := gate()) is not None:
                raise WriteNotAllowedError(reason)  # noqa: TRY301  given up like any other error of a job
            done = _done_or_raise(work(_job_resources(context, services, job, gate)))
        except EchodError as error:
            if gate_reasons:
                services.queue.finish(job, f"nothing was done: {gate_reasons[-1]}", context.now())
                raise workflow_running_error(project, gate_reasons[-1]) from error
            services.queue.give_up(job, str(error), context.now())
            raise
        except BaseException as error:
            services.queue.give_up(job, f"An unexpected {type(error).__name__} ended it.", context.now())
            raise
        services.queue.finish(job, done.summary, context.now())
    return ManualJobResult(job, done.summary, done.skipped)


def _job_resources(context: CommandContext, services: Services, job: Job, gate: CommitGate) -> JobResources:
    return JobResources(
        job_id=job.id,
        engine=services.engine,
        entries=services.entries,
        policy=services.read_context.maintenance_policy(Path(job.store)).policy,
        gate=gate,
        clock=context.now,
    )


def summary_or_raise(outcome: JobOutcome) -> str:
    """Return the summary of a job that is done.

    Raises:
        JobRefusedError: it is not done; the sentence is the reason.
    """
    return _done_or_raise(outcome).summary


def _done_or_raise(outcome: JobOutcome) -> JobDone:
    match outcome:
        case JobDone():
            return outcome
        case JobFailed(text) | JobBlocked(text):
            raise JobRefusedError(_refusal_message(text))
        case JobDeferred():
            raise JobRefusedError(_refusal_message(outcome.reason))


def _refusal_message(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}. Nothing was changed."


def retry_while_busy(action: Callable[[], ResultT]) -> ResultT:
    """Retry for a few seconds while other programs write to the global store.

    Raises:
        BusyError: they did not finish in time.
    """
    for _ in range(_BUSY_RETRIES):
        try:
            return action()
        except BusyError:
            time.sleep(_BUSY_RETRY_SECONDS)
    return action()

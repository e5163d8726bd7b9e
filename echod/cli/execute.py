"""What a person asked for is a job of its own: it has a number, a row in `echod jobs`, and an undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from echod.app.context import process_is_alive
from echod.app.services import Services
from echod.cli.context import CommandContext
from echod.cli.output import wrap
from echod.cli.targets import WriteNotAllowedError, build_manual_gate, workflow_running_error
from echod.daemon.main import this_process
from echod.errors import EchodError
from echod.jobs.base import JobBlocked, JobDeferred, JobDone, JobFailed, JobOutcome
from echod.runtime.locks import worker_lock
from echod.state.job import Job, JobKind, Need
from echod.store.changes import CommitGate, no_gate
from echod.store.layout import Role

_LOCK_TIMEOUT_SECONDS = 30.0


class JobRefusedError(EchodError):
    """A file was left as it is; the sentence says why."""


class ManualJob(NamedTuple):
    """What is to be done to a role, and why, in a sentence for `echod jobs`."""

    kind: JobKind
    role: Role
    reason: str


class ManualJobResult(NamedTuple):
    """What was done, in a line, and as which job."""

    job: Job
    summary: str

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
    work: Callable[[Job, CommitGate], str],
    *,
    force: bool = False,
) -> ManualJobResult:
    """Do it at once, while the person waits, as the one worker.

    Args:
        context: where the command was called.
        services: what works on memories.
        manual_job: what is to be done.
        work: does it under the job's number, asks the gate before it writes, and says in a line what was done.
        force: do it although a workflow is at work.

    Raises:
        WriteNotAllowedError: a workflow is at work; nothing was changed.
        EchodError: whatever `work` raises; the job is written down as given up.
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
            summary = _run_unless_gated(gate, work, job)
        except EchodError as error:
            if gate_reasons:
                services.queue.finish(job, f"nothing was done: {gate_reasons[-1]}", context.now())
                raise workflow_running_error(project, gate_reasons[-1]) from error
            services.queue.give_up(job, str(error), context.now())
            raise
        except BaseException as error:
            services.queue.give_up(job, f"An unexpected {type(error).__name__} ended it.", context.now())
            raise
        services.queue.finish(job, summary, context.now())
    return ManualJobResult(job, summary)


def _run_unless_gated(gate: CommitGate, work: Callable[[Job, CommitGate], str], job: Job) -> str:
    if (reason := gate()) is not None:
        raise WriteNotAllowedError(reason)
    return work(job, gate)


def summary_or_raise(outcome: JobOutcome) -> str:
    """What a job's outcome says was done.

    Raises:
        JobRefusedError: it was not done, the sentence says why.
    """
    match outcome:
        case JobDone(summary):
            return summary
        case JobFailed(text) | JobBlocked(text):
            raise JobRefusedError(_refusal_message(text))
        case JobDeferred():
            raise JobRefusedError(_refusal_message(outcome.reason))


def _refusal_message(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}. Nothing was changed."

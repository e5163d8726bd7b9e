"""How a typed command changes memory: show the plan, check that writing is allowed, confirm, run jobs, report.

`make_change` is this protocol. A command fills in a `Change`, and the steps of it run manual jobs with a `JobRunner`.
A manual job has a number, a row in `echod jobs` and an undo, like any other job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar

import click

from echod.app.context import process_is_alive
from echod.cli.context import CommandContext
from echod.cli.output import print_error, short_path, wrap
from echod.errors import EchodError, UsageError
from echod.jobs.base import JobBlocked, JobContext, JobDeferred, JobDone, JobFailed, JobOutcome, JobResources
from echod.lazy import lazy_imports
from echod.memory.text import capitalize, pluralize
from echod.runtime.locks import WorkerBusyError, this_process, worker_lock
from echod.scheduler.needs import ProjectGate, describe_verdict
from echod.state.jobs import Job, JobKind, Need
from echod.store.changes import CommitGate, no_gate
from echod.store.errors import BusyError, RefusedError
from echod.store.layout import Role, Store, global_root
from echod.store.leftovers import Leftover, delete_leftover, find_leftovers, list_exposed_files
from echod.workflows.model import GateState

with lazy_imports(__name__):
    from echod.app import moved_projects

if TYPE_CHECKING:
    from echod.app.services import Services  # loads the worker, which a plan and a dry run do without


ResultT = TypeVar("ResultT")

MANUAL_REASON = "requested by the user"
"""The reason of a manual job, if there is nothing more to say."""

LOCK_TIMEOUT_SECONDS = 30.0
"""How long a command waits for a running job."""

_BUSY_RETRIES, _BUSY_RETRY_SECONDS = 20, 0.5
"""Other programs hold the lock of the global store for moments, so a command waits instead of failing."""


class WriteNotAllowedError(EchodError):
    """A workflow is running, or the settings forbid changes."""


class JobRefusedError(EchodError):
    """A file was left unchanged. The text is the reason."""


_REFUSALS = (WriteNotAllowedError, JobRefusedError, UsageError, BusyError, RefusedError)
"""Errors after which nothing was changed for the reason in the message. Any other error is a failure."""

_UNGATED_KINDS = frozenset({JobKind.REMEMBER})
"""Kinds that only add text for the user. They append as agents do, so a workflow does not hold them."""


def report_already_so(context: CommandContext, text: str) -> NoReturn:
    """Report that everything is as the user wants it, with exit code 0. Every command uses this for such a request."""
    context.print_info(wrap(f"{capitalize(text).rstrip('.')}. Nothing was changed.", hang="  "))
    raise click.exceptions.Exit(0)


class WriteOptions(NamedTuple):
    """The `--dry-run`, `--yes` and `--force` flags of a command that changes memory."""

    dry_run: bool = False
    yes: bool = True
    force: bool = False


class Confirmation(NamedTuple):
    """A question before a change. `answer` is the text to type where a `y` would be typed too quickly."""

    text: str
    answer: str | None = None


class Step(NamedTuple):
    """One part of a change, which does not depend on the others.

    Attributes:
        subject: what it changes, for the report of a failure.
        run: makes it, mostly by a job, and returns the report for the user. An empty report is not printed.
    """

    subject: str
    run: Callable[[JobRunner], str]


class Change(NamedTuple):
    """A change of memory that a typed command plans.

    Attributes:
        preview: the plan for the user.
        steps: the parts of the change, in order; empty if there is nothing to change.
        question: asked before the first step, unless `--yes` is given; None needs no confirmation.
        refusal: raised instead of making the change.
    """

    preview: str
    steps: Sequence[Step]
    question: Confirmation | None = None
    refusal: EchodError | None = None


def make_change(context: CommandContext, change: Change, write_options: WriteOptions) -> None:
    """Show a change, confirm it, make it and wake the daemon. A dry run only shows it.

    Every step is attempted, also after one that failed.

    Raises:
        WriteNotAllowedError: a workflow is running, or the settings forbid changes.
        UsageError: there is no terminal to ask at.
        click.exceptions.Exit: the user declined.
        EchodError: a step failed; the others are done, as far as they did not fail.
    """
    question = None if write_options.yes else change.question
    if change.preview and (write_options.dry_run or question is not None or not context.quiet):
        click.echo(change.preview)
    if write_options.dry_run or not change.steps:
        return
    require_write_mode(context)
    if change.refusal is not None:
        raise change.refusal
    if question is not None:
        confirm(context, question)
    with context.open_services() as services, context.progress_line() as progress:
        runner = JobRunner(context, services, write_options.force)
        failures: list[str] = []
        for number, step in enumerate(change.steps, start=1):
            progress.show(f"{number} of {len(change.steps)}")
            try:
                report = step.run(runner)
            except WorkerBusyError:  # every later step would wait as long
                raise
            except EchodError as error:
                if len(change.steps) == 1:
                    raise
                progress.clear()
                if str(error) not in failures:  # of a workflow that holds several roles, once is enough
                    print_error(f"{step.subject}: {error}")
                failures.append(str(error))
                continue
            progress.clear()
            if report:
                context.print_info(report)
    context.notify_daemon()
    if failures:
        raise JobRefusedError(
            f"{len(failures)} of {pluralize(len(change.steps), 'change')} failed, for the reasons above."
        )


def require_write_mode(context: CommandContext) -> None:
    """Check that the settings allow changes. Raises WriteNotAllowedError if they do not."""
    if context.settings.mode != "maintain":
        raise WriteNotAllowedError(
            'The settings contain mode = "report", so nothing was changed. --dry-run shows the plan.'
        )


def confirm(context: CommandContext, question: Confirmation) -> None:
    """Ask the user to confirm.

    Raises:
        UsageError: there is no terminal to ask at.
        click.exceptions.Exit: the user declined, or typed something else than the answer.
    """
    if not context.is_interactive:
        raise UsageError("There is no terminal to ask at, so nothing was changed. Confirm with --yes.")
    confirmed = (
        click.confirm(question.text)
        if question.answer is None
        else click.prompt(question.text).strip() == question.answer
    )
    if not confirmed:
        click.echo("Nothing was changed.")
        raise click.exceptions.Exit(1)


class ManualJob(NamedTuple):
    """The kind, the role and the reason of a job that a command runs at once. `echod jobs` shows all three."""

    kind: JobKind
    role: Role
    reason: str = MANUAL_REASON


class ManualJobResult(NamedTuple):
    """The result of a manual job: a summary, and a sentence for each file that was skipped.

    `changed` is false if no file was changed, so that there is nothing to undo.
    """

    job: Job
    summary: str
    changed: bool
    skipped: tuple[str, ...] = ()

    @property
    def undo_hint(self) -> str:
        """How to undo the job."""
        return f"To undo: echod undo {self.job.id}"

    def describe(self, subject: str) -> str:
        """Describe what was done to `subject`, with the undo if there is something to undo."""
        hint = f" {self.undo_hint}" if self.changed else ""
        return wrap(f"{subject}: {self.summary}.{hint}", hang="  ")


class JobRunner(NamedTuple):
    """Runs manual jobs for a command. With `force` they run even while a workflow is active.

    They wait for a running job for `lock_timeout` seconds.
    """

    context: CommandContext
    services: Services
    force: bool
    lock_timeout: float = LOCK_TIMEOUT_SECONDS

    def run(
        self,
        manual_job: ManualJob,
        action: Callable[[JobContext], JobOutcome],
        *,
        prepare: Callable[[], object] = lambda: None,
    ) -> ManualJobResult:
        """Run a job on one role at once. The role is locked for it.

        Args:
            manual_job: the job.
            action: does the work.
            prepare: called before the role is locked, for example to create it.

        Raises:
            WriteNotAllowedError: a workflow is active; nothing was changed.
            EchodError: an error of `action`, or its outcome; the job is recorded as refused, or given up after a
                failure.
        """
        is_global = global_root(manual_job.role.store) is not None

        def attempt(resources: JobResources) -> JobOutcome:
            with resources.open_role(manual_job.role) as job_context:
                return action(job_context)

        def work(resources: JobResources) -> JobOutcome:
            prepare()
            return _retry_while_busy(lambda: attempt(resources)) if is_global else attempt(resources)

        return self.run_multi_role(manual_job, work)

    def run_multi_role(self, manual_job: ManualJob, work: Callable[[JobResources], JobOutcome]) -> ManualJobResult:
        """Run a job at once that locks no role, several roles, or one role several times.

        Args:
            manual_job: the job.
            work: does the work, and locks the roles that it needs.

        Raises:
            WriteNotAllowedError: a workflow is active; nothing was changed.
            EchodError: an error of `work`, or its outcome; the job is recorded as refused, or given up after a failure.
        """
        context, queue = self.context, self.services.queue
        role, now = manual_job.role, context.now()
        if global_root(role.store) is None:
            adopt_moved(context, self.services, [role.store.project])
        gate = _RecordingGate(self._commit_gate(manual_job))
        need = Need(manual_job.kind, role.store.key, role.name, f"requested at {now}", manual_job.reason, now)
        with worker_lock(context.paths.worker_lock, this_process(), self.lock_timeout):
            queue.recover(process_is_alive, now)
            job = queue.start_manual(need, now)
            try:
                if (reason := gate()) is not None:
                    raise WriteNotAllowedError(reason)  # noqa: TRY301  given up like any other error of a job
                done = done_or_raise(work(self._resources(job, gate)))
            except EchodError as error:
                if gate.last_reason is not None:
                    queue.refuse(job, gate.last_reason, context.now())
                    raise workflow_running_error(role.store.project, gate.last_reason) from error
                end = queue.refuse if isinstance(error, _REFUSALS) else queue.give_up
                end(job, str(error), context.now())
                raise
            except BaseException as error:
                queue.give_up(job, f"An unexpected {type(error).__name__} ended it.", context.now())
                raise
            queue.finish(job, done.summary, context.now())
        return ManualJobResult(job, done.summary, done.changed, done.skipped)

    def _commit_gate(self, manual_job: ManualJob) -> CommitGate:
        role = manual_job.role
        # The global store belongs to no project, so no workflow blocks it.
        if self.force or manual_job.kind in _UNGATED_KINDS or global_root(role.store) is not None:
            return no_gate
        return build_manual_gate(self.context, self.services.read_context.project_gate, role.store.project)

    def _resources(self, job: Job, gate: CommitGate) -> JobResources:
        return JobResources(
            job_id=job.id,
            engine=self.services.engine,
            entries=self.services.entries,
            policy=self.services.read_context.maintenance_policy(Path(job.store)).policy,
            gate=gate,
            clock=self.context.now,
        )


def adopt_if_moved(context: CommandContext, project: Path) -> None:
    """Carry along what is recorded about a project that was moved here. Nothing is recorded before the first work."""
    if context.paths.database.exists() or context.paths.journal.exists():
        with context.open_services() as services:
            adopt_moved(context, services, [project])


def adopt_moved(context: CommandContext, services: Services, projects: Iterable[Path]) -> None:
    """Carry along what is recorded about projects that were moved to where they are now, and report it."""
    for moved in services.recorded_projects.adopt_moved(projects, lock_seconds=LOCK_TIMEOUT_SECONDS):
        context.print_info(moved_text(moved.old, moved.new))


def moved_text(old: Path, new: Path) -> str:
    """Return the report about a project that was moved."""
    return wrap(
        f"{short_path(str(new))} was {short_path(str(old))} before. Its history, undo, ages and pins are kept.",
        hang="  ",
    )


class _RecordingGate:
    """A gate that remembers why it last refused a commit."""

    def __init__(self, gate: CommitGate) -> None:
        self._gate = gate
        self.last_reason: str | None = None

    def __call__(self) -> str | None:
        reason = self._gate()
        self.last_reason = reason or self.last_reason
        return reason


def done_or_raise(outcome: JobOutcome) -> JobDone:
    """Return the outcome of a job that is done.

    Raises:
        JobRefusedError: it is not done; the text is the reason.
    """
    match outcome:
        case JobDone():
            return outcome
        case JobFailed(reason) | JobBlocked(reason) | JobDeferred(reason):
            raise refusal(reason)


def refusal(reason: str) -> JobRefusedError:
    """Return an error with the reason why nothing was changed."""
    return JobRefusedError(f"{capitalize(reason).rstrip('.')}. Nothing was changed.")


def build_manual_gate(context: CommandContext, project_gate: ProjectGate, project: Path) -> CommitGate:
    """Build the gate of a typed command. A running workflow blocks it, a workflow that just ended does not."""

    def gate() -> str | None:
        verdict = project_gate.check(project, context.list_stores(project), context.now())
        return describe_verdict(verdict) if verdict.state is GateState.ACTIVE else None

    return gate


def workflow_running_error(project: Path, reason: str) -> WriteNotAllowedError:
    """Return the error for a project in which a workflow is running."""
    return WriteNotAllowedError(
        f"A workflow is running in {short_path(str(project))}, so nothing was changed: {reason.rstrip('.')}. "
        "Try again when it has ended (see `echod gate`), or use --force."
    )


def _retry_while_busy(action: Callable[[], ResultT]) -> ResultT:
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


def settle_and_report(context: CommandContext, stores: Sequence[Store]) -> None:
    """Empty the private directories of these stores as far as possible, and name the files that remain in them."""
    if not context.paths.journal.is_dir():
        return
    try:
        remaining = moved_projects.settle_stores(context.paths, stores, context.now)
    except EchodError as error:
        click.echo(wrap(f"Replaced versions of files remain in .echod: {error}", indent="! "), err=True)
        return
    for path in remaining:
        text = "is a replaced version that another program has open, or that no change knows."
        click.echo(wrap(f"{short_path(str(path))} {text}", indent="! "), err=True)
    if remaining or any(True for store in stores for _ in list_exposed_files(store)):
        click.echo(wrap("To delete such files once no program uses them: echod doctor --fix", indent="> "), err=True)


def delete_leftovers(context: CommandContext, stores: Iterable[Store], *, yes: bool) -> None:
    """List the leftovers of these stores, ask, and delete those whose text is known elsewhere.

    Raises:
        UsageError: there is no terminal to ask at.
        StoreError: one cannot be deleted.
    """
    leftovers = [leftover for store in stores for leftover in find_leftovers(store, context.paths.journal)]
    known = [leftover for leftover in leftovers if leftover.known]
    _print_leftovers(leftovers)
    if not known:
        return
    if not yes:
        confirm(context, Confirmation(f"Delete {pluralize(len(known), 'file')}?"))
    for leftover in known:
        delete_leftover(leftover)
    context.print_info(f"{pluralize(len(known), 'file')} deleted.")


def _print_leftovers(leftovers: Iterable[Leftover]) -> None:
    for leftover in leftovers:
        reason = "" if leftover.known else "  (kept: its text is nowhere else)"
        click.echo(f"{short_path(str(leftover.path))}{reason}")

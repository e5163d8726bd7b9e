"""`echod run`: the service in the foreground, for a terminal, systemd and launchd.

With `--once` it does everything that is due and exits. If a service runs already, that does the work, and the command
shows the results.
"""

from __future__ import annotations

import faulthandler
import itertools
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, NoReturn

import click

from echod import log_setup
from echod.app.services import Services
from echod.cli.context import CommandContext, ProgressLine, check_liveness
from echod.cli.execute import LOCK_TIMEOUT_SECONDS, adopt_moved
from echod.cli.output import (
    WIDTH,
    fit_path,
    format_duration,
    format_timestamp,
    problem_line,
    short_path,
    shorten_paths,
    wrap,
)
from echod.errors import ConfigurationError, EchodError, ExitCode, StateError, UsageError, isolated
from echod.inspection import RestoredFindings, find_restored_findings
from echod.jobs.base import JobBlocked, JobDeferred, JobDone, JobFailed
from echod.lazy import lazy_imports
from echod.log import get_logger
from echod.memory.text import pluralize
from echod.projects.discovery import DiscoveredStores, discover_stores
from echod.runtime.locks import AlreadyRunningError, this_process, worker_lock
from echod.scheduler.reconcile import reconcile
from echod.scheduler.worker import FinishedJob
from echod.service.paths import LAUNCHD_LABEL
from echod.state.jobs import MANUAL_KINDS, PENDING_STATES, Job, JobKind, JobState
from echod.store.layout import Store, find_roles, find_skipped

with lazy_imports(__name__):
    from echod.daemon import main as daemon_main

_POLL_SECONDS = 0.5
_HANDOVER_POLL_SECONDS = 0.1
_HANDOVER_TIMEOUT_SECONDS = 30.0
_MAX_LISTED_JOBS = 10_000


class HandoverTimeoutError(EchodError):
    """The service is running but did not take the work."""

    exit_code = ExitCode.NOT_ANSWERING


def run(context: CommandContext, *, paths: tuple[Path, ...], once: bool, wait: float, now: bool, in_all: bool) -> None:
    """Run `echod run`."""
    if now and not (once and paths):
        raise click.UsageError("--now requires --once and the path of a project. Nothing was done.")
    if in_all and (paths or not once):
        raise click.UsageError("--all requires --once, and no path.")
    if once:
        run_once(context, paths, wait, release=_release_first_prunes if now else keep_first_prunes)
    elif paths or wait:
        raise click.UsageError(
            "paths and --wait require --once; the service maintains the projects that `echod add` registered."
        )
    else:
        _run_service(context)


def _run_service(context: CommandContext) -> None:
    """Run until a signal arrives. If a service is running already, that is not an error."""
    context = replace(context, long_lived=True)
    # If a supervisor times out and kills the process with SIGABRT, the log shows where each thread was.
    faulthandler.enable()
    try:
        settings = context.settings
    except ConfigurationError as error:
        if not _is_launchd_agent(context.environ):
            raise
        # launchd restarts after every failure. It has no exit code for a final one.
        _configure_logging(context, "error")
        get_logger(__name__).error("configuration_unusable", error=str(error))
        return
    _configure_logging(context, settings.log_level)
    try:
        daemon_main.run(context.paths, context.load_settings, context.environ)
    except AlreadyRunningError as already:
        click.echo(f"{already} Nothing to do.")
    except StateError as error:
        get_logger(__name__).error("stopped_by_error", error=str(error), cause=repr(error.__cause__))
        raise


def _is_launchd_agent(environ: Mapping[str, str]) -> bool:
    """Return whether launchd started this process. It sets XPC_SERVICE_NAME to the agent's label."""
    return environ.get("XPC_SERVICE_NAME") == LAUNCHD_LABEL


def _configure_logging(context: CommandContext, level: str) -> None:
    # launchd does not rotate the output that it collects, so the log is a file of our own there.
    file = context.paths.log_file if _is_launchd_agent(context.environ) else None
    log_setup.configure(level, sys.stderr, context.environ, file=file)


class ReleasedPrunes(NamedTuple):
    """Roles of one store whose first prune was released for one run."""

    store: str
    roles: tuple[str, ...]


def keep_first_prunes(_: Services, __: Collection[Store]) -> tuple[ReleasedPrunes, ...]:
    """Release nothing: first prunes wait as they do for the service."""
    return ()


def run_once(
    context: CommandContext,
    paths: Sequence[Path],
    wait: float,
    release: Callable[[Services, Collection[Store]], tuple[ReleasedPrunes, ...]] = keep_first_prunes,
) -> NoReturn:
    """Print each finished job and the jobs that must wait. Exit with 1 only if a job failed.

    `release` selects the held first prunes that are done.

    Raises:
        UsageError: there is no project.
        HandoverTimeoutError: the service is running but did not take the work.
    """
    projects = [context.find_project(path) for path in paths]
    context.paths.create_directories()
    daemon_answers = check_liveness(context).is_answering
    with context.open_services() as services:
        discovered = _discover(services, projects)
        adopt_moved(context, services, discovered.projects)
        discovered = _discover(services, projects)
        for line in _unused_lines(discovered):
            click.echo(line)
        stores = discovered.stores
        if not stores:
            raise _nothing_to_run_error(discovered)
        if services.settings.auto_memory.copies and not daemon_answers:
            services.copy_auto_memory()
        released = release(services, stores)
        with context.progress_line() as progress:
            once = _RunOnce(context, services, stores, wait, progress)
            try:
                failed = once.hand_over() if daemon_answers else once.work()
            finally:
                once.hold_again(released)
        once.print_remaining()
    raise click.exceptions.Exit(ExitCode.FAILED if failed else ExitCode.OK)


def _discover(services: Services, projects: Sequence[Path]) -> DiscoveredStores:
    read_context = services.read_context
    return discover_stores(projects, read_context.locator) if projects else read_context.discover_stores()


def _unused_lines(discovered: DiscoveredStores) -> Iterator[str]:
    """Describe what is passed over: missing projects, links and names that are not those of memory."""
    for project in discovered.missing:
        yield problem_line(
            f"{short_path(str(project))} is missing (deleted, moved or not mounted). It stays registered."
        )
    for item in discovered.linked:
        yield problem_line(item.describe())
    for store in discovered.stores:
        with isolated(store.key):  # reconciling reports a store that cannot be listed
            yield from [problem_line(item.describe()) for item in find_skipped(store)]


def _nothing_to_run_error(discovered: DiscoveredStores) -> UsageError:
    if discovered.missing:
        return UsageError(
            "No registered project is there now, so nothing was done. Run this again when it is. "
            "If it was moved: echod move OLD NEW. If it was deleted: echod remove PATH"
        )
    if discovered.linked or discovered.without_store:
        return UsageError("No registered project has a memory directory that echod uses, so nothing was done.")
    return UsageError("No project is registered. Name one, or add it with: echod add PATH")


def _release_first_prunes(services: Services, stores: Collection[Store]) -> tuple[ReleasedPrunes, ...]:
    """Release held first prunes, also those that the service holds, since the user requested the work now."""
    if services.settings.mode != "maintain":
        return ()
    released = []
    for store in stores:
        with isolated(store.key):  # reconciling reports a store that cannot be listed
            roles = services.entries.release_first_prune(store.key, [role.name for role in find_roles(store)])
            released.append(ReleasedPrunes(store.key, roles))
    return tuple(released)


@dataclass(frozen=True)
class _RunOnce:
    """One `echod run --once` on some stores, by this process or by the running service."""

    context: CommandContext
    services: Services
    stores: Collection[Store]
    wait_seconds: float
    progress: ProgressLine
    announced: list[bool] = field(default_factory=list)

    def work(self) -> bool:
        """Recover, then work until nothing is due. Return whether a job failed."""
        global_stores = self.services.read_context.pack_locations.stores
        with self._hold_worker_lock():
            self.services.recover(self.stores)
            for store in (*self.stores, *global_stores):
                with isolated(store.key):
                    self.services.worker.merge_late_writes(store)
        return self._work_until_idle()

    def _work_until_idle(self) -> bool:
        deadline = time.monotonic() + self.wait_seconds
        failed = False
        reported: set[str] = set()
        self._retry_backed_off_jobs()
        while True:
            self.services.inbox.refresh(self.context.now(), extra_projects={store.project for store in self.stores})
            for problem in self._reconcile():
                if problem not in reported:
                    self._print(problem, is_error=True)
                reported.add(problem)
            changed = False
            for finished in self._run_due_jobs():
                is_failure = isinstance(finished.outcome, JobFailed | JobBlocked)
                self._print(_finished_job_text(finished), is_error=is_failure)
                failed |= is_failure
                changed |= isinstance(finished.outcome, JobDone) and finished.outcome.changed
            if changed:
                continue  # a changed store may need more
            waiting = len(self._pending_jobs())
            if time.monotonic() >= deadline or not waiting:
                return failed
            remaining_seconds = max(0.0, deadline - time.monotonic())
            self.announce_wait(waiting)
            self.progress.clear()
            self.progress.show(f"waiting for {pluralize(waiting, 'deferred job')}, {remaining_seconds:.0f} s more")
            time.sleep(min(_POLL_SECONDS, remaining_seconds))

    def _reconcile(self) -> list[str]:
        """Queue what the stores need, and wake deferred jobs. Return the problems, as lines for the user."""
        services, now = self.services, self.context.now()
        problems: list[str] = []
        for number, store in enumerate(self.stores, start=1):
            self.progress.show(f"inspecting project {number} of {len(self.stores)}")
            with isolated(store.key, problems.append):
                need_settings = services.read_context.need_settings(store.project)
                found = reconcile(
                    store, need_settings, services.queue, now, services.inbox, services.maintenance_finder,
                    services.read_context.session_need_finder_for([store.project]),
                )  # fmt: skip
                problems += [problem.text for problem in found]
                # A job that an earlier run deferred is tried again.
                services.queue.wake_deferred(store.key, now)
        return [problem_line(problem) for problem in problems]

    def _run_due_jobs(self) -> Iterator[FinishedJob]:
        """Run due jobs until a deferred one is due a second time, since it may be due again at once."""
        deferred_ids: set[int] = set()
        total = len(self._pending_jobs())
        for number in itertools.count(1):
            self.progress.show(f"job {number} of {max(number, total)}")
            with self._hold_worker_lock():
                finished = self.services.worker.run_next(self._store_keys())
            if finished is None or finished.job.id in deferred_ids:
                return
            if isinstance(finished.outcome, JobDeferred):
                deferred_ids.add(finished.job.id)
            else:
                yield finished

    def _hold_worker_lock(self) -> AbstractContextManager[object]:
        return worker_lock(self.context.paths.worker_lock, this_process(), LOCK_TIMEOUT_SECONDS)

    def hand_over(self) -> bool:
        """Queue the work, wake the service and print its results. Return whether a job failed.

        Raises:
            HandoverTimeoutError: the service did not take the work.
        """
        self.services.inbox.refresh(self.context.now())
        self._reconcile()  # the service reports its own problems
        self._retry_backed_off_jobs()
        watched_ids = {job.id for job in self._pending_jobs()}
        self.context.notify_daemon()
        self.context.print_info("The running service does the work.")
        deadline = time.monotonic() + self.wait_seconds
        handover_deadline = time.monotonic() + _HANDOVER_TIMEOUT_SECONDS
        failed = False
        while watched_ids:
            for job_id in sorted(watched_ids):
                job = self.services.queue_view.get(job_id)
                if job is None or job.merged_into is not None:
                    watched_ids.discard(job_id)
                    watched_ids |= set() if job is None or job.merged_into is None else {job.merged_into}
                elif job.state in (JobState.DONE, JobState.DEAD):
                    is_failure = job.state is JobState.DEAD
                    self._print(_job_text("failed" if is_failure else "done", job, job.result), is_error=is_failure)
                    failed |= is_failure
                    watched_ids.discard(job_id)
                elif self._is_waiting(job) and time.monotonic() >= deadline:
                    failed |= job.attempts > 0
                    watched_ids.discard(job_id)
            if watched_ids and all(self._waits(job_id) for job_id in watched_ids):
                self.announce_wait(len(watched_ids))
            if watched_ids and time.monotonic() > max(handover_deadline, deadline):
                raise HandoverTimeoutError(
                    f"The service did not take the work within {_HANDOVER_TIMEOUT_SECONDS:.0f} s. "
                    "`echod status` shows its state."
                )
            self.progress.show(f"the service has {pluralize(len(watched_ids), 'job')} left")
            time.sleep(_HANDOVER_POLL_SECONDS)
        return failed

    def announce_wait(self, waiting: int) -> None:
        """Print once that the command waits, and for what, because that may take long."""
        if self.announced:
            return
        self.announced.append(True)
        self.progress.clear()
        text = f"Waiting up to {format_duration(self.wait_seconds)} for {pluralize(waiting, 'deferred job')}"
        reasons = dict.fromkeys((job.result or job.reason).rstrip(".") for job in self._pending_jobs())
        self.context.print_info(wrap(f"{text}: {'; '.join(reasons)}." if reasons else f"{text}.", hang="  "))

    def _waits(self, job_id: int) -> bool:
        job = self.services.queue_view.get(job_id)
        return job is not None and self._is_waiting(job)

    def hold_again(self, released: Iterable[ReleasedPrunes]) -> None:
        """Hold the released first prunes again for which nothing was to do. A deferred one stays released."""
        pending = {(job.store, job.role) for job in self._pending_jobs() if job.kind is JobKind.PRUNE}
        for store, roles in released:
            unused = [role for role in roles if (store, role) not in pending]
            self.services.entries.withdraw_release(store, unused)

    def _is_waiting(self, job: Job) -> bool:
        """Return whether a pending job is not due."""
        return job.state is JobState.DEFERRED or (job.state is JobState.QUEUED and job.due > self.context.now())

    def _retry_backed_off_jobs(self) -> None:
        """Make failed jobs due that wait for their next attempt, since the user requested the work now."""
        now = self.context.now()
        for job in self._pending_jobs():
            if job.state is JobState.QUEUED and job.attempts and job.due > now:
                self.services.queue.retry(job.id, now)

    def _pending_jobs(self) -> tuple[Job, ...]:
        keys = self._store_keys()
        jobs = self.services.queue_view.list_jobs(PENDING_STATES, limit=_MAX_LISTED_JOBS)
        return tuple(job for job in jobs if job.store in keys)

    def _store_keys(self) -> set[str]:
        return {store.key for store in self.stores}

    def print_remaining(self) -> None:
        """Print the jobs that wait, the jobs that were given up, and the findings that only the user can release."""
        services, now, keys = self.services, self.context.now(), self._store_keys()
        pending = self._pending_jobs()
        for job in reversed(pending):
            when = f" Again at {format_timestamp(job.due, now)}." if job.due > now else ""
            reason = "it just failed." if job.attempts else f"{(job.result or job.reason).rstrip('.')}."
            self.context.print_info(_job_text("waits", job, f"{reason}{when}"))
        dead_jobs = services.queue_view.list_jobs({JobState.DEAD}, limit=_MAX_LISTED_JOBS)
        failed_jobs = [job for job in dead_jobs if job.store in keys and job.kind not in MANUAL_KINDS]
        for job in reversed(failed_jobs):
            click.echo(_job_text("gave up", job, f"{job.result} When that is fixed: echod jobs retry {job.id}"))
        restored_findings: list[RestoredFindings] = []
        for store in self.stores:
            with isolated(store.key):
                notices = services.engine.collect_notices(store)
                restored_findings += find_restored_findings(services.engine, notices)
        for restored in restored_findings:
            store_path = fit_path(restored.role.store.key, WIDTH - 8)
            self.context.print_info(f"for you {restored.role.name}\n        {store_path}")
            self.context.print_info(wrap(f"{restored.reason} {restored.remedy}", indent=" " * 8))
        if not (pending or failed_jobs or restored_findings):
            self.context.print_info("Nothing is left to do.")

    def _print(self, text: str, *, is_error: bool) -> None:
        """Print a result, unless the command is quiet. Errors are printed in any case."""
        self.progress.clear()
        if is_error:
            click.echo(text)
        else:
            self.context.print_info(text)


def _finished_job_text(finished: FinishedJob) -> str:
    match finished.outcome:
        case JobDone(summary):
            return _job_text("done", finished.job, summary)
        case JobBlocked(reason) | JobFailed(reason):
            return _job_text("failed", finished.job, reason)
        case JobDeferred(reason):
            return _job_text("waits", finished.job, reason)


def _job_text(label: str, job: Job, text: str) -> str:
    name = f"{label:<7} {job.kind.value} {job.role}".rstrip()
    return f"{name}\n        {fit_path(job.store, WIDTH - 8)}\n{wrap(shorten_paths(text), indent=' ' * 8)}"

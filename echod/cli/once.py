"""`echod run --once`: do what is due now, until nothing more is; or hand it to the daemon and show the outcome."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

import click

from echod.app.services import Services, open_services
from echod.cli.progress import ProgressLine
from echod.cli.shell import CommandContext
from echod.cli.status import check_liveness
from echod.cli.text import WIDTH, fit_path, format_timestamp, pluralize, wrap
from echod.cli.wake import notify_daemon
from echod.daemon.main import this_process
from echod.errors import EchodError, ExitCode, UsageError
from echod.inspection import find_restored_findings
from echod.jobs.base import JobBlocked, JobDeferred, JobDone, JobFailed
from echod.packs.manifests import sync_manifests
from echod.projects.discovery import discover_stores
from echod.runtime.locks import worker_lock
from echod.scheduler.reconcile import reconcile
from echod.scheduler.worker import FinishedJob
from echod.state.job import MANUAL_KINDS, PENDING_STATES, Job, JobState
from echod.store.layout import Store, find_roles

_LOCK_TIMEOUT_SECONDS = 30.0
_POLL_SECONDS = 0.5
_HANDOVER_TIMEOUT_SECONDS = 30.0


class HandoverTimeoutError(EchodError):
    """The daemon runs but did not take the work."""

    exit_code = ExitCode.NOT_ANSWERING


def run_once(context: CommandContext, paths: list[Path], wait: float) -> NoReturn:
    """Print one line a job and what must wait; exit with 1 only if a job failed."""
    projects = [context.find_project(path) for path in paths]
    context.paths.create_directories()
    daemon_answers = check_liveness(context).is_answering
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        stores = discover_stores(projects).stores if projects else services.read_context.discover_stores().stores
        if not stores:
            raise UsageError("No project is registered; name one, or add it with: echod add PATH")
        _release_first_prunes(services, stores)
        if daemon_answers:
            with context.progress_line() as progress:
                failed = _hand_over_to_daemon(context, services, stores, wait, progress)
        else:
            with _hold_worker_lock(context):
                packs = services.read_context.pack_locations
                services.engine.recover((*stores, *packs.stores))
                sync_manifests(services.engine, packs.claude_home)
                for store in (*stores, *packs.stores):
                    services.worker.merge_late_writes(store)
            with context.progress_line() as progress:
                failed = _run_until_idle(context, services, stores, wait, progress)
        _print_remaining(context, services, stores)
    raise click.exceptions.Exit(ExitCode.FAILED if failed else ExitCode.OK)


def _release_first_prunes(services: Services, stores: Collection[Store]) -> None:
    """Whoever says this wants it done now: a first prune waits for nobody, the service's own neither."""
    if services.settings.mode != "maintain":
        return
    for store in stores:
        with contextlib.suppress(OSError):  # what cannot be listed is told by the look that follows
            services.entries.release_first_prune(store.key, [role.name for role in find_roles(store)])


def _run_until_idle(
    context: CommandContext, services: Services, stores: Collection[Store], wait: float, progress: ProgressLine
) -> bool:
    """Work until nothing is due; whether a job failed."""
    deadline = time.monotonic() + wait
    keys = {store.key for store in stores}
    failed = False
    reported: set[str] = set()
    _retry_backed_off_jobs(services, keys, context.now())
    while True:
        services.inbox.refresh(context.now(), extra_projects={store.project for store in stores})
        for store in stores:
            need_settings = services.read_context.need_settings(store.project)
            for problem in reconcile(
                store, need_settings, services.queue, context.now(), services.inbox, services.maintenance_finder
            ):
                if problem.text not in reported:
                    progress.clear()
                    click.echo(wrap(f"! {problem.text}", hang="  "))
                reported.add(problem.text)
            # A deferral of an earlier run is an answer of then; this one asks anew.
            services.queue.wake_deferred(store.key, context.now())
        changed = False
        for finished in _run_due_jobs(context, services, keys, progress):
            is_failure = isinstance(finished.outcome, JobFailed | JobBlocked)
            progress.clear()
            (click.echo if is_failure else context.print_info)(_finished_job_text(finished))
            failed |= is_failure
            changed |= isinstance(finished.outcome, JobDone) and finished.outcome.changed
        if changed:
            continue  # a store that was changed may call for more
        if time.monotonic() >= deadline or not _pending_jobs(services, keys):
            return failed
        remaining_seconds = max(0.0, deadline - time.monotonic())
        progress.clear()
        progress.show(
            f"waiting for {pluralize(len(_pending_jobs(services, keys)), 'job')} that must wait, "
            f"{remaining_seconds:.0f} s more"
        )
        time.sleep(min(_POLL_SECONDS, remaining_seconds))


def _run_due_jobs(
    context: CommandContext, services: Services, keys: Collection[str], progress: ProgressLine
) -> Iterator[FinishedJob]:
    """Run due jobs; a deferred one may come due again at once, so each waits for its second turn."""
    deferred_ids: set[int] = set()
    total = len(_pending_jobs(services, keys))
    for number in itertools.count(1):
        progress.show(f"job {number} of {max(number, total)}")
        with _hold_worker_lock(context):
            finished = services.worker.run_next(keys)
        if finished is None or finished.job.id in deferred_ids:
            return
        if isinstance(finished.outcome, JobDeferred):
            deferred_ids.add(finished.job.id)
        else:
            yield finished


def _hand_over_to_daemon(
    context: CommandContext, services: Services, stores: Collection[Store], wait: float, progress: ProgressLine
) -> bool:
    """Queue the work, wake the daemon and watch; whether a job failed."""
    services.inbox.refresh(context.now())
    for store in stores:
        need_settings = services.read_context.need_settings(store.project)
        reconcile(store, need_settings, services.queue, context.now(), services.inbox, services.maintenance_finder)
        services.queue.wake_deferred(store.key, context.now())
    keys = {store.key for store in stores}
    _retry_backed_off_jobs(services, keys, context.now())
    watched_ids = {job.id for job in _pending_jobs(services, keys)}
    notify_daemon(context)
    context.print_info("The service does the work.")
    deadline = time.monotonic() + max(wait, 0.0)
    handover_deadline = time.monotonic() + _HANDOVER_TIMEOUT_SECONDS
    failed = False
    while watched_ids:
        for job_id in sorted(watched_ids):
            job = services.queue_view.get(job_id)
            if job is None or job.merged_into is not None:
                watched_ids.discard(job_id)
                watched_ids |= {job.merged_into} - {None} if job is not None and job.merged_into else set()
            elif job.state in (JobState.DONE, JobState.DEAD):
                progress.clear()
                (click.echo if job.state is JobState.DEAD else context.print_info)(_job_row_text(job))
                failed |= job.state is JobState.DEAD
                watched_ids.discard(job_id)
            elif _is_waiting(job, context.now()) and time.monotonic() >= deadline:
                failed |= job.attempts > 0
                watched_ids.discard(job_id)
        if watched_ids and time.monotonic() > max(handover_deadline, deadline):
            raise HandoverTimeoutError("The service did not take the work within 30 s; `echod status` says how it is.")
        progress.show(f"the service has {pluralize(len(watched_ids), 'job')} left")
        time.sleep(0.1)
    return failed


def _retry_backed_off_jobs(services: Services, keys: Collection[str], now: float) -> None:
    """Whoever asks for a run wants to see what fails now, not what failed before and rests."""
    for job in _pending_jobs(services, keys):
        if job.state is JobState.QUEUED and job.attempts and job.due > now:
            services.queue.retry(job.id, now)


def _is_waiting(job: Job, now: float) -> bool:
    """Whether it waits for something else than its turn."""
    return job.state is JobState.DEFERRED or (job.state is JobState.QUEUED and job.due > now)


def _pending_jobs(services: Services, keys: Collection[str]) -> tuple[Job, ...]:
    return tuple(job for job in services.queue_view.list_jobs(PENDING_STATES, limit=10_000) if job.store in keys)


def _print_remaining(context: CommandContext, services: Services, stores: Collection[Store]) -> None:
    now, keys = context.now(), {store.key for store in stores}
    for job in reversed(_pending_jobs(services, keys)):
        when = f" Again at {format_timestamp(job.due, now)}." if job.due > now else ""
        reason = "it failed just now." if job.attempts else f"{(job.result or job.reason).rstrip('.')}."
        context.print_info(_job_text("waits", job, f"{reason}{when}"))
    dead_jobs = services.queue_view.list_jobs({JobState.DEAD}, limit=10_000)
    failed_jobs = [job for job in dead_jobs if job.store in keys and job.kind not in MANUAL_KINDS]
    for job in reversed(failed_jobs):
        click.echo(_job_text("gave up", job, f"{job.result} Once that is mended: echod jobs retry {job.id}"))
    restored_findings = [
        kept
        for store in stores
        for kept in find_restored_findings(services.engine, services.engine.collect_notices(store))
    ]
    for restored in restored_findings:
        context.print_info(f"for you {restored.role.name}\n        {fit_path(restored.role.store.key, WIDTH - 8)}")
        context.print_info(wrap(f"{restored.reason} {restored.remedy}", indent=" " * 8))
    if not (_pending_jobs(services, keys) or failed_jobs or restored_findings):
        context.print_info("Nothing is left to do.")


def _finished_job_text(finished: FinishedJob) -> str:
    match finished.outcome:
        case JobDone(summary):
            return _job_text("done", finished.job, summary)
        case JobBlocked(reason):
            return _job_text("failed", finished.job, reason)
        case JobFailed(error):
            return _job_text("failed", finished.job, error)
        case JobDeferred(reason):
            return _job_text("waits", finished.job, reason)


def _job_row_text(job: Job) -> str:
    return _job_text("done" if job.state is JobState.DONE else "failed", job, job.result)


def _job_text(label: str, job: Job, text: str) -> str:
    name = f"{label:<7} {job.kind.value} {job.role}".rstrip()
    return f"{name}\n        {fit_path(job.store, WIDTH - 8)}\n{wrap(text, indent=' ' * 8)}"


def _hold_worker_lock(context: CommandContext) -> AbstractContextManager[object]:
    return worker_lock(context.paths.worker_lock, this_process(), _LOCK_TIMEOUT_SECONDS)

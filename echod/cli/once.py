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

from echod.app.services import House, furnish
from echod.cli.progress import Progress
from echod.cli.shell import Shell
from echod.cli.status import daemon_liveness
from echod.cli.text import WIDTH, count, fitted, moment, paragraph
from echod.cli.wake import wake_daemon
from echod.daemon.main import me
from echod.errors import EchodError, Exit, UsageError
from echod.inspection.review import kept_back
from echod.jobs.base import Blocked, Deferred, Done, Failed
from echod.packs.manifests import agree
from echod.projects.discovery import call
from echod.runtime.locks import worker_lock
from echod.scheduler.reconcile import reconcile
from echod.scheduler.worker import Finished
from echod.state.job import BY_HAND, PENDING, Job, JobState
from echod.store.layout import Store, roles_of

_LOCK_SECONDS = 30.0
_LOOK_SECONDS = 0.5
_TAKEN_SECONDS = 30.0


class NotTakenError(EchodError):
    """The daemon runs but did not take the work."""

    exit_code = Exit.NOT_ANSWERING


def run_once(shell: Shell, paths: list[Path], wait: float) -> NoReturn:
    """Print one line a job and what must wait; exit with 1 only if a job failed."""
    projects = [shell.project(path) for path in paths]
    shell.paths.create()
    by_daemon = daemon_liveness(shell).answers
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        stores = call(projects).stores if projects else house.lookout.roster().stores
        if not stores:
            raise UsageError("No project is registered; name one, or add it with: echod add PATH")
        _let_go(house, stores)
        if by_daemon:
            with shell.progress() as progress:
                failed = _hand_over(shell, house, stores, wait, progress)
        else:
            with _worker(shell):
                packs = house.lookout.packs
                house.engine.recover((*stores, *packs.stores))
                agree(house.engine, packs.home)
                for store in (*stores, *packs.stores):
                    house.worker.settle(store)
            with shell.progress() as progress:
                failed = _do_here(shell, house, stores, wait, progress)
        _say_what_waits(shell, house, stores)
    raise click.exceptions.Exit(Exit.FAILED if failed else Exit.OK)


def _let_go(house: House, stores: Collection[Store]) -> None:
    """Whoever says this wants it done now: a first prune waits for nobody, the service's own neither."""
    if house.settings.mode != "maintain":
        return
    for store in stores:
        with contextlib.suppress(OSError):  # what cannot be listed is told by the look that follows
            house.entries.let_go(store.key, [role.name for role in roles_of(store)])


def _do_here(shell: Shell, house: House, stores: Collection[Store], wait: float, progress: Progress) -> bool:
    """Work until nothing is due; whether a job failed."""
    deadline = time.monotonic() + wait
    keys = {store.key for store in stores}
    failed = False
    said: set[str] = set()
    _forget_pauses(house, keys, shell.now())
    while True:
        house.inbox.sort(shell.now(), named={store.project for store in stores})
        for store in stores:
            rules = house.lookout.rules(store.project)
            for trouble in reconcile(store, rules, house.queue, shell.now(), house.inbox, house.upkeep):
                if trouble.text not in said:
                    progress.clear()
                    click.echo(paragraph(f"! {trouble.text}", hang="  "))
                said.add(trouble.text)
            # A deferral of an earlier run is an answer of then; this one asks anew.
            house.queue.wake_deferred(store.key, shell.now())
        changed = False
        for finished in _work_off(shell, house, keys, progress):
            bad = isinstance(finished.outcome, Failed | Blocked)
            progress.clear()
            (click.echo if bad else shell.say)(_line(finished))
            failed |= bad
            changed |= isinstance(finished.outcome, Done) and finished.outcome.changed
        if changed:
            continue  # a store that was changed may call for more
        if time.monotonic() >= deadline or not _pending(house, keys):
            return failed
        left = max(0.0, deadline - time.monotonic())
        progress.clear()
        progress.show(f"waiting for {count(len(_pending(house, keys)), 'job')} that must wait, {left:.0f} s more")
        time.sleep(min(_LOOK_SECONDS, left))


def _work_off(shell: Shell, house: House, keys: Collection[str], progress: Progress) -> Iterator[Finished]:
    """Run due jobs; a deferred one may come due again at once, so each waits for its second turn."""
    waited: set[int] = set()
    total = len(_pending(house, keys))
    for number in itertools.count(1):
        progress.show(f"job {number} of {max(number, total)}")
        with _worker(shell):
            finished = house.worker.turn(keys)
        if finished is None or finished.job.id in waited:
            return
        if isinstance(finished.outcome, Deferred):
            waited.add(finished.job.id)
        else:
            yield finished


def _hand_over(shell: Shell, house: House, stores: Collection[Store], wait: float, progress: Progress) -> bool:
    """Queue the work, wake the daemon and watch; whether a job failed."""
    house.inbox.sort(shell.now())
    for store in stores:
        rules = house.lookout.rules(store.project)
        reconcile(store, rules, house.queue, shell.now(), house.inbox, house.upkeep)
        house.queue.wake_deferred(store.key, shell.now())
    keys = {store.key for store in stores}
    _forget_pauses(house, keys, shell.now())
    watched = {job.id for job in _pending(house, keys)}
    wake_daemon(shell)
    shell.say("The service does the work.")
    deadline = time.monotonic() + max(wait, 0.0)
    taken_by = time.monotonic() + _TAKEN_SECONDS
    failed = False
    while watched:
        for number in sorted(watched):
            job = house.view.get(number)
            if job is None or job.merged_into is not None:
                watched.discard(number)
                watched |= {job.merged_into} - {None} if job is not None and job.merged_into else set()
            elif job.state in (JobState.DONE, JobState.DEAD):
                progress.clear()
                (click.echo if job.state is JobState.DEAD else shell.say)(_row(job))
                failed |= job.state is JobState.DEAD
                watched.discard(number)
            elif _rests(job, shell.now()) and time.monotonic() >= deadline:
                failed |= job.attempts > 0
                watched.discard(number)
        if watched and time.monotonic() > max(taken_by, deadline):
            raise NotTakenError("The service did not take the work within 30 s; `echod status` says how it is.")
        progress.show(f"the service has {count(len(watched), 'job')} left")
        time.sleep(0.1)
    return failed


def _forget_pauses(house: House, keys: Collection[str], now: float) -> None:
    """Whoever asks for a run wants to see what fails now, not what failed before and rests."""
    for job in _pending(house, keys):
        if job.state is JobState.QUEUED and job.attempts and job.due > now:
            house.queue.retry(job.id, now)


def _rests(job: Job, now: float) -> bool:
    """Whether it waits for something else than its turn."""
    return job.state is JobState.DEFERRED or (job.state is JobState.QUEUED and job.due > now)


def _pending(house: House, keys: Collection[str]) -> tuple[Job, ...]:
    return tuple(job for job in house.view.jobs(PENDING, limit=10_000) if job.store in keys)


def _say_what_waits(shell: Shell, house: House, stores: Collection[Store]) -> None:
    now, keys = shell.now(), {store.key for store in stores}
    for job in reversed(_pending(house, keys)):
        when = f" Again at {moment(job.due, now)}." if job.due > now else ""
        why = "it failed just now." if job.attempts else f"{(job.result or job.reason).rstrip('.')}."
        shell.say(_said("waits", job, f"{why}{when}"))
    dead = house.view.jobs({JobState.DEAD}, limit=10_000)
    given_up = [job for job in dead if job.store in keys and job.kind not in BY_HAND]
    for job in reversed(given_up):
        click.echo(_said("gave up", job, f"{job.result} Once that is mended: echod jobs retry {job.id}"))
    for_a_person = [kept for store in stores for kept in kept_back(house.engine, house.engine.notes(store))]
    for kept in for_a_person:
        shell.say(f"for you {kept.role.name}\n        {fitted(kept.role.store.key, WIDTH - 8)}")
        shell.say(paragraph(f"{kept.reason} {kept.remedy}", indent=" " * 8))
    if not (_pending(house, keys) or given_up or for_a_person):
        shell.say("Nothing is left to do.")


def _line(finished: Finished) -> str:
    match finished.outcome:
        case Done(summary):
            return _said("done", finished.job, summary)
        case Blocked(reason):
            return _said("failed", finished.job, reason)
        case Failed(error):
            return _said("failed", finished.job, error)
        case Deferred(reason):
            return _said("waits", finished.job, reason)


def _row(job: Job) -> str:
    return _said("done" if job.state is JobState.DONE else "failed", job, job.result)


def _said(word: str, job: Job, text: str) -> str:
    name = f"{word:<7} {job.kind.value} {job.role}".rstrip()
    return f"{name}\n        {fitted(job.store, WIDTH - 8)}\n{paragraph(text, indent=' ' * 8)}"


def _worker(shell: Shell) -> AbstractContextManager[object]:
    return worker_lock(shell.paths.worker_lock, me(), _LOCK_SECONDS)

"""The product's own worker in this process: a house as the daemon furnishes it, and jobs run one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from echod.app.services import Services, open_services
from echod.jobs.base import JobBlocked, JobDone, JobFailed
from echod.paths import Paths
from echod.scheduler.reconcile import reconcile
from echod.scheduler.worker import FinishedJob
from echod.settings.schema import Settings
from echod.state.jobs import PENDING_STATES
from echod.store import layout
from echod.store.layout import Store

_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class JobRunner:
    """A house, and the clock that it goes by."""

    services: Services
    clock: Callable[[], float]

    def reconcile_store(self, store: Store) -> None:
        """Bring the queue in line with a store."""
        rules = self.services.read_context.need_settings(store.project)
        if troubles := reconcile(
            store, rules, self.services.queue, self.clock(), self.services.inbox, self.services.maintenance_finder
        ):
            raise AssertionError(troubles[0].text)

    def run_until_idle(self, store: Store) -> int:
        """Look and work until the store calls for nothing; how many jobs were done."""
        done, deadline = 0, time.monotonic() + _TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            self.reconcile_store(store)
            self.services.queue.wake_deferred(store.key, self.clock())
            worked = 0
            while (finished := self.services.worker.run_next([store.key])) is not None and _is_done(finished):
                worked += 1
                deadline = time.monotonic() + _TIMEOUT_SECONDS
            if not worked and not self._has_pending(store):
                return done
            done += worked
        raise TimeoutError(f"the work in {store.key} does not end")

    def run_until_job(self, store: Store, kind: str) -> None:
        """Run what is due until a job of this kind has changed something."""
        while (finished := self.services.worker.run_next([store.key])) is not None:
            if not _is_done(finished):
                raise AssertionError(f"{finished.job.kind.value} had to wait: {finished.outcome}")
            if finished.job.kind == kind:
                assert isinstance(finished.outcome, JobDone)
                assert finished.outcome.changed, finished.outcome.summary
                return
        raise AssertionError(f"nothing called for a job of the kind {kind}")

    def _has_pending(self, store: Store) -> bool:
        return any(job.store == store.key for job in self.services.queue_view.list_jobs(PENDING_STATES, limit=1_000))


@contextmanager
def open_job_runner(
    state: Path, *, clock: Callable[[], float] = time.time, memory_line_limit: int = 100_000
) -> Iterator[JobRunner]:
    """A house with its state in `state`, whose gate opens at once and whose memories may be long.

    Args:
        state: an empty directory, which becomes state and runtime directory.
        clock: Unix seconds; may run ahead of the machine's own.
        memory_line_limit: above so many lines entries have to go.
    """
    settings = Settings(quiet_seconds=0, memory_line_limit=memory_line_limit)
    environ = {"HOME": str(state), "CLAUDE_CONFIG_DIR": str(state / "claude")}
    with open_services(Paths(state, state / "run", state / "config.toml"), settings, environ, clock) as services:
        yield JobRunner(services, clock)


def single_store(project: Path) -> Store:
    """The one store of a project."""
    (store,) = layout.find_stores(project)
    return store


def _is_done(finished: FinishedJob) -> bool:
    """A deferred job waits for the next look; one that failed ends the measurement."""
    match finished.outcome:
        case JobFailed() | JobBlocked():
            raise AssertionError(f"{finished.job.kind.value}: {finished.outcome}")
        case outcome:
            return isinstance(outcome, JobDone)

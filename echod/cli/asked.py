"""What a person asked for is a job of its own: it has a number, a row in `echod jobs`, and an undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from echod.app.context import still_runs
from echod.app.services import House
from echod.cli.by_hand import HeldError, gate_of, held
from echod.cli.shell import Shell
from echod.cli.text import paragraph
from echod.daemon.main import me
from echod.errors import EchodError
from echod.jobs.base import Blocked, Deferred, Done, Failed, Outcome
from echod.runtime.locks import worker_lock
from echod.state.job import Job, JobKind, Need
from echod.store.changes import Gate, open_gate
from echod.store.layout import Role

_LOCK_SECONDS = 30.0


class NotDoneError(EchodError):
    """A file was left as it is; the sentence says why."""


class Asked(NamedTuple):
    """What is to be done to a role, and why, in a sentence for `echod jobs`."""

    kind: JobKind
    role: Role
    reason: str


class Carried(NamedTuple):
    """What was done, in a line, and as which job."""

    job: Job
    summary: str

    @property
    def way_back(self) -> str:
        """How a person takes it back."""
        return f"To take it back: echod undo {self.job.id}"

    def told(self, what: str) -> str:
        """What was done to `what`, and the way back, fit for the screen."""
        return paragraph(f"{what}: {self.summary}. {self.way_back}", hang="  ")


def carry_out(
    shell: Shell, house: House, asked: Asked, work: Callable[[Job, Gate], str], *, force: bool = False
) -> Carried:
    """Do it at once, while the person waits, as the one worker.

    Args:
        shell: where the command was called.
        house: what works on memories.
        asked: what is to be done.
        work: does it under the job's number, asks the gate before it writes, and says in a line what was done.
        force: do it although a workflow is at work.

    Raises:
        HeldError: a workflow is at work; nothing was changed.
        EchodError: whatever `work` raises; the job is written down as given up.
    """
    project = asked.role.store.project
    ask = open_gate if force else gate_of(shell, house.lookout.gatekeeper, project)
    closed: list[str] = []

    def gate() -> str | None:
        reason = ask()
        closed.extend([] if reason is None else [reason])
        return reason

    now = shell.now()
    need = Need(asked.kind, asked.role.store.key, asked.role.name, f"asked at {now}", asked.reason, now)
    with worker_lock(shell.paths.worker_lock, me(), _LOCK_SECONDS):
        house.queue.recover(still_runs, now)
        job = house.queue.begin(need, now)
        try:
            summary = _if_open(gate, work, job)
        except EchodError as error:
            if closed:
                house.queue.finish(job, f"nothing was done: {closed[-1]}", shell.now())
                raise held(project, closed[-1]) from error
            house.queue.give_up(job, str(error), shell.now())
            raise
        except BaseException as error:
            house.queue.give_up(job, f"An unexpected {type(error).__name__} ended it.", shell.now())
            raise
        house.queue.finish(job, summary, shell.now())
    return Carried(job, summary)


def _if_open(gate: Gate, work: Callable[[Job, Gate], str], job: Job) -> str:
    if (reason := gate()) is not None:
        raise HeldError(reason)
    return work(job, gate)


def done(outcome: Outcome) -> str:
    """What a job's outcome says was done.

    Raises:
        NotDoneError: it was not done, the sentence says why.
    """
    match outcome:
        case Done(summary):
            return summary
        case Failed(text) | Blocked(text):
            raise NotDoneError(_nothing_changed(text))
        case Deferred():
            raise NotDoneError(_nothing_changed(outcome.reason))


def _nothing_changed(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}. Nothing was changed."

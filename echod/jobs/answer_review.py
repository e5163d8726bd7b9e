"""The review job: what a person's answer to a review item changes in a role."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from pathlib import Path, PurePosixPath

from echod.inspection.review_items import Claim, FirstPrune, GivenBack, Item, Replaced, SetAside, Suspicious
from echod.jobs import forget, set_layer
from echod.jobs.base import Blocked, Done, Outcome, Proposal, carry_out
from echod.jobs.consolidate import Means, fold_in
from echod.memory.policy import Rule
from echod.memory.redact import redact_bytes
from echod.state.job import JobKind
from echod.state.review_answers import Answer
from echod.store import layout
from echod.store.changes import ChangeSet, Consume, Origin, Write
from echod.store.layout import kept_at, restored_name
from echod.store.session import RoleSession, RoleView


def changes_files(item: Item, answer: Answer) -> bool:
    """Whether an answer changes files of the role. One that does not is only remembered."""
    if answer is Answer.ACCEPTED:
        return isinstance(item.subject, Claim | Replaced | SetAside | GivenBack)
    return isinstance(item.subject, Suspicious | GivenBack)


def is_remembered(item: Item, answer: Answer) -> bool:
    """Whether the item would be there again, had nobody written down that it was answered."""
    return not changes_files(item, answer) and not (answer is Answer.ACCEPTED and isinstance(item.subject, FirstPrune))


def run(item: Item, answer: Answer, means: Means) -> Outcome:
    """Carry out an answer that changes files.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`; nothing was changed.
    """
    if isinstance(item.subject, GivenBack) and answer is Answer.ACCEPTED:
        return fold_in(item.role, frozenset([item.subject.digest]), means)
    with means.engine.open_role(item.role) as session:
        match item.subject, answer:
            case Claim(entry, layer), Answer.ACCEPTED:
                return set_layer.run(means.job, session, entry, layer, means.gate, means.clock)
            case Replaced(entry), Answer.ACCEPTED:
                return forget.run(means.job, session, [entry], means.gate, means.clock, rule=Rule.SUPERSEDED)
            case Suspicious(entry), Answer.REJECTED:
                return forget.run(means.job, session, [entry], means.gate, means.clock, rule=Rule.FORGOTTEN)
            case SetAside() as aside, Answer.ACCEPTED:
                return _put_back(aside, session, means)
            case GivenBack(name, digest), Answer.REJECTED:
                return _keep_out(name, digest, session, means)
            case _:
                return Done("nothing was changed", changed=False)


def _put_back(aside: SetAside, session: RoleSession, means: Means) -> Outcome:
    """The file goes back to where it is read; what stood in quarantine is kept with the other findings."""
    if aside.problem is not None:
        return Blocked(f"{aside.name} cannot be read: {aside.problem}")

    def planner(view: RoleView, _: date) -> Proposal | Outcome:
        role = PurePosixPath(view.role.name)
        found = session.file(f"{layout.QUARANTINE}/{aside.name}")
        if found.data is None or found.digest != aside.digest:
            return Blocked(f"{aside.name} has changed since; look at it again: echod review")
        back = Write(role / _free(view.role.path, aside.findings), None, redact_bytes(found.data))
        gone = Consume(
            path=role / layout.QUARANTINE / aside.name,
            before=aside.digest,
            archive=role / layout.FINDINGS_ARCHIVE / aside.name,
            kept=redact_bytes(found.data),
        )
        return Proposal(_changes(view, f"{aside.name} is read again", [back], [gone]))

    return carry_out(means.job, session, planner, means.gate, means.clock, writes=True)


def _keep_out(name: str, digest: str, session: RoleSession, means: Means) -> Outcome:
    """A findings file goes to where the others are that were consumed, but nothing of it to the memory."""

    def planner(view: RoleView, today: date) -> Proposal | Outcome:
        role = PurePosixPath(view.role.name)
        found = next((one for one in view.findings if one.path.name == name and one.digest == digest), None)
        if found is None:
            return Blocked(f"{name} has changed since; look at it again: echod review")
        gone = Consume(
            path=role / name,
            before=digest,
            archive=role / kept_at(name, today),
            kept=redact_bytes(found.text),
        )
        return Proposal(_changes(view, f"{name} archived, nothing of it added", [], [gone]))

    return carry_out(means.job, session, planner, means.gate, means.clock, writes=True)


def _changes(view: RoleView, summary: str, writes: Iterable[Write], consumes: Iterable[Consume]) -> ChangeSet:
    return ChangeSet(
        kind=JobKind.REVIEW.value,
        role=view.role.name,
        summary=summary,
        writes=tuple(writes),
        consumes=tuple(consumes),
        origin=Origin.PERSON,
    )


def _free(directory: Path, name: str) -> str:
    """A name for a findings file that no other one has."""
    free, number = name, 1
    while (directory / free).exists():
        number += 1
        free = restored_name(name, number)
    return free

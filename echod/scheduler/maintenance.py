"""What memory and knowledge files call for: prune, promote, compress. And what is learnt by looking at them.

A look parses and plans only what has changed since, and everything once a day, since age changes plans too. Whoever
looks also notes which entries there are, and on which days the project was alive: that days pass counts only then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import date
from os import stat_result
from pathlib import Path
from typing import NamedTuple

from echod.clock import local_day
from echod.files import Stamp, plain_stamp
from echod.inspection.counts import read_document
from echod.inspection.entry_facts import facts_of_knowledge, noted_facts
from echod.memory.model import SIZE_LIMIT, Document, Layer
from echod.memory.policy import Policy, plan_compress, plan_prune
from echod.projects.maintenance import Care, only_on_request
from echod.scheduler.needs import Look, Trouble, trouble
from echod.state.entries import EntryLog
from echod.state.job import JobKind, Need
from echod.store import layout
from echod.store.engine import Engine
from echod.store.layout import Role, Store


class _Seen(NamedTuple):
    """When and at what a file was looked at, and what it called for (None: nothing)."""

    stamp: Stamp | None
    day: date
    policy: Policy
    reason: str | None


class Upkeep:
    """One for a process; remembers what each file called for as long as it is the same."""

    def __init__(self, entries: EntryLog, engine: Engine) -> None:
        self._entries = entries
        self._engine = engine
        self._seen: dict[Path, _Seen] = {}

    def look(self, store: Store, care: Care, mode: str, now: float, *, reported: bool) -> Look:
        """What the files of a store call for at `now` (Unix seconds).

        Args:
            store: the store.
            care: what may be done in its project.
            mode: part of an input's name, as in `NeedRules`.
            now: Unix seconds.
            reported: whether agents reported something for this store that is not in its memory yet.

        Raises:
            Busy, StoreFault: the journal cannot be read.
        """
        today = local_day(now)
        try:
            roles = layout.roles_of(store)
        except OSError as error:
            return Look((), (trouble(store.root, error),))
        own = self._engine.own_writes(store)
        alive = {today} if reported else set()
        needs: list[Need] = []
        troubles: list[Trouble] = []
        for role in roles:
            try:
                alive |= _days_of_others(role, own, today)
                needs += self._of_role(role, care, mode, now, today)
            except OSError as error:
                place = Path(error.filename or role.path)
                troubles.append(trouble(place, error, "listed" if place == role.path else "read"))
        self._entries.mark_alive(str(store.project), alive)
        return Look(tuple(needs), tuple(troubles))

    def _of_role(self, role: Role, care: Care, mode: str, now: float, today: date) -> Iterator[Need]:
        policy = care.policy
        memory, knowledge = plain_stamp(role.memory, SIZE_LIMIT), plain_stamp(role.knowledge, SIZE_LIMIT)
        wanted = {
            JobKind.PRUNE: (self._reason(role, role.memory, memory, policy, today), memory),
            JobKind.COMPRESS: (self._reason(role, role.knowledge, knowledge, policy, today), knowledge),
        }
        for kind, (reason, stamp) in wanted.items():
            if reason is None or care.opted_out(kind) or only_on_request(kind, role, care):
                continue
            yield _need(kind, role, reason, now, (mode, stamp, today, policy))
        often = self._entries.often_referenced(
            role.store.key, role.name, Layer.OBSERVATIONS, policy.promote_references, today
        )
        if often and memory is not None:
            count = f"{len(often)} observation{'' if len(often) == 1 else 's'}"
            reason = f"{count} referenced {policy.promote_references} times or more"
            yield _need(JobKind.PROMOTE, role, reason, now, (mode, memory, often))

    def _reason(self, role: Role, file: Path, stamp: Stamp | None, policy: Policy, today: date) -> str | None:
        known = self._seen.get(file)
        if known is not None and (known.stamp, known.day, known.policy) == (stamp, today, policy):
            return known.reason
        document = None if stamp is None else read_document(file)
        if document is None:
            reason = None
        elif file.name == layout.MEMORY:
            reason = self._memory(role, document, policy, today)
        else:
            reason = self._knowledge(role, document, policy, today)
        self._seen[file] = _Seen(stamp, today, policy, reason)
        return reason

    def _memory(self, role: Role, document: Document, policy: Policy, today: date) -> str | None:
        facts = noted_facts(role, self._entries, policy, today, document)
        plan = plan_prune(role.name, document, facts, policy, today)
        return None if plan.memory is None else plan.summary

    def _knowledge(self, role: Role, document: Document, policy: Policy, today: date) -> str | None:
        facts = facts_of_knowledge(role, self._entries, policy, today, document)
        plan = plan_compress(role.name, document, facts, policy, today)
        return None if plan.knowledge is None else plan.summary


def _days_of_others(role: Role, own: Mapping[Path, int], today: date) -> set[date]:
    """The days on which others left something in a role; what echod itself wrote does not count."""
    days = set()
    for path in (role.memory, *layout.findings_of(role)):
        status = _stat(path)
        if status is not None and own.get(path) != status.st_mtime_ns:
            days.add(min(local_day(status.st_mtime), today))
    return days


def _need(kind: JobKind, role: Role, reason: str, now: float, named_by: tuple[object, ...]) -> Need:
    name = hashlib.sha256(repr(named_by).encode()).hexdigest()[:16]
    return Need(kind=kind, store=role.store.key, role=role.name, fingerprint=name, reason=reason, due=now)


def _stat(path: Path) -> stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None

"""A role held for one job: read it, plan, commit. The upstream writers' lock is held meanwhile.

The job plans from what `read` returns and names those contents in its change set; the commit tells when someone
else was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from echod.log import get_logger
from echod.store.changes import (
    ChangeSet,
    Committed,
    Gate,
    Origin,
    Overtaken,
    Plan,
    PlannedConsume,
    PlannedWrite,
    open_gate,
)
from echod.store.commit.commit import commit, hold
from echod.store.commit.context import Desk
from echod.store.errors import Busy, Refused, StoreFault, told
from echod.store.healing.heal import head_of, healed_memory, remember_absence
from echod.store.healing.late_writes import follow
from echod.store.journal.notices import Question, ask
from echod.store.layout import KNOWLEDGE, MEMORY, Role, each_findings_file
from echod.store.snapshot import MAX_FILE_BYTES, NotSettled, Snapshot, Unsettled, digest, too_large, unreadable

log = get_logger(__name__)

_MOST_FINDINGS, _MOST_FINDINGS_BYTES = 600, 1 << 20
"""Of a role's findings no more is read at once: more than a job takes up, and yet nothing that grows with the role."""


@dataclass(frozen=True, slots=True)
class RoleView:
    """What a role holds, every file as of one moment.

    Attributes:
        memory: the memory file (`data` is None where there is none yet).
        knowledge: the knowledge file; None where it cannot be read now, `no_knowledge` says why.
        findings: findings files that can be read now, in name order; only some of them where they are very many.
        busy: findings files that cannot be read now, each with the reason; they are left for the next time.
        known_keys: the ledger: findings that were consumed before.
        undone: digests of findings files whose consolidation was undone; not to be repeated unasked.
        begun: digests of findings files of which a part was taken up.
    """

    role: Role
    memory: Snapshot
    knowledge: Snapshot | None
    no_knowledge: Unsettled | None
    findings: tuple[Snapshot, ...]
    busy: tuple[Unsettled, ...]
    known_keys: AbstractSet[str]
    undone: frozenset[str]
    begun: frozenset[str]


def view_of(desk: Desk, memory: Snapshot, still_seconds: float) -> RoleView:
    """Everything else of a role beside its memory file, without changing anything."""
    role = desk.ground.role
    busy: list[Unsettled] = []
    known, undone = desk.journal.known_keys(), desk.journal.undoings.given_back()
    findings: list[Snapshot] = []
    number = size = 0
    with told("list", role.path):
        for found in _each_findings_file(desk, still_seconds, busy):
            findings.append(found)
            if found.digest in undone:
                continue  # these stay, so that they must not keep others from being seen
            number, size = number + 1, size + len(found.text)
            if number >= _MOST_FINDINGS or size >= _MOST_FINDINGS_BYTES:
                break
    findings.sort(key=lambda found: found.path.name)
    unread: list[Unsettled] = []
    knowledge = _readable(desk, KNOWLEDGE, unread)
    return RoleView(
        role,
        memory,
        knowledge,
        unread[0] if unread else None,
        tuple(findings),
        tuple(busy),
        known,
        undone,
        desk.journal.begun(),
    )


def _each_findings_file(desk: Desk, still_seconds: float, busy: list[Unsettled]) -> Iterator[Snapshot]:
    for name in each_findings_file(desk.ground.role):
        status, path, now = desk.ground.home.stat(name), desk.ground.role.path / name, desk.clock()
        if status is None:
            continue
        if status.st_size > MAX_FILE_BYTES:
            busy.append(too_large(path))
        elif 0 <= now - status.st_mtime < still_seconds:
            busy.append(Unsettled(path, f"{name} is still being written.", status.st_mtime + still_seconds))
        elif (found := _readable(desk, name, busy)) is not None and found.data is not None:
            yield found


def _readable(desk: Desk, name: str, busy: list[Unsettled]) -> Snapshot | None:
    path = desk.ground.role.path / name
    try:
        return desk.read(desk.ground.path_of(name))
    except NotSettled as error:
        busy.append(error.found)
    except StoreFault as error:
        cause = error.__cause__
        busy.append(unreadable(path, str(error), cause) if isinstance(cause, OSError) else Unsettled(path, str(error)))
    return None


def plain_memory(desk: Desk) -> Snapshot:
    """The memory file as it lies there, for whoever only looks: nothing is repaired, nothing remembered."""
    return desk.read(desk.ground.path_of(MEMORY))


@dataclass(slots=True)
class RoleSession:
    """Made by `Engine.open_role`, or by `Engine.only_look` for whoever must not write."""

    desk: Desk
    memory_of: Callable[[Desk], Snapshot] = healed_memory
    _seen: dict[str, bytes] = field(default_factory=dict)
    _overtaken: int = 0

    @property
    def role(self) -> Role:
        """The role that is held."""
        return self.desk.ground.role

    def read(self, *, still_seconds: float = 0.0) -> RoleView:
        """Read the role. Findings files that were touched less than `still_seconds` ago count as busy.

        Raises:
            Busy: the memory file is being written; the job waits.
            StoreFault: it cannot be read.
        """
        view = view_of(self.desk, self.memory_of(self.desk), still_seconds)
        for found in (view.memory, *view.findings, *filter(None, [view.knowledge])):
            self._remember(found)
        return view

    def file(self, name: str) -> Snapshot:
        """Read one more file of the role, named relative to it (`archive/pruned-2026.md`).

        Raises:
            Busy: it is being written.
            StoreFault: it cannot be read.
        """
        found = self.desk.read(self.desk.ground.path_of(name))
        self._remember(found)
        return found

    def ask(self, questions: Iterable[Question]) -> None:
        """Note what a person has to decide about findings. To be called before the commit that takes them in.

        Raises:
            StoreFault: the journal cannot be written.
        """
        with told("write the journal of", self.role.path):
            ask(self.desk.journal.root, questions)

    def commit(self, job: int, changes: ChangeSet, *, gate: Gate = open_gate) -> Committed | Overtaken:
        """Carry out a job's change set, or say that the plan is out of date.

        After `max_replans` overtaken plans the commit goes on, and what others wrote meanwhile is merged.

        Args:
            job: the job's number, for log and undo.
            changes: what to change, planned from what this session read.
            gate: asked just before the point of no return; a sentence means: not now.

        Raises:
            Busy: not now; nothing was changed.
            Refused: the change set breaks a promise; the sentence names the block.
            StoreFault: the file system failed; nothing was changed, or recovery will finish it.
        """
        if self.memory_of is not healed_memory:
            raise Refused("Nothing is written here: this job was asked only to look.")
        plan = self._plan(job, changes)
        if isinstance(plan, Overtaken):
            return self._count(plan)
        if plan.empty:
            return Committed(None)
        hold(plan, self.desk.readings.read, asked=changes.origin is Origin.PERSON)
        insist = self._overtaken >= self.desk.limits.max_replans
        paths = frozenset(w.path for w in plan.writes) | {c.path for c in plan.consumes}
        outcome = commit(self.desk, plan, gate=gate, head=head_of(self.desk), go_on=paths if insist else frozenset())
        if isinstance(outcome, Committed):
            remember_absence(self.desk, plan)
            self._follow(outcome)
        return self._count(outcome)

    def _follow(self, done: Committed) -> None:
        """What was displaced may have changed since it was read; what cannot be merged now is merged later."""
        try:
            with told("follow late changes in", self.role.path):
                for record in self.desk.journal.open_records():
                    if record.seq == done.seq:
                        follow(self.desk, record)
        except (Busy, StoreFault) as error:
            log.info("late_bytes_wait", role=str(self.role.path), seq=done.seq, reason=str(error))

    def _remember(self, found: Snapshot) -> None:
        if found.data is not None:
            self._seen[digest(found.data)] = found.data

    def _count(self, outcome: Committed | Overtaken) -> Committed | Overtaken:
        self._overtaken = self._overtaken + 1 if isinstance(outcome, Overtaken) else 0
        return outcome

    def _plan(self, job: int, changes: ChangeSet) -> Plan | Overtaken:
        """Contents in the place of digests, free archive names, nothing that changes nothing."""
        if changes.role != self.role.name:
            raise Refused(f"A change for the role {changes.role!r} was planned in {self.role.name!r}.")
        writes = []
        for write in changes.writes:
            before = None if write.before is None else self._content(str(write.path), write.before)
            if isinstance(before, Overtaken):
                return before
            if before != write.after:
                writes.append(PlannedWrite(str(write.path), before, write.after))
        consumes = []
        taken: set[str] = set()
        for consumed in changes.consumes:
            content = self._content(str(consumed.path), consumed.before)
            if isinstance(content, Overtaken):
                return content
            place = self._free_name(consumed.archive, taken)
            consumes.append(PlannedConsume(str(consumed.path), content, consumed.kept, place, consumed.keys))
        appends = tuple((str(a.path), a.text) for a in changes.appends if a.text)
        return Plan(job, changes.kind, changes.summary, tuple(writes), appends, tuple(consumes), changes.begins)

    def _content(self, path: str, name: str) -> bytes | Overtaken:
        """The content of that digest: what we read before, else what stands there now."""
        if name in self._seen:
            return self._seen[name]
        current = self.desk.read(path)
        if current.data is None or current.digest != name:
            return Overtaken(path)
        return current.data

    def _free_name(self, wished: PurePosixPath, taken: set[str]) -> str:
        with told("open the directory of", self.desk.ground.role.store.root / wished):
            directory, _ = self.desk.ground.place(wished)
        number, name = 1, wished
        while str(name) in taken or directory.stat(name.name) is not None:
            number += 1
            name = wished.with_name(f"{wished.stem}-{number}{wished.suffix}")
        taken.add(str(name))
        return str(name)

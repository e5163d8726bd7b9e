"""Bringing the memory file back in line with what is known of it, before anyone plans from it.

A stale writer's overwrite is repaired by a commit of its own; what a person did is respected, remembered as the
newest state, and, where it could have been a mistake, noted for review with the text kept in the archive.
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from echod.memory.alignment import Key, content, heading
from echod.memory.document import Document
from echod.memory.lineage import Crossed, Doubtful, Found, Reverted, Stale, Successor, judge
from echod.memory.merge import Merged, Unmergeable, believe_removals, merge, without
from echod.store.changeset import digest
from echod.store.commit import commit
from echod.store.desk import Desk
from echod.store.faults import Busy
from echod.store.journal import KnownState
from echod.store.known import KnownDocument, known_document, known_documents
from echod.store.layout import MEMORY
from echod.store.obligations import named, owed_blocks, reapplied_name, recent_consumptions, worn_out
from echod.store.plan import Overtaken, Plan, PlannedWrite, open_gate
from echod.store.removed import Archived, archived, leaving
from echod.store.repository import Tracking, tracking
from echod.store.reviews import Review, note
from echod.store.snapshot import Snapshot

log = structlog.get_logger(__name__)

_ROUNDS = 4
_HOUR = 3600.0


def healed_memory(desk: Desk) -> Snapshot:
    """The memory file, repaired if a stale writer overwrote it. What is read becomes a known state.

    Raises:
        Busy: it is being written, or was emptied a moment ago.
        StoreFault: it cannot be read or repaired.
    """
    path = desk.ground.path_of(MEMORY)
    for attempt in range(2 * _ROUNDS):
        found = desk.read(path)
        plan = _repair(desk, found)
        if plan is None:
            return found
        # Others who write without pause must not starve the repair: then it goes on, and what it displaces is merged.
        insisting = frozenset({path}) if attempt >= desk.limits.max_replans else frozenset()
        if isinstance(commit(desk, plan, gate=open_gate, head=head_of(desk), go_on=insisting), Overtaken):
            continue
        log.info("memory_healed", role=str(desk.ground.role.path), reason=plan.summary, blocks=len(plan.reapplied))
    raise Busy(f"{MEMORY} is overwritten again and again by another program.")


def head_of(desk: Desk) -> str | None:
    """Git HEAD where a repository tracks the memory file."""
    followed = _tracking(desk)
    return followed.head if followed else None


def brought_in_line(
    descent: Stale | Crossed, document: Document, known: tuple[KnownDocument, ...], kept_out: set[Key], old: Archived
) -> Merged | Unmergeable:
    """`document` with what the newest known state had and it does not know, less the blocks in `kept_out`."""
    newest = known[-1].document
    wanted = without(newest, kept_out)
    if isinstance(descent, Crossed):
        return merge(without(newest, set(descent.gone)), document, wanted)
    return merge(believe_removals(known[descent.base].document, wanted, old), document, wanted)


def _repair(desk: Desk, found: Snapshot) -> Plan | None:
    """The commit that repairs the memory file; None where it is as it should be (and then it is remembered)."""
    document = desk.readings.remember(found.text)
    if document is None:
        return None  # unreadable: left alone, and never a known state
    image = digest(found.text)
    states = desk.journal.states()
    newest = known_document(desk, states[-1]) if states else None
    if newest is not None and (image == newest.known.image or _only_grew(desk, image, document, newest)):
        return _put_back(desk, found, document, Successor(), (newest,))
    known = known_documents(desk)
    if not known:
        _remember(desk, found)
        return None
    newest = known[-1]
    if not found.text.strip() and newest.document.blocks:
        _wait_if_just_emptied(desk, found)
        return _respect(desk, found, newest, tuple(newest.known.shape), "emptied", "somebody emptied the file")
    tracked = _tracking(desk)
    mtime = found.mtime_ns / 1e9 if found.mtime_ns else None
    descent = judge(
        Found(image, mtime, desk.readings.shape(image, document)),
        [k.known for k in known],
        now=desk.clock(),
        young_seconds=desk.limits.young_seconds,
    )
    if not isinstance(descent, Successor) and _moved_by_git(tracked, newest, found):
        gone = tuple(k for k in newest.known.shape if k not in desk.readings.shape(image, document))
        return _respect(desk, found, newest, gone, "git", "git put another version in place")
    match descent:
        case Reverted(gone):
            return _respect(desk, found, newest, gone, "reverted", "somebody put an earlier version back")
        case Doubtful(gone):
            return _respect(desk, found, newest, gone, "doubtful", "an edit took out what echod had added")
        case _:
            return _put_back(desk, found, document, descent, known)


def _only_grew(desk: Desk, image: str, document: Document, newest: KnownDocument) -> bool:
    """Whether every block of the newest state is still there, unchanged: the usual case, and quickly seen."""
    now = desk.readings.shape(image, document)
    return all(now.get(key) == text for key, text in newest.known.shape.items())


def _put_back(
    desk: Desk,
    found: Snapshot,
    document: Document,
    descent: Successor | Stale | Crossed,
    known: tuple[KnownDocument, ...],
) -> Plan | None:
    gone = set() if isinstance(descent, Successor) else set(descent.gone)
    kept_out = worn_out(desk, gone)
    if kept_out:
        _note(desk, "reapplied-often", "was put back several times and overwritten again", known[-1], kept_out)
    lost = [b.text for k, b in named(known[-1].document) if k in kept_out]
    ordinary = isinstance(descent, Successor) and not recent_consumptions(desk)
    old = Archived("") if ordinary else archived(desk)
    data = found.text
    if not isinstance(descent, Successor):
        merged = brought_in_line(descent, document, known, kept_out, old)
        if isinstance(merged, Unmergeable):
            return _give_to_person(desk, found, known[-1], gone, merged)
        data, lost = merged.data, [*lost, *merged.lost]
    owed = owed_blocks(desk, data, old)
    if owed:
        healed = desk.readings.remember(data) or document
        repaid = merge(Document(healed.preamble, ()), healed, Document(healed.preamble, tuple(owed.values())))
        data = repaid.data if isinstance(repaid, Merged) else data
    lost = [text for text in lost if text.rstrip() not in old]
    if data == found.text:
        return _keep(desk, found, lost)
    names = tuple(reapplied_name(key) for key in (gone - kept_out) | set(owed))
    why = "blocks that were consumed moments ago" if isinstance(descent, Successor) else _why(descent)
    return Plan(
        None,
        "heal",
        f"put back what another program overwrote: {why}",
        (PlannedWrite(desk.ground.path_of(MEMORY), found.data, data),),
        leaving(desk, lost, "gave way to another edit"),
        reapplied=names,
    )


def _why(descent: Stale | Crossed) -> str:
    return descent.why.value if isinstance(descent, Stale) else "young blocks were gone"


def _respect(
    desk: Desk, found: Snapshot, newest: KnownDocument, gone: tuple[Key, ...], kind: str, what: str
) -> Plan | None:
    """A person's doing: keep the text of what went with it, tell, and take the file as it is."""
    if not gone:
        return _keep(desk, found, [])
    old = archived(desk)
    lost = [b.text for k, b in named(newest.document) if k in set(gone) and content(b) not in old]
    _note(desk, kind, f"left the memory because {what}; the text is in the archive", newest, gone)
    return _keep(desk, found, lost)


def _give_to_person(
    desk: Desk, found: Snapshot, newest: KnownDocument, gone: set[Key], problem: Unmergeable
) -> Plan | None:
    _note(desk, "unmergeable", f"could not be put back ({problem.reason}); the text is in the archive", newest, gone)
    return _keep(desk, found, [b.text for k, b in named(newest.document) if k in gone])


def _keep(desk: Desk, found: Snapshot, texts: list[str]) -> Plan | None:
    _remember(desk, found)
    added = leaving(desk, texts, "left the memory")
    return Plan(None, "keep", "kept the text of entries that left the memory", appends=added) if added else None


def _remember(desk: Desk, found: Snapshot) -> None:
    """Make what stands there the newest known state."""
    states = desk.journal.states()
    image, head = digest(found.text), head_of(desk)
    if states and (states[-1].image, states[-1].head) == (image, head):
        return
    desk.journal.images.put(found.text)
    desk.journal.note_states([KnownState(image, desk.moment(), head)])


def _wait_if_just_emptied(desk: Desk, found: Snapshot) -> None:
    """A program that truncates or moves away before it writes looks like this for a moment; a person, for longer."""
    changed = found.mtime_ns / 1e9 if found.data is not None else desk.ground.home.path.stat().st_mtime
    if 0 <= desk.clock() - changed < desk.limits.settle_seconds:
        raise Busy(f"{MEMORY} was emptied a moment ago; another program may be about to write it.")


def _tracking(desk: Desk) -> Tracking | None:
    return tracking(desk.ground.role.store.project, desk.ground.role.memory)


def _moved_by_git(tracked: Tracking | None, newest: KnownDocument, found: Snapshot) -> bool:
    if tracked is None:
        return False
    return tracked.head != newest.head or tracked.holds(found.text)


def _note(desk: Desk, kind: str, what: str, newest: KnownDocument, keys: Iterable[Key]) -> None:
    wanted = set(keys)
    titles = tuple(heading(b) for k, b in named(newest.document) if k in wanted)
    role = desk.ground.role.name
    note(desk.journal.root, Review(desk.clock(), kind, role, f"{_some(titles)} {what}.", titles))
    log.info("review_noted", role=str(desk.ground.role.path), kind=kind, blocks=len(titles))


def _some(titles: tuple[str, ...]) -> str:
    first, *others = titles or ("Something",)
    return repr(first.lstrip("# ")) + (f" and {len(others)} more" if others else "")

"""Bringing the memory file back in line with what is known of it, before anyone plans from it.

A stale writer's overwrite is repaired by a commit of its own; what a person did is respected, remembered as the
newest state, and, where it could have been a mistake, noted for review with the text kept in the archive.

A memory file that we took away: that it is gone is our doing, and is not to be taken for a person's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from echod.log import get_logger
from echod.memory.alignment import Key, content, half_written, heading
from echod.memory.entry_matching import likeness_of
from echod.memory.identity import entry_ids
from echod.memory.lineage import Crossed, Doubtful, Found, Reverted, Stale, Successor, judge
from echod.memory.merge import Merged, Unmergeable, believe_removals, merge, reads_as_written, without
from echod.memory.model import Block, Document
from echod.memory.policy import ArchivedEntry, Rule
from echod.memory.redact import redact
from echod.store.changes import Overtaken, Plan, PlannedWrite, open_gate
from echod.store.commit.commit import commit
from echod.store.commit.context import Desk
from echod.store.errors import Busy
from echod.store.git import Tracking, tracking
from echod.store.healing.archives import Archived, archived, as_kept, leaving, still_forgotten
from echod.store.healing.known_states import (
    KnownDocument,
    known_document,
    known_documents,
    named,
    owed_blocks,
    reapplied_name,
    recent_consumptions,
    worn_out,
)
from echod.store.journal.journal import KnownState
from echod.store.journal.notices import Review, note
from echod.store.layout import MEMORY
from echod.store.snapshot import Snapshot, digest

log = get_logger(__name__)

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
    said = frozenset(text for state in known[:-1] for text in state.known.shape.values())
    older = said - set(known[-1].known.shape.values())
    return merge(believe_removals(known[descent.base].document, wanted, old), document, wanted, older=older)


def _repair(desk: Desk, found: Snapshot) -> Plan | None:
    """The commit that repairs the memory file; None where it is as it should be (and then it is remembered)."""
    document = desk.readings.remember(found.text)
    if document is None:
        return None  # unreadable: left alone, and never a known state
    back = _forgotten_again(desk, found, document)
    if not back:
        return _repair_lineage(desk, found, document)
    # Where the file comes from is judged without what is not to be in it.
    kept = without(document, back)
    plan = _repair_lineage(desk, found, kept)
    return _without_forgotten(desk, found, kept, [(k, b) for k, b in named(document) if k in back], plan)


def _forgotten_again(desk: Desk, found: Snapshot, document: Document) -> set[Key]:
    """Entries that a person forgot and somebody put into the memory again, and that are to leave it once more."""
    state = desk.journal.newest_state()
    newest = known_document(desk, state) if state else None
    if newest is None or newest.known.image == digest(found.text):
        return set()
    there = {content(block) for block in newest.document.blocks}
    back = {key: block for key, block in named(document) if block.entry is not None and content(block) not in there}
    keys = still_forgotten(desk, back)
    keys -= _touched(newest.document, document, {key: block for key, block in back.items() if key in keys})
    if not keys:
        return set()
    if _moved_by_git(_tracking(desk), newest, found) or not reads_as_written(without(document, keys)):
        _tell(desk, [back[key] for key in keys], "stands in the memory again although it was forgotten")
        return set()
    worn = worn_out(desk, keys)
    if worn:
        _tell(desk, [back[key] for key in worn], "was forgotten, and came back each time it was taken out")
    if keys - worn:
        again = [back[key] for key in keys - worn]
        _tell(desk, again, "came back and was taken out again, since it was forgotten (echod restore brings it back)")
    return keys - worn


def _touched(before: Document, after: Document, back: Mapping[Key, Block]) -> set[Key]:
    """Those of `back` that stood in `before` and were merely touched since (layer, confidence, new evidence).

    Each entry that is not there as it was accounts for one that says the same: of two, the other one came back.
    """
    if not back:
        return set()
    unchanged = {content(block) for block in after.blocks}
    changed = Counter(likeness_of(b) for b in before.blocks if b.entry is not None and content(b) not in unchanged)
    touched: set[Key] = set()
    for key, block in back.items():
        likeness = likeness_of(block)
        if changed[likeness]:
            changed[likeness] -= 1
            touched.add(key)
    return touched


def _without_forgotten(
    desk: Desk, found: Snapshot, kept: Document, back: list[tuple[Key, Block]], plan: Plan | None
) -> Plan:
    """The repair of the rest, if there is one, and the forgotten entries taken out with it.

    What such an entry says beyond what was archived of it, as new evidence, is archived too.
    """
    writes = plan.writes if plan else ()
    old = archived(desk)
    new = [block.text for _, block in back if content(block) not in old]
    return Plan(
        None,
        "heal",
        "; ".join(["took out again what a person had forgotten", *([plan.summary] if plan else [])]),
        writes or (PlannedWrite(desk.ground.path_of(MEMORY), found.data, kept.render()),),
        (*(plan.appends if plan else ()), *leaving(desk, new, "came back after it was forgotten")),
        reapplied=(*(plan.reapplied if plan else ()), *(reapplied_name(key) for key, _ in back)),
    )


def _repair_lineage(desk: Desk, found: Snapshot, document: Document) -> Plan | None:
    """The commit that repairs what a stale writer did; `document` is what counts of the file that was found."""
    image = digest(document.render())
    state = desk.journal.newest_state()
    newest = known_document(desk, state) if state else None
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
    data = document.render()
    if not isinstance(descent, Successor):
        merged = brought_in_line(descent, document, known, kept_out, old)
        if isinstance(merged, Unmergeable):
            return _give_to_person(desk, found, known[-1], gone, merged)
        data, lost = merged.data, [*lost, *merged.lost]
    owed = owed_blocks(desk, data, old)
    if owed:
        healed = desk.readings.remember(data) or document
        repaid = _with_owed(healed, tuple(owed.values()))
        data = repaid.data if isinstance(repaid, Merged) else data
    lost = [text for text in lost if text.rstrip() not in old]
    if data == document.render():
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


def _with_owed(healed: Document, owed: tuple[Block, ...]) -> Merged | Unmergeable:
    """The owed blocks at the end. One that is the last but half-written is completed; the others are no versions."""
    standing = healed.blocks
    if standing and any(half_written(standing[-1], block) for block in owed):
        standing = standing[:-1]
    return merge(Document(healed.preamble, standing), healed, Document(healed.preamble, (*standing, *owed)))


def _why(descent: Stale | Crossed) -> str:
    return descent.why.value if isinstance(descent, Stale) else "young blocks were gone"


def _respect(
    desk: Desk, found: Snapshot, newest: KnownDocument, gone: tuple[Key, ...], kind: str, what: str
) -> Plan | None:
    """A person's doing: keep the text of what went with it, tell, and take the file as it is."""
    if not gone:
        return _keep(desk, found, [])
    old = archived(desk)
    lost = [(own, b) for own, k, b in _identified(desk, newest) if k in set(gone) and content(b) not in old]
    _note(desk, kind, f"left the memory because {what}; the text is in the archive", newest, gone)
    return _keep(desk, found, _left(desk, found, lost))


def _give_to_person(
    desk: Desk, found: Snapshot, newest: KnownDocument, gone: set[Key], problem: Unmergeable
) -> Plan | None:
    _note(desk, "unmergeable", f"could not be put back ({problem.reason}); the text is in the archive", newest, gone)
    return _keep(desk, found, _left(desk, found, [(i, b) for i, k, b in _identified(desk, newest) if k in gone]))


def _identified(desk: Desk, state: KnownDocument) -> Iterator[tuple[str | None, Key, Block]]:
    ids = entry_ids(desk.ground.role.name, state.document)
    return ((own, key, block) for own, (key, block) in zip(ids, named(state.document), strict=True))


def _left(desk: Desk, found: Snapshot, gone: list[tuple[str | None, Block]]) -> list[str | ArchivedEntry]:
    document = desk.readings.remember(found.text)
    return [b.text for _, b in gone] if document is None else as_kept(desk, gone, document, Rule.LEFT)


def _keep(desk: Desk, found: Snapshot, gone: Sequence[str | ArchivedEntry]) -> Plan | None:
    _remember(desk, found)
    added = leaving(desk, gone, "left the memory")
    return Plan(None, "keep", "kept the text of entries that left the memory", appends=added) if added else None


def _remember(desk: Desk, found: Snapshot) -> None:
    """Make what stands there the newest known state."""
    state = desk.journal.newest_state()
    image, head = digest(found.text), head_of(desk)
    if state and (state.image, state.head) == (image, head):
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
    _add_review(desk, kind, titles, what)


def _tell(desk: Desk, blocks: Iterable[Block], what: str) -> None:
    _add_review(desk, "forgotten", tuple(map(heading, blocks)), what)


def _add_review(desk: Desk, kind: str, titles: tuple[str, ...], what: str) -> None:
    role, titles = desk.ground.role.name, tuple(redact(title).text for title in titles)
    note(desk.journal.root, Review(desk.clock(), kind, role, f"{_some(titles)} {what}.", titles))
    log.info("review_noted", role=str(desk.ground.role.path), kind=kind, blocks=len(titles))


def _some(titles: tuple[str, ...]) -> str:
    first, *others = titles or ("Something",)
    return repr(first.lstrip("# ")) + (f" and {len(others)} more" if others else "")


def remember_absence(desk: Desk, plan: Plan) -> None:
    """Make it the newest known state that there is no memory file, if the plan took it away."""
    if any(consume.path == desk.ground.path_of(MEMORY) for consume in plan.consumes):
        absent = KnownState(desk.journal.images.put(b""), desk.moment(), head_of(desk))
        desk.journal.note_states([absent])

"""Reconcile the memory file with its known states before anything is planned from it.

A stale writer's overwrite is repaired by a commit of its own. A change of the user's is accepted and recorded as the
newest state. If it could have been a mistake, a notice is added for review and the text is kept in the archive.

If echod itself removed the memory file, `record_deletion` makes its absence the newest state, so that it is not taken
for the user's change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from echod.files import content_digest
from echod.log import get_logger
from echod.memory.archive import ArchivedEntry
from echod.memory.document import round_trips
from echod.memory.entry_matching import entry_signature
from echod.memory.identity import BlockKey, block_content, block_heading, entry_ids, is_truncated
from echod.memory.lineage import CurrentVersion, InterleavedWrite, Reversion, StaleWrite, Successor, SuspectedStaleWrite
from echod.memory.merge import MergeFailure, MergeResult, merge, restrict_removals, without_blocks
from echod.memory.model import Block, Document
from echod.memory.policy_model import Rule
from echod.memory.redact import redact
from echod.store.changes import CommitConflict, CommitPlan, PlannedWrite, no_gate
from echod.store.commit.commit import commit
from echod.store.commit.context import CommitContext
from echod.store.errors import MAX_MERGE_ATTEMPTS, BusyError
from echod.store.fs import Snapshot
from echod.store.git import TrackedFile, find_tracked_file
from echod.store.healing.recovery import (
    ArchiveContents,
    KnownDocument,
    archive_appends,
    archive_entries,
    blocks_to_restore,
    classify_known_descent,
    forgotten_keys,
    keyed_blocks,
    load_newest_state,
    read_archives,
    recent_states,
    recently_consumed,
    restore_key,
    restored_too_often,
)
from echod.store.journal.journal import KnownState
from echod.store.journal.ledger import Notice, add_notice
from echod.store.layout import MEMORY

log = get_logger(__name__)


def read_healed_memory(context: CommitContext) -> Snapshot:
    """Read the memory file, and repair it first if a stale writer overwrote it. The result becomes a known state.

    `BusyError` if it is being written, or was emptied a moment ago.
    """
    path = context.memory_path
    for attempt in range(2 * MAX_MERGE_ATTEMPTS):
        snapshot = context.read(path)
        plan = _plan_repair(context, snapshot)
        if plan is None:
            return snapshot
        # Programs that write without pause must not starve the repair. Displaced files are merged then.
        forced_paths = frozenset({path}) if attempt >= context.limits.max_replans else frozenset()
        result = commit(context, plan, gate=no_gate, head=git_head(context), forced_paths=forced_paths)
        if isinstance(result, CommitConflict):
            continue
        log.info("memory_healed", role=str(context.role.path), reason=plan.summary, blocks=len(plan.restored_blocks))
    raise BusyError(f"{MEMORY} is overwritten again and again by another program.")


def record_deletion(context: CommitContext, plan: CommitPlan) -> None:
    """Record the absence of the memory file as the newest known state, if the plan removed the file."""
    if any(consume.path == context.memory_path for consume in plan.consumes):
        digest = context.journal.blobs.put(b"")
        absent = KnownState(digest, context.next_timestamp(), git_head(context), context.clock())
        context.journal.record_states([absent])


def git_head(context: CommitContext) -> str | None:
    """Return git HEAD if a repository tracks the memory file, else None."""
    tracked = _tracked_file(context)
    return tracked.head if tracked else None


def reconcile_with_known(
    descent: StaleWrite | InterleavedWrite,
    document: Document,
    known: tuple[KnownDocument, ...],
    excluded: set[BlockKey],
    archives: ArchiveContents,
) -> MergeResult | MergeFailure:
    """Merge into `document` the blocks of the newest known state that its writer had not read, except `excluded`."""
    newest = known[-1].document
    target = without_blocks(newest, excluded)
    if isinstance(descent, InterleavedWrite):
        return merge(without_blocks(newest, set(descent.missing)), document, target)
    older_texts = frozenset(text for state in known[:-1] for text in state.version.texts.values())
    older = older_texts - set(known[-1].version.texts.values())
    return merge(restrict_removals(known[descent.base].document, target, archives), document, target, older_texts=older)


def _plan_repair(context: CommitContext, snapshot: Snapshot) -> CommitPlan | None:
    """Plan the commit that repairs the memory file, or return None and record its state if it needs no repair."""
    document = context.cache.parse_document(snapshot.text)
    if document is None:
        return None  # unreadable: not changed, and never a known state
    reappeared = _find_reappeared(context, snapshot, document)
    if not reappeared:
        return _plan_lineage_repair(context, snapshot, document)
    # The lineage of the file is judged without the blocks that must not be in it.
    remaining = without_blocks(document, reappeared)
    plan = _plan_lineage_repair(context, snapshot, remaining)
    removed = [(key, block) for key, block in keyed_blocks(document) if key in reappeared]
    return _plan_without_forgotten(context, snapshot, remaining, removed, plan)


def _find_reappeared(context: CommitContext, snapshot: Snapshot, document: Document) -> set[BlockKey]:
    """Return the forgotten entries that another program added to the memory again, and that must be removed again."""
    newest = load_newest_state(context)
    if newest is None or newest.version.content_hash == content_digest(snapshot.text):
        return set()
    known_contents = {block_content(block) for block in newest.document.blocks}
    new = {k: b for k, b in keyed_blocks(document) if b.entry is not None and block_content(b) not in known_contents}
    keys = forgotten_keys(context, new)
    keys -= _edited_in_place(newest.document, document, {key: block for key, block in new.items() if key in keys})
    if not keys:
        return set()
    if _changed_by_git(_tracked_file(context), newest, snapshot) or not round_trips(without_blocks(document, keys)):
        _notify_forgotten(context, [new[key] for key in keys], "is in the memory again although it was forgotten")
        return set()
    exhausted = restored_too_often(context, keys)
    if exhausted:
        text = "was forgotten, and came back each time it was removed"
        _notify_forgotten(context, [new[key] for key in exhausted], text)
    if keys - exhausted:
        text = "came back and was removed again, since it was forgotten (echod restore brings it back)"
        _notify_forgotten(context, [new[key] for key in keys - exhausted], text)
    return keys - exhausted


def _edited_in_place(before: Document, after: Document, reappeared: Mapping[BlockKey, Block]) -> set[BlockKey]:
    """Return those of `reappeared` that were in `before` and were only edited (layer, confidence, new evidence).

    Each entry that is no longer there unchanged accounts for one with the same text: of two, the other one came back.
    """
    if not reappeared:
        return set()
    unchanged = {block_content(block) for block in after.blocks}
    old = [block for block in before.blocks if block.entry is not None and block_content(block) not in unchanged]
    changed = Counter(map(entry_signature, old))
    edited: set[BlockKey] = set()
    for key, block in reappeared.items():
        signature = entry_signature(block)
        if changed[signature]:
            changed[signature] -= 1
            edited.add(key)
    return edited


def _plan_without_forgotten(
    context: CommitContext,
    snapshot: Snapshot,
    remaining: Document,
    reappeared: list[tuple[BlockKey, Block]],
    plan: CommitPlan | None,
) -> CommitPlan:
    """Add the removal of forgotten entries to the repair of the other blocks, if there is one.

    Text of such an entry that the archives do not contain, such as new evidence, is archived too.
    """
    archives, summary = read_archives(context), "removed entries again that the user had forgotten"
    new = [block.text for _, block in reappeared if block_content(block) not in archives]
    appends = archive_appends(context, new, "came back after it was forgotten")
    writes: tuple[PlannedWrite, ...] = (PlannedWrite(context.memory_path, snapshot.data, remaining.render()),)
    restored = tuple(restore_key(key) for key, _ in reappeared)
    if plan is not None:
        summary, writes = f"{summary}; {plan.summary}", plan.writes or writes
        appends, restored = plan.appends + appends, plan.restored_blocks + restored
    return CommitPlan(None, "heal", summary, writes, appends, restored_blocks=restored)


def _plan_lineage_repair(context: CommitContext, snapshot: Snapshot, document: Document) -> CommitPlan | None:
    """Plan the repair of a stale overwrite. `document` is the part of the file on disk that counts."""
    digest = content_digest(document.render())
    newest = load_newest_state(context)
    if newest is not None and (
        digest == newest.version.content_hash or _contains_newest(context, digest, document, newest)
    ):
        return _restore_overwritten(context, snapshot, document, Successor(), (newest,))
    known = recent_states(context)
    if not known:
        _record_state(context, snapshot)
        return None
    newest = known[-1]
    if not snapshot.text.strip() and newest.document.blocks:
        _wait_if_just_emptied(context, snapshot)
        missing = tuple(newest.version.texts)
        return _accept_user_change(context, snapshot, newest, missing, "emptied", "the file was emptied")
    tracked = _tracked_file(context)
    mtime = _changed_at(snapshot)
    texts = context.cache.shape(digest, document)
    descent = classify_known_descent(context, CurrentVersion(digest, mtime, texts), known)
    if not isinstance(descent, Successor) and _changed_by_git(tracked, newest, snapshot):
        missing = tuple(key for key in newest.version.texts if key not in texts)
        kind, cause = "git", "git put another version in its place"
    elif isinstance(descent, Reversion):
        missing, kind, cause = descent.missing, "reverted", "an earlier version was put back"
    elif isinstance(descent, SuspectedStaleWrite):
        missing, kind, cause = descent.missing, "doubtful", "an edit removed entries that echod had added"
    else:
        return _restore_overwritten(context, snapshot, document, descent, known)
    return _accept_user_change(context, snapshot, newest, missing, kind, cause)


def find_missing_blocks(context: CommitContext) -> tuple[str, ...]:
    """Return the headings of the blocks that another program removed, and that nothing has looked at since. Read-only.

    They are those that `read_healed_memory` would restore, or report to the user. `BusyError` if the file is being
    written.
    """
    snapshot = context.read(context.memory_path)
    document, newest = context.cache.parse_document(snapshot.text), load_newest_state(context)
    if document is None or newest is None:
        return ()
    digest, changed_at = content_digest(document.render()), _changed_at(snapshot)
    if digest == newest.version.content_hash or _contains_newest(context, digest, document, newest):
        return ()
    known = recent_states(context)
    version = CurrentVersion(digest, changed_at, context.cache.shape(digest, document))
    descent = classify_known_descent(context, version, known)
    missing = () if isinstance(descent, Successor) else descent.missing
    return tuple(block_heading(block) for key, block in keyed_blocks(newest.document) if key in set(missing))


def _changed_at(snapshot: Snapshot) -> float | None:
    """Return when the file was changed (Unix seconds); None if it does not exist."""
    return snapshot.mtime_ns / 1e9 if snapshot.mtime_ns else None


def _contains_newest(context: CommitContext, digest: str, document: Document, newest: KnownDocument) -> bool:
    """Return whether every block of the newest state is still there, unchanged: the usual case, quickly recognized."""
    texts = context.cache.shape(digest, document)
    return all(texts.get(key) == text for key, text in newest.version.texts.items())


def _restore_overwritten(
    context: CommitContext,
    snapshot: Snapshot,
    document: Document,
    descent: Successor | StaleWrite | InterleavedWrite,
    known: tuple[KnownDocument, ...],
) -> CommitPlan | None:
    missing = set() if isinstance(descent, Successor) else set(descent.missing)
    excluded = restored_too_often(context, missing)
    if excluded:
        text = "was restored several times and overwritten again"
        _notify_keys(context, "restored-too-often", text, known[-1], excluded)
    lost = [b.text for k, b in keyed_blocks(known[-1].document) if k in excluded]
    is_ordinary = isinstance(descent, Successor) and not recently_consumed(context)
    archives = ArchiveContents("") if is_ordinary else read_archives(context)
    data = document.render()
    if not isinstance(descent, Successor):
        merged = reconcile_with_known(descent, document, known, excluded, archives)
        if isinstance(merged, MergeFailure):
            return _leave_to_user(context, snapshot, known[-1], missing, merged)
        data, lost = merged.data, [*lost, *merged.overridden]
    to_restore = blocks_to_restore(context, data, archives)
    if to_restore:
        healed = context.cache.parse_document(data) or document
        restored = _append_blocks(healed, tuple(to_restore.values()))
        data = restored.data if isinstance(restored, MergeResult) else data
    lost = [text for text in lost if text.rstrip() not in archives]
    if data == document.render():
        return _accept_version(context, snapshot, lost)
    restored_keys = tuple(map(restore_key, sorted((missing - excluded) | set(to_restore))))
    cause = "young blocks were missing"
    if not isinstance(descent, InterleavedWrite):
        cause = "blocks that were consumed moments ago" if isinstance(descent, Successor) else descent.reason.value
    writes = (PlannedWrite(context.memory_path, snapshot.data, data),)
    appends = archive_appends(context, lost, "replaced by another edit")
    summary = f"restored entries that another program overwrote: {cause}"
    return CommitPlan(None, "heal", summary, writes, appends, restored_blocks=restored_keys)


def _append_blocks(healed: Document, to_restore: tuple[Block, ...]) -> MergeResult | MergeFailure:
    """Add the blocks at the end. A half-written last block is completed, and the others are new blocks."""
    present = healed.blocks
    if present and any(is_truncated(present[-1], block) for block in to_restore):
        present = present[:-1]
    return merge(Document(healed.preamble, present), healed, Document(healed.preamble, (*present, *to_restore)))


def _accept_user_change(
    context: CommitContext,
    snapshot: Snapshot,
    newest: KnownDocument,
    missing: tuple[BlockKey, ...],
    kind: str,
    cause: str,
) -> CommitPlan | None:
    """Accept the file as the user changed it, archive the removed text and add a notice."""
    if not missing:
        return _accept_version(context, snapshot, [])
    archives = read_archives(context)
    lost = [(i, b) for i, b in _identify_blocks(context, newest, set(missing)) if block_content(b) not in archives]
    _notify_keys(context, kind, f"left the memory because {cause}; the text is in the archive", newest, missing)
    return _accept_version(context, snapshot, _archived_form(context, snapshot, lost))


def _leave_to_user(
    context: CommitContext, snapshot: Snapshot, newest: KnownDocument, missing: set[BlockKey], problem: MergeFailure
) -> CommitPlan | None:
    text = f"could not be restored ({problem.reason}); the text is in the archive"
    _notify_keys(context, "unmergeable", text, newest, missing)
    lost = _identify_blocks(context, newest, missing)
    return _accept_version(context, snapshot, _archived_form(context, snapshot, lost))


def _identify_blocks(
    context: CommitContext, state: KnownDocument, keys: set[BlockKey]
) -> list[tuple[str | None, Block]]:
    """Return the blocks with these keys, each with its id."""
    ids = entry_ids(context.role.name, state.document)
    return [(i, block) for i, (key, block) in zip(ids, keyed_blocks(state.document), strict=True) if key in keys]


def _archived_form(
    context: CommitContext, snapshot: Snapshot, removed: list[tuple[str | None, Block]]
) -> list[str | ArchivedEntry]:
    document = context.cache.parse_document(snapshot.text)
    if document is None:
        return [block.text for _, block in removed]
    return archive_entries(context, removed, document, Rule.REMOVED_EXTERNALLY)


def _accept_version(
    context: CommitContext, snapshot: Snapshot, removed: Sequence[str | ArchivedEntry]
) -> CommitPlan | None:
    _record_state(context, snapshot)
    appends = archive_appends(context, removed, "left the memory")
    summary = "archived the text of entries that left the memory"
    return CommitPlan(None, "archive", summary, appends=appends) if appends else None


def _record_state(context: CommitContext, snapshot: Snapshot) -> None:
    """Record the content on disk as the newest known state."""
    state = context.journal.newest_state()
    digest, head = content_digest(snapshot.text), git_head(context)
    if state and (state.digest, state.head) == (digest, head):
        return
    context.journal.blobs.put(snapshot.text)
    context.journal.record_states([KnownState(digest, context.next_timestamp(), head, context.clock())])


def _wait_if_just_emptied(context: CommitContext, snapshot: Snapshot) -> None:
    """Raise if the file was emptied just now: a program that truncates or renames it first writes moments later."""
    changed = snapshot.mtime_ns / 1e9 if snapshot.data is not None else context.directory.root.path.stat().st_mtime
    if 0 <= context.clock() - changed < context.limits.settle_seconds:
        raise BusyError(f"{MEMORY} was emptied a moment ago; another program may be about to write it.")


def _tracked_file(context: CommitContext) -> TrackedFile | None:
    return find_tracked_file(context.role.store.project, context.role.memory)


def _changed_by_git(tracked: TrackedFile | None, newest: KnownDocument, snapshot: Snapshot) -> bool:
    return tracked is not None and (tracked.head != newest.head or tracked.is_staged_as(snapshot.text))


def _notify_keys(context: CommitContext, kind: str, text: str, newest: KnownDocument, keys: Iterable[BlockKey]) -> None:
    removed = _identify_blocks(context, newest, set(keys))
    entries = tuple(identity for identity, _ in removed if identity is not None)
    _add_notice(context, kind, tuple(block_heading(block) for _, block in removed), text, entries)


def _notify_forgotten(context: CommitContext, blocks: Iterable[Block], text: str) -> None:
    _add_notice(context, "forgotten", tuple(map(block_heading, blocks)), text)


def _add_notice(
    context: CommitContext, kind: str, titles: tuple[str, ...], text: str, entries: tuple[str, ...] = ()
) -> None:
    titles = tuple(redact(title).text for title in titles)
    first, *others = titles or ("Something",)
    subject = repr(first.lstrip("# ")) + (f" and {len(others)} more" if others else "")
    notice = Notice(context.clock(), kind, context.role.name, f"{subject} {text}.", titles, entries)
    add_notice(context.journal.root, notice)
    log.info("notice_added", role=str(context.role.path), kind=kind, blocks=len(titles))


def overwritten_notice(role: str, titles: tuple[str, ...], at: float) -> Notice:
    """Return the notice about entries that are missing now. It is not stored: it ends when the file is read again."""
    first, *others = (redact(title).text.lstrip("# ") for title in titles)
    subject = f"{first!r}" + (f" and {len(others)} more" if others else "")
    text = (
        f"{subject} vanished when another program wrote the file. echod restores what was overwritten as soon as no "
        "workflow runs (echod run --once does it at once); its text is kept."
    )
    return Notice(at, "overwritten", role, text, tuple(redact(title).text for title in titles))

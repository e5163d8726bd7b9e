"""The sync job of one role: merge the files that another machine pushed into those on the disk, as one commit.

Archives become the union of both. Memory and knowledge are merged by entry. An entry that both machines rewrote gets
the newer text, since a memory with conflict markers would be of no use to agents, and the other text goes to the
archive. So does each text that the other machine removed. An entry that one machine forgot stays out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    Proposal,
    plan_and_commit,
    removed_archive_sizes,
    role_path,
)
from echod.memory import KNOWLEDGE_FILE, MEMORY_FILE
from echod.memory.archive import (
    REMOVED_STEM,
    forgotten_only_in,
    render_archived_entries,
    select_archive_file,
    to_archived_entry,
    without_forgotten,
)
from echod.memory.branches import merge_branches, unite_archives
from echod.memory.conservation import find_whole_lines
from echod.memory.document import parse
from echod.memory.identity import block_content, block_key, entry_ids
from echod.memory.merge import MergeFailure
from echod.memory.model import Document, Unreadable
from echod.memory.policy_model import Rule
from echod.memory.redact import redact_entry, strip_secrets
from echod.state.jobs import JobKind
from echod.store.changes import ChangeSet, Origin, Write
from echod.store.engine import RoleView
from echod.store.fs import Snapshot
from echod.store.layout import ARCHIVE

_REASON = "replaced by an edit on another machine"


class Incoming(NamedTuple):
    """The files of a role by their names in it: at the last exchange with the remote, and in the remote now."""

    base: Mapping[str, bytes]
    remote: Mapping[str, bytes]


class _Merged(NamedTuple):
    """A file after the merge, and what must go to the archive: records, and texts that lost."""

    data: bytes
    records: bytes = b""
    texts: tuple[str, ...] = ()


class _LeftAloneError(Exception):
    """A file cannot be merged; the text is the reason."""


def run(context: JobContext, incoming: Incoming) -> JobOutcome:
    """Merge what came in. A file that cannot be merged blocks the job, so that nothing is pushed over it."""

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        files = {name: _read(context, view, name) for name in incoming.remote}
        try:
            after = _merge_files(context, incoming, files, today)
        except _LeftAloneError as error:
            return JobBlocked(str(error))
        changed = [name for name, data in after.items() if name not in files or files[name].data != data]
        if not changed:
            return JobDone("nothing new", changed=False)
        files |= {name: _read(context, view, name) for name in changed if name not in files}
        writes = tuple(Write(role_path(view, name), _digest(files[name]), after[name]) for name in sorted(changed))
        summary = f"{', '.join(sorted(changed))} merged with the remote"
        return Proposal(ChangeSet(JobKind.SYNC.value, view.role.name, summary, writes, origin=Origin.USER))

    return plan_and_commit(context, planner)


def _digest(file: Snapshot) -> str | None:
    return None if file.data is None else file.digest


def _read(context: JobContext, view: RoleView, name: str) -> Snapshot:
    if name == MEMORY_FILE:
        return view.memory
    if name == KNOWLEDGE_FILE:
        if view.knowledge is None:
            raise _LeftAloneError(f"{name} cannot be read")
        return view.knowledge
    return context.session.read_file(name)


def _merge_files(
    context: JobContext, incoming: Incoming, files: Mapping[str, Snapshot], today: date
) -> dict[str, bytes]:
    after = {
        name: unite_archives(files[name].text, remote)
        for name, remote in incoming.remote.items()
        if name not in (MEMORY_FILE, KNOWLEDGE_FILE)
    }
    local = removed_archive_sizes(context.session.role)
    here = [context.session.read_file(f"{ARCHIVE}/{name}").text for name in sorted(local, key=_by_number)]
    prefix = f"{ARCHIVE}/{REMOVED_STEM}-"
    there = [incoming.remote[name] for name in sorted(after, key=_by_number) if name.startswith(prefix)]
    # Only archives that change prove to the commit that a text is not lost.
    changed = (data for name, data in after.items() if data != files[name].text)
    known = "\n".join(data.decode(errors="replace").replace("\r\n", "\n") for data in changed)
    records, texts = b"", list[str]()
    for name in (MEMORY_FILE, KNOWLEDGE_FILE):
        if name not in incoming.remote:
            continue
        merged = _merge_file(context.session.role.name, name, incoming, files[name], (here, there), today)
        after[name] = merged.data
        records += merged.records if merged.records.strip() else b""
        texts += merged.texts
    candidates = dict.fromkeys(text for text in map(_archived_form, texts) if text)
    present = find_whole_lines(known, candidates.keys())
    lost = [text for text in candidates if text not in present]
    addition = b"".join(f"\n<!-- echod: {_REASON}, {today.isoformat()} -->\n{text}\n".encode() for text in lost)
    if records or addition:
        sizes = {**local, **{name.removeprefix(f"{ARCHIVE}/"): len(data) for name, data in after.items()}}
        target = select_archive_file(today.year, sizes, len(records) + len(addition), stem=REMOVED_STEM)
        after[target] = _present(context, after, target) + records + addition
    return after


def _by_number(name: str) -> tuple[str, int, str]:
    """Order archives as they were written: `removed-2026.md`, `removed-2026-2.md`, `removed-2026-10.md`."""
    year = name.partition(f"{REMOVED_STEM}-")[2][:4]
    return year, len(name), name


def _present(context: JobContext, after: Mapping[str, bytes], name: str) -> bytes:
    return after[name] if name in after else context.session.read_file(name).text


def _archived_form(text: str) -> str:
    return redact_entry(text).text.replace("\r\n", "\n").strip()


def _merge_file(
    role: str, name: str, incoming: Incoming, file: Snapshot, archives: tuple[list[bytes], list[bytes]], today: date
) -> _Merged:
    remote, base = strip_secrets(incoming.remote[name], include_protected=True), incoming.base.get(name, b"")
    forgotten_here = forgotten_only_in(*archives) if name == MEMORY_FILE else set()
    forgotten_there = forgotten_only_in(archives[1], archives[0]) if name == MEMORY_FILE else set()
    if file.data is None:
        if not forgotten_here:
            return _Merged(remote)
    elif remote == file.text or (remote == base and not forgotten_there):
        return _Merged(file.text)
    branches = merge_branches(base, file.text, remote)
    if isinstance(branches, MergeFailure):
        raise _LeftAloneError(f"{name} of the role {role} cannot be merged: {branches.reason}")
    is_older = file.data is None or file.text == base
    data, overridden = (remote, ()) if is_older else branches.with_newer()
    here, there, after = (_readable(name, text) for text in (file.text, remote, data))
    kept = without_forgotten(without_forgotten(after, here, forgotten_here), there, forgotten_there)
    if kept != after:
        remaining = Counter(map(block_content, kept.blocks))
        # Also the text that only the remote has: someone wrote it after the entry was forgotten here.
        overridden += tuple(b.text for b in after.blocks if not _take(remaining, block_content(b)))
        data, after = kept.render(), kept
    return _archive_losses(role, name, (here, after), data, overridden, today)


def _take(counts: Counter[str], key: str) -> bool:
    """Count one less of a key, and return whether there was one."""
    counts[key] -= 1
    return counts[key] >= 0


def _readable(name: str, data: bytes) -> Document:
    document = parse(data)
    if isinstance(document, Unreadable):
        raise _LeftAloneError(f"{name} is left alone: {document.reason}")
    return document


def _archive_losses(
    role: str, name: str, change: tuple[Document, Document], data: bytes, overridden: tuple[str, ...], today: date
) -> _Merged:
    """Return the file, with the blocks that are here and not in it for the archive."""
    before, after = change
    contents = {block_content(block) for block in after.blocks}
    learnings = {(block_key(block), block.body.strip()) for block in after.blocks if block.entry}
    ids = set(entry_ids(role, after))
    records, texts = [], list(overridden)
    for entry_id, block in zip(entry_ids(role, before), before.blocks, strict=True):
        is_kept = block.entry is not None and (block_key(block), block.body.strip()) in learnings
        if is_kept or block_content(block) in contents:
            continue
        if entry_id is None or entry_id in ids:
            texts.append(block.text)
        else:
            records.append(to_archived_entry(block, entry_id, role, Rule.REMOVED_EXTERNALLY, today, file=name))
    if before.preamble.strip() != after.preamble.strip():
        texts.append(before.preamble)
    return _Merged(data, render_archived_entries(records, None), tuple(texts))


def role_files(paths: Mapping[str, bytes], role_root: PurePosixPath) -> dict[str, bytes]:
    """Return the files of a role, by their names in it, from those of a tree by their paths."""
    prefix = f"{role_root}/"
    return {path.removeprefix(prefix): data for path, data in paths.items() if path.startswith(prefix)}

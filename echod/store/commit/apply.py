"""Doing what a record intends; also the redo of recovery, so every step looks first whether it was done.

archive, exchange, note absorptions, claim findings, mark as applied

Telling the upstream search index that memory changed. It takes the file away itself; we only ever touch it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from echod.log import get_logger
from echod.store.commit import file_steps
from echod.store.commit.context import Desk
from echod.store.commit.file_steps import write_stage
from echod.store.commit.prepare import drop_stages
from echod.store.commit.steps import Step
from echod.store.errors import fault
from echod.store.fs import Dir, make_dir, open_dir
from echod.store.journal.records import Absorption, Record, RecordState, WriteRecord
from echod.store.layout import DIRTY, MEMORY, Store, commons_of

_INDEX = ".search-index.db"
_SIGNALS = ".rune-signals"
_DIRTY = ".echo-dirty"


def mark_dirty(store: Store) -> None:
    """Touch `tmp/.rune-signals/.echo-dirty` where somebody listens: an index in the store, or a signal directory.

    The global store has a signal of its own, which is always given. Best effort: without it the index is merely
    older than the memory.
    """
    if (commons := commons_of(store)) is not None:
        with suppress(OSError), open_dir(store.project, commons) as home:
            _touch(home, DIRTY)
        return
    listened_to = (store.root / _INDEX).exists() or _is_dir(store.project / "tmp" / _SIGNALS)
    if not listened_to:
        return
    try:
        with open_dir(store.project, ("tmp",)) as tmp:
            make_dir(tmp, _SIGNALS, 0o777)
            with tmp.below(_SIGNALS) as signals:
                _touch(signals, _DIRTY)
    except OSError:
        return  # no `tmp`, or something odd in its place: then nobody listens there


def _touch(directory: Dir, name: str) -> None:
    fd = directory.open(name, os.O_WRONLY | os.O_CREAT)
    os.utime(fd)
    os.close(fd)


def _is_dir(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


log = get_logger(__name__)


def apply(desk: Desk, record: Record) -> Record:
    """Do, or finish, what a record intends. Idempotent.

    Raises:
        StoreFault: the file system failed; if nothing visible had changed yet, the record was taken back.
    """
    try:
        record = _apply(desk, record)
    except OSError as error:
        _give_up_or_park(desk, record, error)
    done = replace(record, state=RecordState.APPLIED)
    desk.journal.save(done)
    # Nobody asks for those in archives, which get new files for ever.
    archives = desk.ground.path_of("archive/")
    own = (write for write in done.writes if write.mtime_ns and not write.path.startswith(archives))
    desk.journal.note_own({write.path: write.mtime_ns for write in own})
    if done.writes or any(claimed.path.rpartition("/")[2] == MEMORY for claimed in done.consumes):
        mark_dirty(desk.ground.role.store)
    desk.trace(Step.APPLIED)
    return done


def _apply(desk: Desk, record: Record) -> Record:
    _archive(desk, record)
    desk.trace(Step.ARCHIVED)
    for write in record.writes:
        record = record.with_write(_publish(desk, record, write))
    for absorbed in record.absorbs:
        note_absorption(desk, absorbed)
    for claimed in record.consumes:
        directory, name = desk.ground.place(claimed.path)
        file_steps.claim(directory, name, claimed)
        desk.trace(Step.CLAIMED)
    if record.consumes:
        desk.ground.home.sync()
        desk.trace(Step.CLAIMS_SYNCED)
    return record


def _archive(desk: Desk, record: Record) -> None:
    directories = {}
    for added in record.appends:
        directory, name = desk.ground.place(added.path)
        file_steps.append(directory, name, desk.journal.images.get(added.image), added.offset)
        directories[directory.fd] = directory
    for directory in directories.values():
        directory.sync()


def _publish(desk: Desk, record: Record, write: WriteRecord) -> WriteRecord:
    directory, name = desk.ground.place(write.path)
    if file_steps.publish(directory, name, write, desk.trace) is file_steps.Published.STAGE_LOST:
        write = _restage(desk, record, write)
    found = directory.stat(name)
    ours = found is not None and found.st_ino == write.inode
    return replace(write, mtime_ns=found.st_mtime_ns if found is not None and ours else 0)


def _restage(desk: Desk, record: Record, write: WriteRecord) -> WriteRecord:
    """Someone tidied our stage away. If the target is still the old one, stage again; else lineage decides later."""
    directory, name = desk.ground.place(write.path)
    before = None if write.pre is None else desk.journal.images.get(write.pre)
    if desk.read(write.path).data != before:
        return write
    inode = write_stage(directory, write.stage, desk.journal.images.get(write.post), name)
    directory.sync()
    write = replace(write, inode=inode)
    desk.journal.save(record.with_write(write))
    file_steps.publish(directory, name, write, desk.trace)
    return write


def note_absorption(desk: Desk, absorbed: Absorption) -> None:
    """Write into the older record what of its displaced or claimed file is merged now."""
    for older in desk.journal.open_records():
        if older.seq != absorbed.seq:
            continue
        for write in older.writes:
            if write.stage == absorbed.file:
                desk.journal.save(older.with_write(replace(write, absorbed=absorbed.digest)))
        for claimed in older.consumes:
            if claimed.claim == absorbed.file:
                desk.journal.save(older.with_consume(replace(claimed, absorbed=absorbed.digest)))
        desk.trace(Step.ABSORPTION_NOTED)


def _give_up_or_park(desk: Desk, record: Record, error: OSError) -> None:
    """After a failing call: take everything back while nothing is visible, else leave the record to recovery."""
    path = desk.ground.role.path
    begun = any(not file_steps.unpublished(*desk.ground.place(w.path), w) for w in record.writes)
    begun = begun or any(desk.ground.home.inode(c.claim) is not None for c in record.consumes)
    if begun:
        log.warning("commit_parked", role=str(path), seq=record.seq, error=repr(error))
        raise fault("finish a change in", path, error) from error
    for added in record.appends:
        directory, name = desk.ground.place(added.path)
        file_steps.take_back(directory, name, desk.journal.images.get(added.image), added.offset)
    drop_stages(desk, record)
    desk.journal.forget(record)
    log.warning("commit_taken_back", role=str(path), seq=record.seq, error=repr(error))
    raise fault("change", path, error) from error

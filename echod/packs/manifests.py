"""Writing manifests, which are no memory: whole or not at all, and in agreement with what was done to the pack.

A pack's file is committed first, its manifest written after it. `agree` puts right what a crash between the two, or
an undo, left behind; it goes by the lines that every commit of a pack leaves in its archive.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from echod.log import get_logger
from echod.memory.packs.manifest import Step, due_manifest, read_steps
from echod.packs.installed import manifest_path
from echod.state.job import JobKind
from echod.store.create import made
from echod.store.engine import Engine
from echod.store.errors import Refused, told
from echod.store.fs import Dir, open_dir, prepare_file
from echod.store.layout import MEMORY, Role, packs_store
from echod.store.reader import Done
from echod.store.snapshot import MAX_FILE_BYTES

STEPS = "archive/manifests.jsonl"
"""In a pack's directory: how its manifest was before and after each change."""

log = get_logger(__name__)

_FILE_MODE = 0o666


def write_manifest(home: Path, stack: str, data: bytes | None) -> None:
    """Put this manifest in place of whatever there is; None: there shall be none.

    Raises:
        Refused: something that is no plain file stands in its place.
        StoreFault: it cannot be written.
    """
    path = manifest_path(home, stack)
    with told("write", path), made(home, path.parent) as directory:
        _refuse_odd(directory, path.name)
        if data is None:
            directory.unlink(path.name)
        else:
            stage = f".{path.name}.echod"
            prepare_file(directory, stage, data, _FILE_MODE)
            os.replace(stage, path.name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
        directory.sync()


def agree(engine: Engine, home: Path) -> tuple[str, ...]:
    """Give every pack the manifest that belongs to what was done to it; the packs whose manifest was put right.

    To be called with the worker lock held. Costs next to nothing where no pack was ever changed by echod.

    Raises:
        StoreFault: something cannot be read or written.
    """
    done_to: defaultdict[str, list[Done]] = defaultdict(list)
    for done in engine.history([packs_store(home)]):
        done_to[done.role.name].append(done)
    put_right = []
    for name, own in sorted(done_to.items()):
        if _agree(home, own[0].role, own):
            log.info("manifest_put_right", pack=name)
            put_right.append(name)
    return tuple(put_right)


def _agree(home: Path, role: Role, history: Sequence[Done]) -> bool:
    texts = read_steps(_read(home, role.path, STEPS) or b"")
    steps = [
        Step(*texts[done.job], stands=_stands(done, history))
        for done in history
        if done.kind == JobKind.PACK and done.job is not None and done.job in texts
    ]
    path = manifest_path(home, role.name)
    present = _read(home, path.parent, path.name)
    text = None if present is None else present.decode(errors="replace")
    has_file = _read(home, role.path, MEMORY) is not None
    due = due_manifest(role.name, steps, text, has_file=has_file)
    if due is None:
        return False
    write_manifest(home, role.name, None if due.text is None else due.text.encode())
    return True


def _stands(done: Done, history: Sequence[Done]) -> bool:
    """Whether a commit counts: it was not undone, or its undo was."""
    undoing = next((other for other in history if done.undone_by is not None and other.job == done.undone_by), None)
    return done.undone_by is None or (undoing is not None and not _stands(undoing, history))


def _read(home: Path, directory: Path, name: str) -> bytes | None:
    """A file of the global store; None where there is none."""
    path = directory / name
    with told("read", path):
        try:
            with open_dir(home, path.parent.relative_to(home).parts) as opened:
                return opened.read(path.name, MAX_FILE_BYTES)
        except FileNotFoundError:
            return None


def _refuse_odd(directory: Dir, name: str) -> None:
    found = directory.stat(name)
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise Refused(f"{directory.path / name} is no plain file, so it is left alone; look at that path.")

"""Write the manifests of packs, and keep them consistent with the history of each pack.

A manifest is written whole or not at all. A pack's file is committed first, its manifest written after it.
`sync_manifests` repairs what a crash between the two, or an undo, left behind. It uses the lines that every commit of a
pack leaves in its archive.
"""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from echod.log import get_logger
from echod.memory.model import MAX_FILE_BYTES
from echod.memory.packs.manifest import ManifestChange, expected_manifest, read_manifest_changes
from echod.packs.installed import manifest_path
from echod.state.job import JobKind
from echod.store.create import ensure_directory
from echod.store.engine import Engine
from echod.store.errors import RefusedError, as_store_error
from echod.store.fs import Dir, create_durable_file, open_dir
from echod.store.layout import MEMORY, Role, packs_store
from echod.store.reader import CommitInfo

MANIFEST_CHANGES_FILE = "archive/manifests.jsonl"
"""In a pack's directory: its manifest before and after each change."""

log = get_logger(__name__)

_FILE_MODE = 0o666


def write_manifest(claude_home: Path, stack: str, data: bytes | None) -> None:
    """Replace a pack's manifest, or delete it without `data`.

    Raises:
        RefusedError: its path is taken by something that is not a regular file.
        StoreError: it cannot be written.
    """
    path = manifest_path(claude_home, stack)
    with as_store_error("write", path), ensure_directory(claude_home, path.parent) as directory:
        _require_regular_file(directory, path.name)
        if data is None:
            directory.unlink(path.name)
        else:
            temporary_name = f".{path.name}.echod"
            create_durable_file(directory, temporary_name, data, _FILE_MODE)
            os.replace(temporary_name, path.name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
        directory.sync()


def sync_manifests(engine: Engine, claude_home: Path) -> tuple[str, ...]:
    """Give every pack the manifest that matches its history, and return the packs whose manifest was repaired.

    The caller must hold the worker lock. Costs next to nothing where echod never changed a pack.

    Raises:
        StoreError: a file cannot be read or written.
    """
    commits_by_pack: defaultdict[str, list[CommitInfo]] = defaultdict(list)
    for commit in engine.history([packs_store(claude_home)]):
        commits_by_pack[commit.role.name].append(commit)
    repaired = []
    for name, commits in sorted(commits_by_pack.items()):
        if _sync_manifest(claude_home, commits[0].role, commits):
            log.info("manifest_repaired", pack=name)
            repaired.append(name)
    return tuple(repaired)


def _sync_manifest(claude_home: Path, role: Role, history: Sequence[CommitInfo]) -> bool:
    texts = read_manifest_changes(_read_file(claude_home, role.path, MANIFEST_CHANGES_FILE) or b"")
    changes = [
        ManifestChange(*texts[commit.job], in_effect=_is_in_effect(commit, history))
        for commit in history
        if commit.kind == JobKind.PACK and commit.job is not None and commit.job in texts
    ]
    path = manifest_path(claude_home, role.name)
    present = _read_file(claude_home, path.parent, path.name)
    text = None if present is None else present.decode(errors="replace")
    has_file = _read_file(claude_home, role.path, MEMORY) is not None
    expected = expected_manifest(role.name, changes, text, has_file=has_file)
    if expected is None:
        return False
    write_manifest(claude_home, role.name, None if expected.text is None else expected.text.encode())
    return True


def _is_in_effect(commit: CommitInfo, history: Sequence[CommitInfo]) -> bool:
    """Return whether a commit is in effect: it was not undone, or its undo was."""
    undo = next((other for other in history if commit.undone_by is not None and other.job == commit.undone_by), None)
    return commit.undone_by is None or (undo is not None and not _is_in_effect(undo, history))


def _read_file(claude_home: Path, directory: Path, name: str) -> bytes | None:
    """Return the content of a file in the global store; None where it is missing."""
    path = directory / name
    with as_store_error("read", path):
        try:
            with open_dir(claude_home, path.parent.relative_to(claude_home).parts) as opened:
                return opened.read(path.name, MAX_FILE_BYTES)
        except FileNotFoundError:
            return None


def _require_regular_file(directory: Dir, name: str) -> None:
    status = directory.stat(name)
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise RefusedError(f"{directory.path / name} is not a regular file. It was left unchanged. Check that path.")

"""Resolve memory files of a merge that is already in conflict, from the versions in git's index.

For merges that ran without the driver: in a clone that was not set up, or by a program that ignores drivers. The file
as it is goes into git's object store first, so that nothing typed into it is lost.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from echod.errors import EchodError, os_reason
from echod.files import read_regular
from echod.memory import MAX_FILE_BYTES
from echod.memory.branches import merge_branches, unite_archives
from echod.memory.merge import MergeFailure
from echod.store.layout import Store
from echod.sync.driver import DEFAULT_MARKER_SIZE, is_archive
from echod.sync.repository import GitError, run_git


class ResolutionState(StrEnum):
    """The result for a file in conflict."""

    RESOLVED = "resolved"
    CONFLICT = "conflict"  # entries were rewritten on both sides; only those are between markers
    LEFT = "left"


class Resolution(NamedTuple):
    """The result for one file: its path below the project, and a phrase about it."""

    path: str
    state: ResolutionState
    detail: str


def resolve_conflicts(
    project: Path, stores: Sequence[Store], environ: Mapping[str, str], *, write: bool
) -> tuple[Resolution, ...]:
    """Merge every memory file in conflict by entry, and add those without a conflict to the index if `write` is true.

    Raises:
        EchodError: git cannot be asked, or a file cannot be written.
    """
    roots = [store.root.relative_to(project).as_posix() for store in stores]
    if not roots:
        return ()
    listed = run_git(("ls-files", "-u", "-z", "--", *roots), environ, cwd=project)
    if listed.code:
        raise GitError(f"git cannot list the conflicts in {project}: {listed.reason}.")
    stages: dict[str, dict[int, str]] = {}
    for line in filter(None, listed.output.split(b"\0")):
        fields, _, path = line.partition(b"\t")
        _, blob, stage = fields.decode().split()
        stages.setdefault(os.fsdecode(path), {})[int(stage)] = blob
    return tuple(_resolve(project, path, blobs, environ, write=write) for path, blobs in stages.items())


def _resolve(
    project: Path, path: str, stages: Mapping[int, str], environ: Mapping[str, str], *, write: bool
) -> Resolution:
    if not path.endswith(".md"):
        return Resolution(path, ResolutionState.LEFT, "it is no memory file")
    if 2 not in stages or 3 not in stages:  # noqa: PLR2004  git's numbers of "ours" and "theirs"
        return Resolution(path, ResolutionState.LEFT, "one side removed it; keep it with git add, or remove it: git rm")
    versions = [_blob(project, stages[n], environ) if n in stages else b"" for n in (1, 2, 3)]
    state, detail = ResolutionState.RESOLVED, "all entries of both sides are in it"
    if is_archive(path):
        data = unite_archives(versions[1], versions[2])
    else:
        merged = merge_branches(versions[0], versions[1], versions[2])
        if isinstance(merged, MergeFailure):
            return Resolution(path, ResolutionState.LEFT, merged.reason)
        data = merged.with_markers(DEFAULT_MARKER_SIZE)
        if merged.conflicts:
            state = ResolutionState.CONFLICT
            detail = f"rewritten on both sides, edit and git add it: {', '.join(merged.conflicts)}"
    if write:
        detail += _replace(project, path, data, environ, add=state is ResolutionState.RESOLVED)
    return Resolution(path, state, detail)


def _replace(project: Path, path: str, data: bytes, environ: Mapping[str, str], *, add: bool) -> str:
    """Write a file, add it to the index if asked, and return where the version before is."""
    file = project / path
    try:
        before = read_regular(file, MAX_FILE_BYTES, follow_symlinks=False)
        stored = run_git(("hash-object", "-w", "--no-filters", "--stdin"), environ, cwd=project, data=before)
        if stored.code:
            raise GitError(f"{path} is left alone, because git cannot keep a copy of it: {stored.reason}.")
        file.write_bytes(data)
    except OSError as error:
        raise EchodError(f"{path} cannot be replaced: {os_reason(error)}.") from error
    if add and (result := run_git(("add", "--", path), environ, cwd=project)).code:
        raise GitError(f"{path} is merged but not added: {result.reason}. Run: git add {path}")
    return f"; before: git cat-file -p {stored.text[:12]}"


def _blob(project: Path, blob: str, environ: Mapping[str, str]) -> bytes:
    result = run_git(("cat-file", "blob", blob), environ, cwd=project)
    if result.code:
        raise GitError(f"git cannot read a version of the conflict: {result.reason}.")
    return result.output

"""The pack job: install, update or remove a doc pack at the user's request, and keep its manifest consistent.

The user's edits of an installed pack are kept: the text as it was installed is in the pack's archive, and is the base
of a three-way merge. A pack's file is committed first, its manifest written after it, whole or not at all.
`sync_manifests` repairs what a crash between the two, or an undo, left behind. It uses the lines that every commit of a
pack leaves in its archive.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

from echod.clock import local_datetime
from echod.errors import isolated
from echod.jobs.base import (
    JobBlocked,
    JobContext,
    JobDone,
    JobOutcome,
    Proposal,
    change_set,
    free_backup_name,
    plan_and_commit,
    role_path,
)
from echod.log import get_logger
from echod.memory import MAX_FILE_BYTES
from echod.memory.document import parse
from echod.memory.merge import MergeFailure
from echod.memory.model import Document
from echod.memory.packs.elevation import UpgradeResult, upgrade_pack
from echod.memory.packs.manifest import (
    ManifestChange,
    PackManifest,
    compose_manifest,
    compose_manifest_change,
    expected_manifest,
    read_manifest_changes,
)
from echod.memory.redact import redact_bytes
from echod.packs.installed import AvailablePack, PackState, UpdateStatus, manifest_path
from echod.state.jobs import JobKind
from echod.store import layout
from echod.store.changes import Append, ConsumeFindings, Write
from echod.store.create import ensure_directory
from echod.store.engine import Engine, RoleSession, RoleView
from echod.store.errors import RefusedError, as_store_error
from echod.store.fs import create_durable_file, open_dir
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
        if (status := directory.stat(path.name)) is not None and not stat.S_ISREG(status.st_mode):
            taken = directory.path / path.name
            raise RefusedError(f"{taken} is not a regular file. It was left unchanged. Check that path.")
        if data is None:
            directory.unlink(path.name)
        else:
            temporary_name = f".{path.name}.echod"
            create_durable_file(directory, temporary_name, data, _FILE_MODE)
            os.replace(temporary_name, path.name, src_dir_fd=directory.fd, dst_dir_fd=directory.fd)
        directory.sync()


def sync_manifests(engine: Engine, claude_home: Path) -> tuple[str, ...]:
    """Give every pack the manifest that matches its history, and return the packs whose manifest was repaired.

    The caller must hold the worker lock. Costs next to nothing where echod never changed a pack. A pack whose files
    cannot be read or written is left alone, with a line in the log.

    Raises:
        StoreError: the journal of the packs cannot be read.
    """
    commits_by_pack: defaultdict[str, list[CommitInfo]] = defaultdict(list)
    for commit in engine.history([packs_store(claude_home)]):
        commits_by_pack[commit.role.name].append(commit)
    repaired = []
    for name, commits in sorted(commits_by_pack.items()):
        with isolated(f"The doc pack {name}"):
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


class PackPlan(NamedTuple):
    """The new file and manifest of a pack, and a summary for `echod log`.

    Attributes:
        upgrade: the merge of the user's edits; None if there was no file.
        base_known: true if the installed text is known, so that edits can be distinguished from it.
    """

    memory: bytes
    manifest: PackManifest
    upgrade: UpgradeResult | None
    base_known: bool
    summary: str


def plan_pack(state: PackState, memory: bytes | None, base: bytes | None, now: datetime) -> PackPlan | JobBlocked:
    """Plan the installation or update of a pack whose file has the content `memory`, or is missing.

    `base` is the text that was installed, from the archive; None if unknown. `now` is an aware datetime.
    """
    pack, manifest = state.pack, state.installed.manifest
    if manifest is not None and memory is not None and (pack is None or not state.update_available):
        checked = _checked_manifest(state, manifest, now)
        same = checked.is_same_install(manifest)
        summary = "nothing newer was found" if same else f"repaired the manifest of the doc pack {state.stack}"
        return PackPlan(memory, checked, None, base is not None, summary)
    if pack is None:
        return JobBlocked(f"no registry has a doc pack {state.stack}")
    upgrade = None if memory is None else _merge_edits(pack, memory, base)
    if isinstance(upgrade, JobBlocked):
        return upgrade
    summary = f"installed the doc pack {pack.stack} {pack.listing.version}"
    if manifest and memory is not None:
        summary = f"updated the doc pack {pack.stack} from {manifest.version} to {pack.listing.version}"
    new = pack.text if upgrade is None else upgrade.data
    return PackPlan(new, _new_manifest(pack, manifest, now), upgrade, base is not None, summary)


def install_or_update(context: JobContext, state: PackState) -> JobOutcome:
    """Install or update a pack."""
    raw = state.installed.manifest_bytes

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        base = read_installed_text(context.session, state)
        planned = plan_pack(state, view.memory.data, base, local_now(context.clock))
        if isinstance(planned, JobBlocked):
            return planned
        manifest = compose_manifest(planned.manifest)

        def record() -> None:
            write_manifest(view.role.store.project, state.stack, manifest)

        writes = _writes(context.session, view, planned, state.pack, today)
        if not writes and planned.manifest.is_same_install(state.installed.manifest):
            if manifest != raw:
                record()
            return JobDone(planned.summary, changed=manifest != raw)
        # A new installation is a commit even if no file changes, so that undo knows its manifest.
        changed = compose_manifest_change(context.job_id, raw, manifest)
        appends = [Append(role_path(view, MANIFEST_CHANGES_FILE), changed)]
        changes = change_set(view, JobKind.PACK, planned.summary, writes, appends=appends)
        return Proposal(changes, after_commit=record)

    return plan_and_commit(context, planner)


def remove_pack(context: JobContext, manifest_bytes: bytes | None) -> JobOutcome:
    """Remove a pack. Its file and its manifest, if there is one, are kept in its archive."""

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        consumes: list[ConsumeFindings] = []
        if view.memory.data is not None and view.memory.digest is not None:
            archive = role_path(view, free_backup_name(view.role, today))
            text = redact_bytes(view.memory.data)
            consumes.append(ConsumeFindings(role_path(view, layout.MEMORY), view.memory.digest, archive, text))
        removed = compose_manifest_change(context.job_id, manifest_bytes, None)
        appends = [Append(role_path(view, MANIFEST_CHANGES_FILE), removed)]
        summary = f"removed the doc pack {view.role.name}"
        changes = change_set(view, JobKind.PACK, summary, appends=appends, consumes=consumes)
        return Proposal(changes, after_commit=lambda: write_manifest(view.role.store.project, view.role.name, None))

    return plan_and_commit(context, planner)


def read_installed_text(session: RoleSession, state: PackState) -> bytes | None:
    """Return the pack's text as it was installed, from its archive; None if unknown."""
    manifest = state.installed.manifest
    if manifest is None or manifest.sha256 is None:
        return None
    text = session.read_file(pristine_name(manifest.sha256)).data
    return text if text is not None and hashlib.sha256(text).hexdigest() == manifest.sha256 else None


def _writes(
    session: RoleSession, view: RoleView, planned: PackPlan, pack: AvailablePack | None, today: date
) -> tuple[Write, ...]:
    """Return the writes of the file, of its backup, and of the pack's own text unless the archive has it."""
    writes = []
    if planned.memory != view.memory.data:
        writes.append(Write(role_path(view, layout.MEMORY), view.memory.digest, planned.memory))
        if view.memory.data:
            writes.append(Write(role_path(view, free_backup_name(view.role, today)), None, view.memory.data))
    if pack is not None and planned.manifest.sha256 == pack.sha256:
        pristine = pristine_name(pack.sha256)
        if session.read_file(pristine).data is None:
            writes.append(Write(role_path(view, pristine), None, pack.text))
    return tuple(writes)


def pristine_name(sha256: str) -> str:
    """Return the path of a pack's text as it was installed, relative to its role."""
    return f"archive/pack-{sha256[:16]}.md"


def _merge_edits(pack: AvailablePack, memory: bytes, base: bytes | None) -> UpgradeResult | JobBlocked:
    visible, new = parse(memory), parse(pack.text)
    installed = None if base is None else parse(base)
    if not isinstance(visible, Document):
        return JobBlocked(f"{layout.MEMORY} of {pack.stack} is left alone: {visible.reason}")
    if not isinstance(new, Document):
        return JobBlocked(f"the new text of {pack.stack} cannot be read: {new.reason}")
    upgrade = upgrade_pack(installed if isinstance(installed, Document) else None, visible, new, pack.stack)
    if isinstance(upgrade, MergeFailure):
        return JobBlocked(f"{layout.MEMORY} of {pack.stack} was changed too much to be updated: {upgrade.reason}")
    return upgrade


def _new_manifest(pack: AvailablePack, before: PackManifest | None, now: datetime) -> PackManifest:
    return PackManifest(
        name=pack.stack,
        version=pack.listing.version,
        installed_at=_timestamp(now),
        last_updated=pack.listing.last_updated,
        source_version=pack.listing.version,
        domains=pack.listing.domains,
        sha256=pack.sha256,
        registry=pack.origin,
        extra_fields=() if before is None else before.extra_fields,
    )


def _checked_manifest(state: PackState, manifest: PackManifest, now: datetime) -> PackManifest:
    """Return the manifest after a check that found no newer version.

    The time of the check is recorded only for a stale pack. If the registry has the same text, its hash and date are
    taken over: it may have been reviewed since, and a file that another program installed is known from then on.
    """
    if state.pack and state.update_status is UpdateStatus.NO_UPDATE:
        manifest = manifest._replace(sha256=state.pack.sha256, last_updated=state.pack.listing.last_updated)
    return manifest._replace(checked_at=_timestamp(now)) if state.stale else manifest


def _timestamp(now: datetime) -> str:
    return now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def local_now(clock: Callable[[], float]) -> datetime:
    """Return the present time in the local time zone."""
    return local_datetime(clock())

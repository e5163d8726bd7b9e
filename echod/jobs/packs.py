"""The pack jobs: a doc pack is installed, brought up to a newer version, or taken away, because a person asked.

What a person changed in an installed pack stays: the text as it was installed is kept in the pack's archive, and is
the base of a three-way merge. The manifest is written after the commit (`echod.packs.manifests` tells how they agree).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from echod.jobs.archives import free_backup_name
from echod.jobs.base import JobBlocked, JobContext, JobDone, JobOutcome, Proposal, plan_and_commit
from echod.memory.document import parse
from echod.memory.merge import MergeFailure
from echod.memory.model import Document
from echod.memory.packs.manifest import PackManifest, compose_manifest, compose_manifest_change
from echod.memory.packs.upgrade import UpgradeResult, upgrade_pack
from echod.memory.redact import redact_bytes
from echod.packs.check import PackState, UpdateStatus
from echod.packs.manifests import MANIFEST_CHANGES_FILE, write_manifest
from echod.packs.registries import AvailablePack
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import Append, ChangeSet, ConsumeFindings, Origin, Write
from echod.store.session import RoleSession, RoleView


class PackPlan(NamedTuple):
    """What becomes of a pack.

    Attributes:
        memory: its file afterwards.
        manifest: its manifest afterwards.
        upgrade: what was kept of a person's edits; None where there was no file before.
        base_known: whether the text that was installed is known, so that edits can be told from it.
        summary: what was done, for `echod log`.
    """

    memory: bytes
    manifest: PackManifest
    upgrade: UpgradeResult | None
    base_known: bool
    summary: str


def plan_pack(state: PackState, memory: bytes | None, base: bytes | None, now: datetime) -> PackPlan | JobBlocked:
    """What installing or updating a pack would do.

    Args:
        state: how it stands, and what the registries have.
        memory: its file; None: there is none.
        base: the text that was installed, as the archive has it; None: not known.
        now: an aware datetime.
    """
    pack, manifest = state.pack, state.installed.manifest
    if manifest is not None and memory is not None and (pack is None or not state.update_available):
        checked = _checked_manifest(state, manifest, now)
        same = checked.is_same_install(manifest)
        summary = "nothing newer was found" if same else f"put the manifest of the doc pack {state.stack} right"
        return PackPlan(memory, checked, None, base is not None, summary)
    if pack is None:
        return JobBlocked(f"no registry has a doc pack {state.stack}")
    kept = None if memory is None else _merge_edits(pack, memory, base)
    if isinstance(kept, JobBlocked):
        return kept
    from_version = f"from {manifest.version} " if manifest and memory is not None else ""
    summary = (
        f"{pack.stack} {from_version}to {pack.listing.version}"
        if from_version
        else f"{pack.stack} {pack.listing.version}"
    )
    return PackPlan(
        memory=pack.text if kept is None else kept.data,
        manifest=_new_manifest(pack, manifest, now),
        upgrade=kept,
        base_known=base is not None,
        summary=f"updated the doc pack {summary}" if from_version else f"installed the doc pack {summary}",
    )


def install_or_update(context: JobContext, state: PackState) -> JobOutcome:
    """Install a pack, or update it, in the role of `session`.

    Args:
        context: the job, with the role locked.
        state: how it stood just before, and what the registries have.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`.
    """
    raw = state.installed.manifest_bytes

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        base = read_installed_text(context.session, state)
        planned = plan_pack(state, view.memory.data, base, local_now(context.clock))
        if isinstance(planned, JobBlocked):
            return planned
        manifest = compose_manifest(planned.manifest)

        def note() -> None:
            write_manifest(view.role.store.project, state.stack, manifest)

        writes = _writes(context.session, view, planned, state.pack, today)
        if not writes and planned.manifest.is_same_install(state.installed.manifest):
            if manifest != raw:
                note()
            return JobDone(planned.summary, changed=manifest != raw)
        # Another installation is a commit of its own even where no file changes, so that undo knows its manifest.
        changes = ChangeSet(
            kind=JobKind.PACK.value,
            role=view.role.name,
            summary=planned.summary,
            writes=writes,
            appends=(
                Append(_path(view, MANIFEST_CHANGES_FILE), compose_manifest_change(context.job_id, raw, manifest)),
            ),
            origin=Origin.USER,
        )
        return Proposal(changes, note)

    return plan_and_commit(context, planner)


def remove_pack(context: JobContext, manifest_bytes: bytes | None) -> JobOutcome:
    """Take a pack away: its file goes to its archive, its manifest is kept there too.

    Args:
        context: the job, with the role locked.
        manifest_bytes: its manifest's bytes; None: there is none.

    Raises:
        BusyError, RefusedError, StoreError: see `RoleSession.commit`.
    """

    def planner(view: RoleView, today: date) -> Proposal | JobOutcome:
        consumes: tuple[ConsumeFindings, ...] = ()
        if view.memory.data is not None and view.memory.digest is not None:
            kept = redact_bytes(view.memory.data)
            archive = _path(view, free_backup_name(view.role, today))
            consumes = (ConsumeFindings(_path(view, layout.MEMORY), view.memory.digest, archive, kept),)
        changes = ChangeSet(
            kind=JobKind.PACK.value,
            role=view.role.name,
            summary=f"removed the doc pack {view.role.name}",
            appends=(
                Append(
                    _path(view, MANIFEST_CHANGES_FILE), compose_manifest_change(context.job_id, manifest_bytes, None)
                ),
            ),
            consumes=consumes,
            origin=Origin.USER,
        )
        return Proposal(changes, lambda: write_manifest(view.role.store.project, view.role.name, None))

    return plan_and_commit(context, planner)


def read_installed_text(session: RoleSession, state: PackState) -> bytes | None:
    """The pack's text as it was installed, from its archive; None where it is not known."""
    manifest = state.installed.manifest
    if manifest is None or manifest.sha256 is None:
        return None
    kept = session.read_file(pristine_name(manifest.sha256)).data
    return kept if kept is not None and hashlib.sha256(kept).hexdigest() == manifest.sha256 else None


def _writes(
    session: RoleSession, view: RoleView, planned: PackPlan, pack: AvailablePack | None, today: date
) -> tuple[Write, ...]:
    """The file, the file as it was, and the pack's own text where the archive does not have it yet."""
    writes = []
    if planned.memory != view.memory.data:
        writes.append(Write(_path(view, layout.MEMORY), view.memory.digest, planned.memory))
        if view.memory.data:
            writes.append(Write(_path(view, free_backup_name(view.role, today)), None, view.memory.data))
    if pack is not None and planned.manifest.sha256 == pack.sha256:
        pristine = pristine_name(pack.sha256)
        if session.read_file(pristine).data is None:
            writes.append(Write(_path(view, pristine), None, pack.text))
    return tuple(writes)


def pristine_name(sha256: str) -> str:
    """Where a pack's text is kept as it was installed, relative to its role."""
    return f"archive/pack-{sha256[:16]}.md"


def _path(view: RoleView, name: str) -> PurePosixPath:
    return PurePosixPath(view.role.name) / name


def _merge_edits(pack: AvailablePack, memory: bytes, base: bytes | None) -> UpgradeResult | JobBlocked:
    visible, new = parse(memory), parse(pack.text)
    installed = None if base is None else parse(base)
    if not isinstance(visible, Document):
        return JobBlocked(f"{layout.MEMORY} of {pack.stack} is left alone: {visible.reason}")
    if not isinstance(new, Document):
        return JobBlocked(f"the new text of {pack.stack} cannot be read: {new.reason}")
    found = upgrade_pack(installed if isinstance(installed, Document) else None, visible, new, pack.stack)
    if isinstance(found, MergeFailure):
        return JobBlocked(f"{layout.MEMORY} of {pack.stack} was changed too much to be updated: {found.reason}")
    return found


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
    """That there is nothing newer is worth a note only where the pack was getting old.

    A registry that has the very same text may say that it was looked at since; and a file of another program that is
    just what the registry has is known from then on.
    """
    if state.pack and state.update_status is UpdateStatus.NO_UPDATE:
        manifest = replace(manifest, sha256=state.pack.sha256, last_updated=state.pack.listing.last_updated)
    return replace(manifest, checked_at=_timestamp(now)) if state.stale else manifest


def _timestamp(now: datetime) -> str:
    return now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def local_now(clock: Callable[[], float]) -> datetime:
    """Now, in the local zone."""
    return datetime.fromtimestamp(clock()).astimezone()

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

from echod.jobs.archives import free_backup
from echod.jobs.base import Blocked, Done, Outcome, Proposal, carry_out
from echod.memory.document import parse
from echod.memory.merge import Unmergeable
from echod.memory.model import Document
from echod.memory.packs.manifest import Manifest, compose_manifest, compose_step
from echod.memory.packs.upgrade import Renewed, renewed
from echod.memory.redact import redact_bytes
from echod.packs.check import Offer, PackState
from echod.packs.manifests import STEPS, write_manifest
from echod.packs.registries import Pack
from echod.state.job import JobKind
from echod.store import layout
from echod.store.changes import Append, ChangeSet, Consume, Gate, Origin, Write
from echod.store.session import RoleSession, RoleView


class Planned(NamedTuple):
    """What becomes of a pack.

    Attributes:
        memory: its file afterwards.
        manifest: its manifest afterwards.
        renewed: what was kept of a person's edits; None where there was no file before.
        base_known: whether the text that was installed is known, so that edits can be told from it.
        summary: what was done, for `echod log`.
    """

    memory: bytes
    manifest: Manifest
    renewed: Renewed | None
    base_known: bool
    summary: str


def plan_for(state: PackState, memory: bytes | None, base: bytes | None, now: datetime) -> Planned | Blocked:
    """What installing or updating a pack would do.

    Args:
        state: how it stands, and what the registries have.
        memory: its file; None: there is none.
        base: the text that was installed, as the archive has it; None: not known.
        now: an aware datetime.
    """
    pack, manifest = state.pack, state.installed.manifest
    if manifest is not None and memory is not None and (pack is None or not state.renewable):
        checked = _checked(state, manifest, now)
        same = checked.same_install(manifest)
        summary = "nothing newer was found" if same else f"put the manifest of the doc pack {state.stack} right"
        return Planned(memory, checked, None, base is not None, summary)
    if pack is None:
        return Blocked(f"no registry has a doc pack {state.stack}")
    kept = None if memory is None else _renewed(pack, memory, base)
    if isinstance(kept, Blocked):
        return kept
    was = f"from {manifest.version} " if manifest and memory is not None else ""
    summary = f"{pack.stack} {was}to {pack.listed.version}" if was else f"{pack.stack} {pack.listed.version}"
    return Planned(
        memory=pack.text if kept is None else kept.data,
        manifest=_manifest(pack, manifest, now),
        renewed=kept,
        base_known=base is not None,
        summary=f"updated the doc pack {summary}" if was else f"installed the doc pack {summary}",
    )


def put(job: int, session: RoleSession, state: PackState, gate: Gate, clock: Callable[[], float]) -> Outcome:
    """Install a pack, or update it, in the role of `session`.

    Args:
        job: the job's number.
        session: the pack's role, held.
        state: how it stood just before, and what the registries have.
        gate: asked just before the point of no return.
        clock: Unix seconds.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`.
    """
    raw = state.installed.raw

    def planner(view: RoleView, today: date) -> Proposal | Outcome:
        planned = plan_for(state, view.memory.data, base_in(session, state), moment(clock))
        if isinstance(planned, Blocked):
            return planned
        manifest = compose_manifest(planned.manifest)

        def note() -> None:
            write_manifest(view.role.store.project, state.stack, manifest)

        writes = _writes(session, view, planned, state.pack, today)
        if not writes and planned.manifest.same_install(state.installed.manifest):
            if manifest != raw:
                note()
            return Done(planned.summary, changed=manifest != raw)
        # Another installation is a commit of its own even where no file changes, so that undo knows its manifest.
        changes = ChangeSet(
            kind=JobKind.PACK.value,
            role=view.role.name,
            summary=planned.summary,
            writes=writes,
            appends=(Append(_path(view, STEPS), compose_step(job, raw, manifest)),),
            origin=Origin.PERSON,
        )
        return Proposal(changes, note)

    return carry_out(job, session, planner, gate, clock, writes=True)


def take(job: int, session: RoleSession, raw: bytes | None, gate: Gate, clock: Callable[[], float]) -> Outcome:
    """Take a pack away: its file goes to its archive, its manifest is kept there too.

    Args:
        job: the job's number.
        session: the pack's role, held.
        raw: its manifest's bytes; None: there is none.
        gate: asked just before the point of no return.
        clock: Unix seconds.

    Raises:
        Busy, Refused, StoreFault: see `RoleSession.commit`.
    """

    def planner(view: RoleView, today: date) -> Proposal | Outcome:
        consumes: tuple[Consume, ...] = ()
        if view.memory.data is not None and view.memory.digest is not None:
            kept = redact_bytes(view.memory.data)
            place = _path(view, free_backup(view.role, today))
            consumes = (Consume(_path(view, layout.MEMORY), view.memory.digest, place, kept),)
        changes = ChangeSet(
            kind=JobKind.PACK.value,
            role=view.role.name,
            summary=f"removed the doc pack {view.role.name}",
            appends=(Append(_path(view, STEPS), compose_step(job, raw, None)),),
            consumes=consumes,
            origin=Origin.PERSON,
        )
        return Proposal(changes, lambda: write_manifest(view.role.store.project, view.role.name, None))

    return carry_out(job, session, planner, gate, clock, writes=True)


def base_in(session: RoleSession, state: PackState) -> bytes | None:
    """The pack's text as it was installed, from its archive; None where it is not known."""
    manifest = state.installed.manifest
    if manifest is None or manifest.sha256 is None:
        return None
    kept = session.file(pristine_name(manifest.sha256)).data
    return kept if kept is not None and hashlib.sha256(kept).hexdigest() == manifest.sha256 else None


def _writes(
    session: RoleSession, view: RoleView, planned: Planned, pack: Pack | None, today: date
) -> tuple[Write, ...]:
    """The file, the file as it was, and the pack's own text where the archive does not have it yet."""
    writes = []
    if planned.memory != view.memory.data:
        writes.append(Write(_path(view, layout.MEMORY), view.memory.digest, planned.memory))
        if view.memory.data:
            writes.append(Write(_path(view, free_backup(view.role, today)), None, view.memory.data))
    if pack is not None and planned.manifest.sha256 == pack.sha256:
        pristine = pristine_name(pack.sha256)
        if session.file(pristine).data is None:
            writes.append(Write(_path(view, pristine), None, pack.text))
    return tuple(writes)


def pristine_name(sha256: str) -> str:
    """Where a pack's text is kept as it was installed, relative to its role."""
    return f"archive/pack-{sha256[:16]}.md"


def _path(view: RoleView, name: str) -> PurePosixPath:
    return PurePosixPath(view.role.name) / name


def _renewed(pack: Pack, memory: bytes, base: bytes | None) -> Renewed | Blocked:
    visible, new = parse(memory), parse(pack.text)
    installed = None if base is None else parse(base)
    if not isinstance(visible, Document):
        return Blocked(f"{layout.MEMORY} of {pack.stack} is left alone: {visible.reason}")
    if not isinstance(new, Document):
        return Blocked(f"the new text of {pack.stack} cannot be read: {new.reason}")
    found = renewed(installed if isinstance(installed, Document) else None, visible, new, pack.stack)
    if isinstance(found, Unmergeable):
        return Blocked(f"{layout.MEMORY} of {pack.stack} was changed too much to be updated: {found.reason}")
    return found


def _manifest(pack: Pack, before: Manifest | None, now: datetime) -> Manifest:
    return Manifest(
        name=pack.stack,
        version=pack.listed.version,
        installed_at=_stamp(now),
        last_updated=pack.listed.last_updated,
        source_version=pack.listed.version,
        domains=pack.listed.domains,
        sha256=pack.sha256,
        registry=pack.origin,
        others=() if before is None else before.others,
    )


def _checked(state: PackState, manifest: Manifest, now: datetime) -> Manifest:
    """That there is nothing newer is worth a note only where the pack was getting old.

    A registry that has the very same text may say that it was looked at since; and a file of another program that is
    just what the registry has is known from then on.
    """
    if state.pack and state.offer is Offer.NOTHING:
        manifest = replace(manifest, sha256=state.pack.sha256, last_updated=state.pack.listed.last_updated)
    return replace(manifest, checked_at=_stamp(now)) if state.stale else manifest


def _stamp(now: datetime) -> str:
    return now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def moment(clock: Callable[[], float]) -> datetime:
    """Now, in the local zone."""
    return datetime.fromtimestamp(clock()).astimezone()

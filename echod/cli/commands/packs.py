"""`echod packs install`, `update` and `remove`: each as a job of its own, which `echod undo` takes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import click

from echod.app.context import ReadContext, open_read_context
from echod.app.services import Services, open_services
from echod.cli.by_hand import confirm as ask
from echod.cli.by_hand import require_write_mode
from echod.cli.context import CommandContext
from echod.cli.execute import JobRefusedError, ManualJob, ManualJobResult, run_manual_job, summary_or_raise
from echod.cli.output import pluralize, sanitize, short_path, wrap
from echod.cli.pack_told import describe_update
from echod.cli.packs import read_pack_inventory
from echod.cli.wake import notify_daemon
from echod.errors import UsageError
from echod.jobs import packs
from echod.jobs.base import JobBlocked, JobOutcome
from echod.jobs.packs import PackPlan
from echod.memory.packs.manifest import is_stack_name
from echod.packs.check import PackState, pack_state
from echod.packs.installed import InstalledPack, PackLocations
from echod.packs.manifests import sync_manifests
from echod.state.job import Job, JobKind
from echod.store.changes import CommitGate
from echod.store.create import create_global_role
from echod.store.errors import BusyError
from echod.store.layout import Role
from echod.store.session import RoleSession

ResultT = TypeVar("ResultT")

_PackAction = Callable[[PackLocations, Job, RoleSession, CommitGate], JobOutcome]
"""What is done to a pack, whose role is held."""

_BUSY_RETRIES, _BUSY_RETRY_SECONDS = 20, 0.5
"""Other programs hold the lock of the global store for moments; a person who waits for it need not ask again."""


def install_pack(context: CommandContext, stack: str, *, dry_run: bool) -> None:
    """Install a pack.

    Raises:
        UsageError: there is no such pack.
        EchodError: it cannot be installed; the sentence says why.
    """
    state, stale_after_days = _find_pack(context, stack)
    _require_usable(state)
    if state.pack is None and state.installed.manifest is None:
        raise UsageError(f"No registry has a doc pack {sanitize(stack)}; echod packs list shows those there are.")
    _install_or_update(context, state, stale_after_days, dry_run=dry_run, is_install=True)


def update_packs(context: CommandContext, stack: str | None, *, dry_run: bool) -> None:
    """Update a pack, or all that are installed.

    Raises:
        UsageError: it has no pack's name.
        JobRefusedError: it is not installed, or cannot be updated; the sentence says why.
    """
    if stack is not None:
        _update_pack(context, *_find_pack(context, stack), dry_run=dry_run)
        return
    inventory, stale_after_days = read_pack_inventory(context)
    if not inventory.installed:
        context.print_info("No doc pack is installed; echod packs list shows what there is.")
    failed = []
    for state in inventory.installed:
        try:
            _update_pack(context, state, stale_after_days, dry_run=dry_run)
        except JobRefusedError as error:
            click.echo(wrap(str(error), indent="! "))
            failed.append(state.stack)
    if failed:
        raise JobRefusedError(f"{pluralize(len(failed), 'doc pack')} could not be updated: {', '.join(failed)}.")


def _update_pack(context: CommandContext, state: PackState, stale_after_days: int, *, dry_run: bool) -> None:
    _require_usable(state)
    if state.installed.manifest is None:
        fix = f"echod packs install {state.stack}"
        state_text = "has no manifest, so that its version is not known" if state.is_installed else "is not installed"
        raise JobRefusedError(f"The doc pack {state.stack} {state_text}. Say: {fix}")
    _install_or_update(context, state, stale_after_days, dry_run=dry_run, is_install=False)


def remove_installed_pack(context: CommandContext, stack: str, *, dry_run: bool, yes: bool) -> None:
    """Take a pack away.

    Raises:
        UsageError: it has no pack's name, or a question cannot be asked.
        JobRefusedError: it is not installed.
    """
    state, _ = _find_pack(context, stack)
    _require_usable(state)
    if not state.is_installed:
        raise JobRefusedError(f"The doc pack {stack} is not installed; echod packs status lists those that are.")
    version_text = f" (v{sanitize(state.installed.manifest.version)})" if state.installed.manifest else ""
    edited_text = ", which you have changed," if state.edited else ""
    if dry_run:
        click.echo(
            wrap(f"The doc pack {stack}{version_text}{edited_text} would be removed; its text would be archived.")
        )
        return
    require_write_mode(context)
    if not yes:
        ask(f"Remove the doc pack {stack}{version_text}{edited_text.rstrip(',')}? Its text is archived.")

    def work(locations: PackLocations, job: Job, session: RoleSession, gate: CommitGate) -> JobOutcome:
        return packs.remove_pack(
            job.id, session, locations.read_installed().get(stack).manifest_bytes, gate, context.now
        )

    result = _run_pack_job(context, stack, "a person removes it", work)
    context.print_info(f"Removed the doc pack {stack}. Its text is in its archive:")
    context.print_info(f"  {short_path(str(Path(result.job.store) / result.job.role / 'archive'))}")
    context.print_info(result.undo_hint)


def _install_or_update(
    context: CommandContext, state: PackState, stale_after_days: int, *, dry_run: bool, is_install: bool
) -> None:
    """Install or update.

    Says what was done, and what a person's edits became. After `stale_after_days` days a pack is stale.
    """
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        plan = _plan_pack(read_context, state, packs.local_now(context.now))
    if isinstance(plan, JobBlocked):
        raise JobRefusedError(f"{plan.reason[:1].upper()}{plan.reason[1:].rstrip('.')}. Nothing was changed.")
    before = state.installed
    if dry_run or (plan.memory, plan.manifest) == (before.memory, before.manifest):
        message = "\n".join(describe_update(state, plan, dry_run=dry_run, is_install=is_install))
        click.echo(message) if dry_run else context.print_info(message)
        return
    require_write_mode(context)

    def work(locations: PackLocations, job: Job, session: RoleSession, gate: CommitGate) -> JobOutcome:
        # What is installed may have changed until the role was ours; the registries were read a moment ago.
        current = pack_state(
            locations.read_installed().get(state.stack), state.pack, packs.local_now(context.now), stale_after_days
        )
        return packs.install_or_update(job.id, session, current, gate, context.now)

    result = _run_pack_job(context, state.stack, "a person installs it" if is_install else "a person updates it", work)
    context.print_info("\n".join(describe_update(state, plan, dry_run=False, is_install=is_install)))
    if plan.memory != before.memory or not plan.manifest.is_same_install(before.manifest):
        context.print_info(result.undo_hint)


def _plan_pack(read_context: ReadContext, state: PackState, now: datetime) -> PackPlan | JobBlocked:
    role = read_context.pack_locations.pack_role(state.stack)
    if state.installed.memory is None:
        return packs.plan_pack(state, None, None, now)
    with read_context.reader.open_read_only(role) as session:
        return packs.plan_pack(state, session.read().memory.data, packs.read_installed_text(session, state), now)


def _run_pack_job(context: CommandContext, stack: str, reason: str, action: _PackAction) -> ManualJobResult:
    """Do it in the pack's role, as a job of its own. No workflow holds the global store: it belongs to no project."""
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        locations = services.read_context.pack_locations
        role = locations.pack_role(stack)

        def work_in_role(job: Job, gate: CommitGate) -> str:
            sync_manifests(services.engine, locations.claude_home)
            create_global_role(role)
            return retry_while_busy(
                lambda: _run_in_role(services, role, lambda session: action(locations, job, session, gate))
            )

        result = run_manual_job(context, services, ManualJob(JobKind.PACK, role, reason), work_in_role, force=True)
    notify_daemon(context)
    return result


def _run_in_role(services: Services, role: Role, work: Callable[[RoleSession], JobOutcome]) -> str:
    with services.engine.open_role(role) as session:
        return summary_or_raise(work(session))


def retry_while_busy(action: Callable[[], ResultT]) -> ResultT:
    """Do it as soon as the other programs that write to the global store let us, within a few seconds.

    Raises:
        BusyError: they did not.
    """
    for _ in range(_BUSY_RETRIES):
        try:
            return action()
        except BusyError:
            time.sleep(_BUSY_RETRY_SECONDS)
    return action()


def _find_pack(context: CommandContext, stack: str) -> tuple[PackState, int]:
    """How a pack stands, and after how many days it is stale.

    Raises:
        UsageError: it has no pack's name.
    """
    if not is_stack_name(stack):
        raise UsageError(
            f"{sanitize(stack)!r} is no name of a doc pack: a letter, then 1 to 63 letters, digits, - and _."
        )
    inventory, stale_after_days = read_pack_inventory(context)
    not_installed = pack_state(InstalledPack(stack), None, packs.local_now(context.now), stale_after_days)
    return next((state for state in inventory.packs if state.stack == stack), not_installed), stale_after_days


def _require_usable(state: PackState) -> None:
    """What cannot be used stays as it is: it may say what a later version of echod needs to know."""
    if state.installed.blocked:
        raise JobRefusedError(
            f"{state.installed.problem} Nothing was changed; mend it, or delete it and install again."
        )

"""Commands about doc packs. Installing, updating and removing one is a manual job each, which `echod undo` reverses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from difflib import get_close_matches
from enum import Enum
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from echod.app.context import ReadContext
from echod.cli.context import CommandContext
from echod.cli.execute import (
    Change,
    Confirmation,
    JobRefusedError,
    JobRunner,
    ManualJob,
    ManualJobResult,
    Step,
    WriteOptions,
    make_change,
    refusal,
    report_already_so,
)
from echod.cli.output import fit_line, problem_line, sanitize, short_path, wrap
from echod.cli.targets import select_stores
from echod.contract.codec import to_json
from echod.contract.commands import PacksReport
from echod.contract.status import PackInfo
from echod.errors import UsageError
from echod.jobs import packs as packs_job
from echod.jobs.base import JobBlocked, JobContext, JobOutcome
from echod.jobs.packs import PackPlan, pristine_name, sync_manifests
from echod.memory.packs.elevation import UpgradeResult
from echod.memory.packs.manifest import is_stack_name
from echod.memory.text import pluralize
from echod.packs.installed import (
    InstalledPack,
    PackCheckResult,
    PackLocations,
    PackState,
    UpdateStatus,
    check_packs,
    pack_state,
)
from echod.state.jobs import JobKind
from echod.status.sections import pack_info
from echod.store.create import create_global_role

_MAX_SHOWN_TITLES = 4

_NO_PACK_INSTALLED = "No doc pack is installed. `echod packs list` lists the available ones."


def list_(context: CommandContext, *, json: bool) -> None:
    """Run `echod packs list`."""
    inventory = read_pack_inventory(context).packs
    report = PacksReport(tuple(map(pack_info, inventory.packs)), inventory.registry_problems + inventory.store_problems)
    if json:
        click.echo(to_json(report))
        return
    lines = [_list_line(info) for info in report.packs]
    absent = any(not info.installed for info in report.packs)
    hint = ["\nInstall one for all projects: echod packs install NAME"] if absent else []
    click.echo("\n".join(["Available doc packs:", *lines, *map(problem_line, report.problems), *hint]))


def status(context: CommandContext, *, json: bool) -> None:
    """Run `echod packs status`."""
    inventory = read_pack_inventory(context)
    report = PacksReport(tuple(map(pack_info, inventory.packs.installed)), inventory.packs.store_problems)
    if json:
        click.echo(to_json(report))
        return
    lines = [line for info in report.packs for line in _status_lines(info, inventory.stale_after_days)]
    heading = "Doc pack status:" if report.packs else _NO_PACK_INSTALLED
    click.echo("\n".join([heading, *lines, *map(problem_line, report.problems)]))


class PackInventory(NamedTuple):
    """All packs, installed or in a registry, and the age in days after which an installed pack is stale."""

    packs: PackCheckResult
    stale_after_days: int


def read_pack_inventory(context: CommandContext) -> PackInventory:
    """Read the installed packs and the registries. The projects' settings decide when a pack is stale."""
    with context.open_read_context() as read_context:
        current_stores = select_stores(context, None) or ()
        projects = (*read_context.discover_stores().projects, *(store.project for store in current_stores))
        stale_after_days = read_context.staleness_days(projects)
        locations = read_context.pack_locations
        return PackInventory(
            check_packs(locations, locations.read_installed(), context.now(), stale_after_days), stale_after_days
        )


def _list_line(info: PackInfo) -> str:
    if not info.installed:
        title = f"  {sanitize(info.title)}" if info.title else ""
        return fit_line(f"  {info.name:<15} ○ not installed{title}")
    date_text = f", {info.installed_at[:10]}" if info.installed_at else ""
    version = f"v{sanitize(info.version)}" if info.version else "version not known"
    update_text = ""
    if info.available and info.offer == UpdateStatus.NEW_VERSION:
        update_text = f"; v{sanitize(info.available)} available"
    elif info.offer == UpdateStatus.NEW_TEXT:
        update_text = "; another text available"
    return f"  {info.name:<15} ✓ installed ({version}{sanitize(date_text)}){update_text}"


def _status_lines(info: PackInfo, stale_after_days: int) -> Iterator[str]:
    version = f"v{sanitize(info.version)}" if info.version else "-"
    age = "" if info.installed_days is None else f"installed {pluralize(max(0, info.installed_days), 'day')} ago"
    state = {True: f"⚠ stale (> {stale_after_days} days)", False: "✓ fresh", None: "? age not known"}[info.stale]
    yield f"  {info.name:<15} {version:<9} {age:<24} {state}"
    if info.stale and (info.updated_days or 0) > stale_after_days:
        yield f"      its text was last updated {pluralize(info.updated_days or 0, 'day')} ago"
    if info.edited:
        yield "      edited since it was installed; an update keeps the edits"
    if info.offer == UpdateStatus.NEW_VERSION:
        yield f"      v{sanitize(info.available or '')} is available: echod packs update {info.name}"
    elif info.offer == UpdateStatus.NEW_TEXT:
        yield f"      another text of this version is available: echod packs update {info.name}"
    elif info.stale:
        yield f"      to look for an update: echod packs update {info.name}"


class _Mode(Enum):
    """Which command was typed: the reason of its job, and its answer if there is nothing to do."""

    INSTALL = ("installed by the user", "installed already")
    UPDATE = ("updated by the user", "already up to date")

    def __init__(self, reason: str, unchanged_text: str) -> None:
        self.reason = reason
        self.unchanged_text = unchanged_text


def install(context: CommandContext, *, pack: str, dry_run: bool) -> None:
    """Run `echod packs install`."""
    inventory = read_pack_inventory(context)
    state = _find_pack(context, inventory, pack)
    if state.pack is None and state.installed.manifest is None:
        close = get_close_matches(pack, [one.stack for one in inventory.packs.packs], n=1)
        suggestion = f" Did you mean {close[0]}?" if close else ""
        raise UsageError(
            f"No registry has a doc pack {sanitize(pack)}.{suggestion} `echod packs list` lists the available ones."
        )
    _install_or_update(context, state, inventory.stale_after_days, _Mode.INSTALL, dry_run=dry_run)


def update(context: CommandContext, *, pack: str | None, dry_run: bool) -> None:
    """Run `echod packs update`."""
    inventory = read_pack_inventory(context)
    if pack is not None:
        _update_pack(context, _find_pack(context, inventory, pack), inventory.stale_after_days, dry_run=dry_run)
        return
    if not inventory.packs.installed:
        context.print_info(_NO_PACK_INSTALLED)
    failed = []
    for state in inventory.packs.installed:
        try:
            _require_usable(state)
            _update_pack(context, state, inventory.stale_after_days, dry_run=dry_run)
        except JobRefusedError as error:
            click.echo(wrap(str(error), indent="! "))
            failed.append(state.stack)
    if failed:
        raise JobRefusedError(f"{pluralize(len(failed), 'doc pack')} could not be updated: {', '.join(failed)}.")


def remove(context: CommandContext, *, pack: str, dry_run: bool, yes: bool) -> None:
    """Run `echod packs remove`."""
    state = _find_pack(context, read_pack_inventory(context), pack)
    if not state.is_installed:
        if state.pack is None:
            raise UsageError(f"There is no doc pack {pack}. `echod packs status` lists the installed ones.")
        report_already_so(context, f"the doc pack {pack} is not installed")
    version_text = f" (v{sanitize(state.installed.manifest.version)})" if state.installed.manifest else ""
    edited_text = ", which you edited" if state.edited else ""
    subject = f"the doc pack {pack}{version_text}{edited_text}"
    change = Change(
        preview=wrap(f"Would remove {subject}. Its text would be archived.") if dry_run else "",
        steps=[Step(pack, partial(_run_remove_job, pack))],
        question=Confirmation(f"Remove {subject}? Its text is archived."),
    )
    make_change(context, change, WriteOptions(dry_run, yes))


def _find_pack(context: CommandContext, inventory: PackInventory, stack: str) -> PackState:
    """Find a pack by its name. It may be neither installed nor in a registry.

    Raises:
        UsageError: it is not a valid name.
        JobRefusedError: the installed pack is not usable.
    """
    if not is_stack_name(stack):
        raise UsageError(
            f"{sanitize(stack)!r} is not a valid name of a doc pack: "
            "use a letter, then 1 to 63 letters, digits, - and _."
        )
    not_installed = pack_state(InstalledPack(stack), None, packs_job.local_now(context.now), inventory.stale_after_days)
    state = next((state for state in inventory.packs.packs if state.stack == stack), not_installed)
    _require_usable(state)
    return state


def _require_usable(state: PackState) -> None:
    """Check that an installed pack is usable. A later version of echod may need what this one cannot read."""
    if state.installed.blocked:
        raise JobRefusedError(
            f"{state.installed.problem} Nothing was changed. Fix it, or delete it and install the pack again."
        )


def _update_pack(context: CommandContext, state: PackState, stale_after_days: int, *, dry_run: bool) -> None:
    if state.installed.manifest is None:
        problem = "has no manifest, so its version is not known" if state.is_installed else "is not installed"
        fix = f"echod packs install {state.stack}"
        raise JobRefusedError(f"The doc pack {state.stack} {problem}. Install it with: {fix}")
    _install_or_update(context, state, stale_after_days, _Mode.UPDATE, dry_run=dry_run)


def _install_or_update(
    context: CommandContext, state: PackState, stale_after_days: int, mode: _Mode, *, dry_run: bool
) -> None:
    with context.open_read_context() as read_context:
        plan = _plan_pack(read_context, state, packs_job.local_now(context.now))
    if isinstance(plan, JobBlocked):
        raise refusal(plan.reason)
    before = state.installed
    unchanged = (plan.memory, plan.manifest) == (before.memory, before.manifest)

    def step(runner: JobRunner) -> str:
        def action(locations: PackLocations, job: JobContext) -> JobOutcome:
            # The pack may have changed until its role was locked. The registries were read a moment ago.
            installed = locations.read_installed().get(state.stack)
            current = pack_state(installed, state.pack, packs_job.local_now(context.now), stale_after_days)
            return packs_job.install_or_update(job, current)

        result = _run_pack_job(runner, state.stack, mode.reason, action)
        undoable = plan.memory != before.memory or not plan.manifest.is_same_install(before.manifest)
        lines = _describe_update(state, plan, mode, dry_run=False)
        return "\n".join([*lines, *([result.undo_hint] if undoable else [])])

    change = Change(
        preview="\n".join(_describe_update(state, plan, mode, dry_run=dry_run)) if dry_run or unchanged else "",
        steps=() if unchanged else [Step(state.stack, step)],
    )
    make_change(context, change, WriteOptions(dry_run))


def _plan_pack(read_context: ReadContext, state: PackState, now: datetime) -> PackPlan | JobBlocked:
    role = read_context.pack_locations.pack_role(state.stack)
    if state.installed.memory is None:
        return packs_job.plan_pack(state, None, None, now)
    with read_context.reader.open_read_only(role) as session:
        base = packs_job.read_installed_text(session, state)
        return packs_job.plan_pack(state, session.read().memory.data, base, now)


def _run_remove_job(stack: str, runner: JobRunner) -> str:
    def action(locations: PackLocations, job: JobContext) -> JobOutcome:
        return packs_job.remove_pack(job, locations.read_installed().get(stack).manifest_bytes)

    result = _run_pack_job(runner, stack, "removed by the user", action)
    archive = Path(result.job.store) / result.job.role / "archive"
    return "\n".join(
        [
            f"Removed the doc pack {stack}. Its text is in its archive:",
            f"  {short_path(str(archive))}",
            result.undo_hint,
        ]
    )


def _run_pack_job(
    runner: JobRunner, stack: str, reason: str, action: Callable[[PackLocations, JobContext], JobOutcome]
) -> ManualJobResult:
    """Run a job in the role of a pack."""
    locations = runner.services.read_context.pack_locations
    role = locations.pack_role(stack)

    def prepare() -> None:
        sync_manifests(runner.services.engine, locations.claude_home)
        create_global_role(role)

    return runner.run(ManualJob(JobKind.PACK, role, reason), lambda job: action(locations, job), prepare=prepare)


def _describe_update(state: PackState, plan: PackPlan, mode: _Mode, *, dry_run: bool) -> Iterator[str]:
    """Describe what was or would be done to a pack and to the user's edits."""
    before, after = state.installed.manifest, plan.manifest
    same_text = plan.memory == state.installed.memory
    if same_text and (before is None or before.version == after.version):
        yield wrap(" ".join(_unchanged_sentences(state, plan, mode, dry_run=dry_run)), hang="  ")
        return
    verbs = {True: ("Would install", "Installed"), False: ("Would update", "Updated")}[before is None]
    version = f"v{sanitize(after.version)}"
    if before is not None and before.version != after.version:
        version = f"v{sanitize(before.version)} to {version}{', the text stays the same' if same_text else ''}"
    elif before is not None and state.installed.memory is not None:
        version += ", another text of the same version"
    yield wrap(f"{verbs[0] if dry_run else verbs[1]} the doc pack {state.stack} ({version}).", hang="  ")
    if plan.upgrade is not None:
        yield from _edit_lines(plan, plan.upgrade)


def _edit_lines(plan: PackPlan, upgrade: UpgradeResult) -> Iterator[str]:
    if not plan.base_known:
        yield wrap(
            "The text that had been installed is not known. Entries without the pack as their source were kept, all "
            "others replaced. The old file is in the pack's archive.",
            indent="  ",
        )
    if upgrade.edited:
        yield wrap(f"Your edits were kept: {_quoted_titles(upgrade.edited)}.", indent="  ")
    if upgrade.deleted:
        yield wrap(f"Entries that you deleted stay deleted: {_quoted_titles(upgrade.deleted)}.", indent="  ")
    if upgrade.overridden and plan.manifest.sha256:
        titles, pristine_file = _quoted_titles(upgrade.overridden), pristine_name(plan.manifest.sha256)
        yield wrap(f"Your edits replace parts of the new version: {titles}. {pristine_file} has its text.", indent="  ")


def _unchanged_sentences(state: PackState, plan: PackPlan, mode: _Mode, *, dry_run: bool) -> Iterator[str]:
    manifest, before = plan.manifest, state.installed.manifest
    yield f"The doc pack {state.stack} is {mode.unchanged_text} (v{sanitize(manifest.version)})."
    if state.edited:
        yield "Your edits stay."
    match state.update_status:
        case UpdateStatus.OLDER_VERSION if state.pack is not None:
            yield f"The newest version in a registry is v{state.pack.listing.version}, which is older."
        case UpdateStatus.NOT_IN_REGISTRY:
            yield "It is in no registry any more."
        case UpdateStatus.UNKNOWN:
            yield "Its text differs from the registry's. To get that, remove the pack and install it again."
        case _:
            pass
    if not manifest.is_same_install(before):
        yield f"Its manifest {'would be' if dry_run else 'was'} corrected."
    if manifest.checked_at != (before.checked_at if before else None):
        yield "No update was found, so it counts as fresh again."


def _quoted_titles(titles: Sequence[str]) -> str:
    shown = ", ".join(f'"{sanitize(title)}"' for title in titles[:_MAX_SHOWN_TITLES])
    more = len(titles) - _MAX_SHOWN_TITLES
    return f"{shown} and {more} more" if more > 0 else shown

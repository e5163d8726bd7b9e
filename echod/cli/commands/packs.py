"""`echod packs install`, `update` and `remove`: each as a job of its own, which `echod undo` takes back.

What is said of a pack that was installed or updated: how it is now, and what became of a person's edits.

What `echod packs list` and `echod packs status` say to people.

`echod packs list` and `echod packs status`: which doc packs there are, and how those stand that are installed.

Commands about doc packs and the global memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import click

from echod.app.context import ReadContext, open_read_context
from echod.app.services import open_services
from echod.cli import options
from echod.cli.context import CommandContext, notify_daemon
from echod.cli.execute import JobRefusedError, ManualJob, ManualJobResult, run_manual_job
from echod.cli.output import pluralize, sanitize, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import confirm as ask
from echod.cli.targets import require_write_mode, select_stores
from echod.contract.commands import PacksReport
from echod.contract.status import PackInfo, to_json
from echod.errors import UsageError
from echod.jobs import packs as packs_job
from echod.jobs.base import JobBlocked, JobContext, JobOutcome
from echod.jobs.packs import PackPlan, pristine_name
from echod.memory.packs.manifest import is_stack_name
from echod.memory.packs.upgrade import UpgradeResult
from echod.packs.check import PackCheckResult, PackState, UpdateStatus, check_packs, pack_state
from echod.packs.installed import InstalledPack, PackLocations
from echod.packs.manifests import sync_manifests
from echod.state.job import JobKind
from echod.status.packs import pack_info
from echod.store.create import create_global_role

_MAX_SHOWN_TITLES = 4


def describe_update(state: PackState, plan: PackPlan, *, dry_run: bool, is_install: bool) -> Iterator[str]:
    """What was done to a pack, or would be, and what became of a person's edits."""
    before, after = state.installed.manifest, plan.manifest
    same_text = plan.memory == state.installed.memory
    if same_text and (before is None or before.version == after.version):
        yield wrap(" ".join(_unchanged_sentences(state, plan, dry_run=dry_run, is_install=is_install)), hang="  ")
        return
    verb = "install" if before is None else "update"
    verb_text = f"Would {verb}" if dry_run else f"{verb.capitalize()}{'ed' if verb == 'install' else 'd'}"
    change = f"v{sanitize(after.version)}"
    if before is not None and before.version != after.version:
        change = f"v{sanitize(before.version)} to {change}{', the text stays the same' if same_text else ''}"
    elif before is not None:
        change += ", another text of the same version" if state.installed.memory is not None else ""
    yield wrap(f"{verb_text} the doc pack {state.stack} ({change}).", hang="  ")
    if plan.upgrade is not None:
        yield from _edit_lines(plan, plan.upgrade)


def _edit_lines(plan: PackPlan, upgrade: UpgradeResult) -> Iterator[str]:
    if not plan.base_known:
        yield wrap(
            "Which text had been installed is not known: what does not name the pack as its source was kept, all "
            "else replaced. The file as it was is in the pack's archive.",
            indent="  ",
        )
    if upgrade.edited:
        yield wrap(f"Your changes were kept: {_quoted_titles(upgrade.edited)}.", indent="  ")
    if upgrade.deleted:
        yield wrap(f"What you had taken out stays out: {_quoted_titles(upgrade.deleted)}.", indent="  ")
    if upgrade.overridden and plan.manifest.sha256:
        pristine_file = pristine_name(plan.manifest.sha256)
        text = (
            f"Of the new version this gave way to your changes: "
            f"{_quoted_titles(upgrade.overridden)}. It stands in {pristine_file}."
        )
        yield wrap(text, indent="  ")


def _unchanged_sentences(state: PackState, plan: PackPlan, *, dry_run: bool, is_install: bool) -> Iterator[str]:
    manifest = plan.manifest
    version = f"v{sanitize(manifest.version)}"
    yield f"The doc pack {state.stack} is {'installed already' if is_install else 'already up to date'} ({version})."
    if state.edited:
        yield "Your changes in it stay."
    match state.update_status:
        case UpdateStatus.OLDER_VERSION if state.pack is not None:
            yield f"The newest in a registry is v{state.pack.listing.version}, which is older."
        case UpdateStatus.NOT_IN_REGISTRY:
            yield "No registry has it any more."
        case UpdateStatus.UNKNOWN:
            yield "Its text is another one than the registry's; to have that, remove the pack and install it."
        case _:
            pass
    if not manifest.is_same_install(state.installed.manifest):
        yield f"Its manifest {'would be' if dry_run else 'was'} put right."
    if manifest.checked_at != (state.installed.manifest.checked_at if state.installed.manifest else None):
        yield "It was looked for something newer, so that it counts as fresh again."


def _quoted_titles(titles: Sequence[str]) -> str:
    shown = ", ".join(f'"{sanitize(title)}"' for title in titles[:_MAX_SHOWN_TITLES])
    more = len(titles) - _MAX_SHOWN_TITLES
    return f"{shown} and {more} more" if more > 0 else shown


def pack_list_lines(info: PackInfo) -> Iterator[str]:
    """A pack's line in `echod packs list`."""
    if info.installed:
        date_text = f", {info.installed_at[:10]}" if info.installed_at else ""
        version = f"v{sanitize(info.version)}" if info.version else "version not known"
        update_text = (
            f"; v{sanitize(info.available)} available"
            if info.available and info.offer == UpdateStatus.NEW_VERSION
            else ""
        )
        update_text = "; another text available" if info.offer == UpdateStatus.NEW_TEXT else update_text
        yield f"  {info.name:<15} ✓ installed ({version}{sanitize(date_text)}){update_text}"
    else:
        yield f"  {info.name:<15} ○ not installed"


def pack_status_lines(info: PackInfo, stale_after_days: int) -> Iterator[str]:
    """A pack's lines in `echod packs status`."""
    version = f"v{sanitize(info.version)}" if info.version else "-"
    age = "" if info.installed_days is None else f"installed {pluralize(max(0, info.installed_days), 'day')} ago"
    state = {True: f"⚠ stale (> {stale_after_days} days)", False: "✓ fresh", None: "? age not known"}[info.stale]
    yield f"  {info.name:<15} {version:<9} {age:<24} {state}"
    if info.stale and (info.updated_days or 0) > stale_after_days:
        yield f"      its text was last worked on {pluralize(info.updated_days or 0, 'day')} ago"
    if info.edited:
        yield "      changed by hand since it was installed; an update keeps that"
    if info.offer in (UpdateStatus.NEW_VERSION, UpdateStatus.NEW_TEXT):
        update_text = (
            f"v{sanitize(info.available or '')}"
            if info.offer == UpdateStatus.NEW_VERSION
            else "another text of this version"
        )
        yield f"      {update_text} is there: echod packs update {info.name}"
    elif info.stale:
        yield f"      have it looked for something newer: echod packs update {info.name}"


def list_packs(context: CommandContext, *, as_json: bool) -> None:
    """Print every pack, installed or not."""
    inventory, _ = read_pack_inventory(context)
    report = PacksReport(tuple(map(pack_info, inventory.packs)), inventory.registry_problems + inventory.store_problems)
    if as_json:
        click.echo(to_json(report))
        return
    click.echo("Available doc packs:")
    for info in report.packs:
        click.echo("\n".join(pack_list_lines(info)))
    _print_problems(report.problems)


def show_pack_status(context: CommandContext, *, as_json: bool) -> None:
    """Print how the installed packs are."""
    inventory, stale_after_days = read_pack_inventory(context)
    report = PacksReport(tuple(map(pack_info, inventory.installed)), inventory.store_problems)
    if as_json:
        click.echo(to_json(report))
        return
    if not report.packs:
        click.echo("No doc pack is installed; echod packs list shows what there is.")
    else:
        click.echo("Doc pack status:")
        for info in report.packs:
            click.echo("\n".join(pack_status_lines(info, stale_after_days)))
    _print_problems(report.problems)


def read_pack_inventory(context: CommandContext) -> tuple[PackCheckResult, int]:
    """Everything, and after how many days a pack is stale."""
    with open_read_context(context.paths, context.settings, context.environ, context.now) as read_context:
        current_stores = select_stores(context, None) or ()
        projects = (*read_context.discover_stores().projects, *(store.project for store in current_stores))
        stale_after_days = read_context.staleness_days(projects)
        return check_packs(
            read_context.pack_locations, read_context.pack_locations.read_installed(), context.now(), stale_after_days
        ), stale_after_days


def _print_problems(problems: Sequence[str]) -> None:
    for problem in problems:
        click.echo(wrap(sanitize(problem), indent="! "))


_PackAction = Callable[[PackLocations, JobContext], JobOutcome]
"""What is done to a pack, whose role is held."""


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

    def action(locations: PackLocations, job: JobContext) -> JobOutcome:
        return packs_job.remove_pack(job, locations.read_installed().get(stack).manifest_bytes)

    result = _run_pack_job(context, stack, "a person removes it", action)
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
        plan = _plan_pack(read_context, state, packs_job.local_now(context.now))
    if isinstance(plan, JobBlocked):
        raise JobRefusedError(f"{plan.reason[:1].upper()}{plan.reason[1:].rstrip('.')}. Nothing was changed.")
    before = state.installed
    if dry_run or (plan.memory, plan.manifest) == (before.memory, before.manifest):
        message = "\n".join(describe_update(state, plan, dry_run=dry_run, is_install=is_install))
        click.echo(message) if dry_run else context.print_info(message)
        return
    require_write_mode(context)

    def action(locations: PackLocations, job: JobContext) -> JobOutcome:
        # What is installed may have changed until the role was ours; the registries were read a moment ago.
        current = pack_state(
            locations.read_installed().get(state.stack), state.pack, packs_job.local_now(context.now), stale_after_days
        )
        return packs_job.install_or_update(job, current)

    result = _run_pack_job(
        context, state.stack, "a person installs it" if is_install else "a person updates it", action
    )
    context.print_info("\n".join(describe_update(state, plan, dry_run=False, is_install=is_install)))
    if plan.memory != before.memory or not plan.manifest.is_same_install(before.manifest):
        context.print_info(result.undo_hint)


def _plan_pack(read_context: ReadContext, state: PackState, now: datetime) -> PackPlan | JobBlocked:
    role = read_context.pack_locations.pack_role(state.stack)
    if state.installed.memory is None:
        return packs_job.plan_pack(state, None, None, now)
    with read_context.reader.open_read_only(role) as session:
        return packs_job.plan_pack(
            state, session.read().memory.data, packs_job.read_installed_text(session, state), now
        )


def _run_pack_job(context: CommandContext, stack: str, reason: str, action: _PackAction) -> ManualJobResult:
    """Do it in the pack's role, as a job of its own. No workflow holds the global store: it belongs to no project."""
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        locations = services.read_context.pack_locations
        role = locations.pack_role(stack)

        def prepare() -> None:
            sync_manifests(services.engine, locations.claude_home)
            create_global_role(role)

        result = run_manual_job(
            context,
            services,
            ManualJob(JobKind.PACK, role, reason),
            lambda job: action(locations, job),
            prepare=prepare,
        )
    notify_daemon(context)
    return result


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
    not_installed = pack_state(InstalledPack(stack), None, packs_job.local_now(context.now), stale_after_days)
    return next((state for state in inventory.packs if state.stack == stack), not_installed), stale_after_days


def _require_usable(state: PackState) -> None:
    """What cannot be used stays as it is: it may say what a later version of echod needs to know."""
    if state.installed.blocked:
        raise JobRefusedError(
            f"{state.installed.problem} Nothing was changed; mend it, or delete it and install again."
        )


pack_argument = click.argument("pack", help="The pack's name, as `echod packs list` shows it.")


@click.group()
def packs() -> None:
    """Install and update doc packs."""


@packs.command("list", epilog=example("echod packs list"))
@options.json
@pass_command_context
def list_(context: CommandContext, *, json: bool) -> None:
    """List the packs there are, and which of them are installed."""
    list_packs(context, as_json=json)


@packs.command(epilog=example("echod packs install fastapi"))
@pack_argument
@options.dry_run
@pass_command_context
def install(context: CommandContext, *, pack: str, dry_run: bool) -> None:
    """Install a pack for all projects. Doing it again changes nothing, and what you changed in it stays."""
    install_pack(context, pack, dry_run=dry_run)


@packs.command(epilog=example("echod packs update fastapi"))
@click.argument("pack", required=False, help="Only this pack; default: all installed.")
@options.dry_run
@pass_command_context
def update(context: CommandContext, *, pack: str | None, dry_run: bool) -> None:
    """Bring an installed pack up to the newest version there is. What you changed in it stays."""
    update_packs(context, pack, dry_run=dry_run)


@packs.command(epilog=example("echod packs remove fastapi"))
@pack_argument
@options.dry_run
@options.yes
@pass_command_context
def remove(context: CommandContext, *, pack: str, dry_run: bool, yes: bool) -> None:
    """Take an installed pack out of the global memory; its text goes to its archive."""
    remove_installed_pack(context, pack, dry_run=dry_run, yes=yes)


@packs.command(epilog=example("echod packs status --json"))
@options.json
@pass_command_context
def status(context: CommandContext, *, json: bool) -> None:
    """How old are the installed packs, are they as they were installed, is there something newer?"""
    show_pack_status(context, as_json=json)

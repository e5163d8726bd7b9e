"""`echod packs list` and `echod packs status`: which doc packs there are, and how those stand that are installed."""

from __future__ import annotations

from collections.abc import Sequence

import click

from echod.app.context import open_read_context
from echod.cli.by_hand import select_stores
from echod.cli.context import CommandContext
from echod.cli.output import sanitize, wrap
from echod.cli.packs_text import pack_list_lines, pack_status_lines
from echod.contract.commands import PacksReport
from echod.contract.status import to_json
from echod.packs.check import PackCheckResult, check_packs
from echod.status.packs import pack_info


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

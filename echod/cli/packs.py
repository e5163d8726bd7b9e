"""`echod packs list` and `echod packs status`: which doc packs there are, and how those stand that are installed."""

from __future__ import annotations

from collections.abc import Sequence

import click

from echod.app.context import look_out
from echod.cli.by_hand import stores_meant
from echod.cli.packs_text import listed, stands
from echod.cli.shell import Shell
from echod.cli.text import paragraph, plain
from echod.contract.commands import PacksReport
from echod.contract.status import to_json
from echod.packs.check import Inventory, take_inventory
from echod.status.packs import pack_info


def list_packs(shell: Shell, *, as_json: bool) -> None:
    """Print every pack, installed or not."""
    inventory, _ = look(shell)
    report = PacksReport(tuple(map(pack_info, inventory.packs)), inventory.registry_problems + inventory.store_problems)
    if as_json:
        click.echo(to_json(report))
        return
    click.echo("Available doc packs:")
    for info in report.packs:
        click.echo("\n".join(listed(info)))
    _say_problems(report.problems)


def show_status(shell: Shell, *, as_json: bool) -> None:
    """Print how the installed packs are."""
    inventory, days = look(shell)
    report = PacksReport(tuple(map(pack_info, inventory.installed)), inventory.store_problems)
    if as_json:
        click.echo(to_json(report))
        return
    if not report.packs:
        click.echo("No doc pack is installed; echod packs list shows what there is.")
    else:
        click.echo("Doc pack status:")
        for info in report.packs:
            click.echo("\n".join(stands(info, days)))
    _say_problems(report.problems)


def look(shell: Shell) -> tuple[Inventory, int]:
    """Everything, and after how many days a pack is stale."""
    with look_out(shell.paths, shell.settings, shell.environ, shell.now) as lookout:
        here = stores_meant(shell, None) or ()
        projects = (*lookout.roster().projects, *(store.project for store in here))
        days = lookout.staleness_days(projects)
        return take_inventory(lookout.packs, lookout.packs.installed(), shell.now(), days), days


def _say_problems(problems: Sequence[str]) -> None:
    for problem in problems:
        click.echo(paragraph(plain(problem), indent="! "))

"""Arguments and options that several commands share, and the completion of their values in a shell.

Each has the same name and help everywhere. A shell calls the completions while the user types. So an error completes
nothing, and nothing is printed or created.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem, FishComplete, ZshComplete, add_completion_class

from echod import paths
from echod.cli import commands
from echod.errors import EchodError
from echod.lazy import lazy_imports

with lazy_imports(__name__):
    from echod.cli import context as command_context
    from echod.cli import targets
    from echod.projects import registry
    from echod.status import sections

if TYPE_CHECKING:
    from echod.cli.context import CommandContext  # loads modules that help does not need


_MAX_ITEMS: Final = 200

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Candidates = Callable[["CommandContext", click.Context], Iterable[CompletionItem]]


def _context() -> CommandContext:
    return command_context.CommandContext.from_process(quiet=True)


def _completion(candidates: Candidates) -> Complete:
    """Return the callback for click that offers the candidates which begin as typed."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
        try:
            matching = (item for item in candidates(_context(), ctx) if item.value.startswith(incomplete))
            return list(islice(matching, _MAX_ITEMS))
        except (EchodError, OSError):
            return []

    return complete


def _entries(context: CommandContext, ctx: click.Context) -> Iterator[CompletionItem]:
    with context.open_read_context() as read_context:
        stores = targets.select_stores(context, _typed_project(ctx)) or read_context.discover_stores().stores
        for role in targets.list_roles_of(stores):
            for match in targets.list_memory_matches(read_context, role):
                yield CompletionItem(match.id, help=f"{role.name}: {match.title}")


def _roles(context: CommandContext, ctx: click.Context) -> Iterator[CompletionItem]:
    with context.open_read_context() as read_context:
        stores = targets.select_stores(context, _typed_project(ctx)) or read_context.discover_stores().stores
        yield from map(CompletionItem, sorted({role.name for role in targets.list_roles_of(stores)}))


def _packs(context: CommandContext, ctx: click.Context) -> Iterator[CompletionItem]:  # noqa: ARG001
    for info in map(sections.pack_info, commands.packs.read_pack_inventory(context).packs.packs):
        yield CompletionItem(info.name, help=info.title)


def _jobs(context: CommandContext, ctx: click.Context) -> Iterator[CompletionItem]:  # noqa: ARG001
    with context.open_read_context() as read_context:
        seen: set[int] = set()
        for commit in read_context.reader.history(None):
            if commit.job is not None and commit.job not in seen:
                seen.add(commit.job)
                yield CompletionItem(str(commit.job), help=f"{commit.kind} {commit.role.name}: {commit.summary}")


def _failed_jobs(context: CommandContext, ctx: click.Context) -> Iterator[CompletionItem]:  # noqa: ARG001
    for job in commands.log.read_retryable_jobs(context):
        yield CompletionItem(str(job.id), help=f"{job.kind} {job.role}: {job.result}")


def _review_items(context: CommandContext, ctx: click.Context) -> Iterator[CompletionItem]:  # noqa: ARG001
    for item in commands.review.collect_open_items(context):
        yield CompletionItem(item.id, help=f"{item.kind}: {item.text}")


def complete_project(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Complete a path, and the registered projects."""
    typed_path = CompletionItem(incomplete, type="file")
    try:
        projects = registry.ProjectRegistry(_context().paths.projects).list_projects().projects
    except (EchodError, OSError):
        return [typed_path]
    typed = str(paths.expand_home(Path(incomplete))) if incomplete else ""
    return [typed_path, *(CompletionItem(str(one.root)) for one in projects if str(one.root).startswith(typed))]


def _typed_project(ctx: click.Context) -> Path | None:
    path = ctx.params.get("path") or ctx.params.get("project")
    return Path(os.fspath(path)) if path is not None else None


def _shown(context: CommandContext, ctx: click.Context) -> Iterator[CompletionItem]:
    yield from _roles(context, ctx)
    yield from _entries(context, ctx)


complete_entry: Final = _completion(_entries)
complete_shown: Final = _completion(_shown)
complete_role: Final = _completion(_roles)
complete_pack: Final = _completion(_packs)
complete_job: Final = _completion(_jobs)
complete_failed_job: Final = _completion(_failed_jobs)
complete_review_item: Final = _completion(_review_items)


class PathSafeZshComplete(ZshComplete):
    """Zsh: a typed path is completed as a path only, and an empty word is completed at all.

    Matches with another prefix beside a path would delete the word. An empty value shifts the fields of click's loop.
    """

    source_template = ZshComplete.source_template.replace(
        "_path_files -f\n", '_path_files -f\n            [[ -n "$words[CURRENT]" ]] && return\n'
    ).replace("in ${response};", 'in "${(@)response}";')


class WholeTitleFishComplete(FishComplete):
    """Fish: a description is shown whole, also after its first comma."""

    source_template = FishComplete.source_template.replace("string split ", "string split -m 1 ")


def use_own_scripts() -> None:
    """Make click print and answer these scripts."""
    add_completion_class(PathSafeZshComplete)
    add_completion_class(WholeTitleFishComplete)


PATH: Final = click.Path(path_type=Path)

PATH_OR_NAME: Final = click.Path(readable=False)
"""A path or something else. A shell completes it as a path, and it stays as it was typed."""


class WholeNumber(click.IntRange):
    """A whole number with bounds. Errors call it so."""

    name = "whole number"


class Number(click.FloatRange):
    """A number with bounds. Errors call it so."""

    name = "number"


class SettableLayer(StrEnum):
    """The layers that `echod raise` can give."""

    ETCHED = "etched"
    NOTES = "notes"
    INSCRIBED = "inscribed"


json = click.option("--json", is_flag=True, help="Print JSON for scripts (docs/json.md).")
plan_json = click.option("--json", is_flag=True, help="With --dry-run: print JSON for scripts (docs/json.md).")
dry_run = click.option("--dry-run", is_flag=True, help="Only show what would be changed.")
yes = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
force = click.option("--force", is_flag=True, help="Write even while a workflow runs.")

project_path = click.argument(
    "path", type=PATH, shell_complete=complete_project, help="A project, or any directory in one."
)
project_path_or_cwd = click.argument(
    "path",
    type=PATH,
    default=Path(),
    shell_complete=complete_project,
    help="A project, or any directory in one.  [default: .]",
)
project_path_to_change = click.argument(
    "path",
    type=PATH,
    required=False,
    shell_complete=complete_project,
    help="A project; default: the current directory's.",
)
in_all = click.option("--all", "in_all", is_flag=True, help="All registered projects.")
project_path_or_all = click.argument(
    "path",
    type=PATH,
    required=False,
    shell_complete=complete_project,
    help="A project; default: the current directory's, else all.",
)
project_option = click.option(
    "--project",
    metavar="PATH",
    type=PATH,
    shell_complete=complete_project,
    help="The project; default: the current one.",
)
project_or_cwd_option = click.option(
    "--project",
    metavar="PATH",
    type=PATH,
    default=Path(),
    show_default=True,
    help="The project; default: the current directory.",
)
only_project_option = click.option(
    "--project", metavar="PATH", type=PATH, shell_complete=complete_project, help="Only items of this project."
)
in_global = click.option("--global", "in_global", is_flag=True, help="Search the global store (docs/packs.md).")
only_role = click.option("--role", metavar="NAME", shell_complete=complete_role, help="Only this role.")
as_of = click.option("--as-of", metavar="DATE", help="Plan as if it were that day, such as 2026-11-20.")
entry = click.argument("entry", shell_complete=complete_entry, help="An entry id, or a unique prefix of one.")
limit = click.option(
    "--limit",
    metavar="N",
    type=WholeNumber(1, 10_000),
    default=20,
    show_default=True,
    help="The number of rows, newest first.",
)
archive_root = click.option(
    "--root", metavar="ROOT", type=PATH, help="The directory that has memory/; default: that of the current project."
)

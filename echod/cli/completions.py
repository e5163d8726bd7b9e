"""Completion of values with the Tab key: entries with their titles, roles, doc packs, jobs, review items, projects.

A shell calls these while the user types. So an error completes nothing, and nothing is printed or created.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem, FishComplete, ZshComplete, add_completion_class

from echod import paths
from echod.cli import commands
from echod.errors import EchodError
from echod.lazy_imports import lazy_imports

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

"""`echod migrate`: bring names in metadata up to date, or move a memory to the present layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from echod.cli import options
from echod.cli.context import CommandContext
from echod.cli.execute import Change, Confirmation, JobRunner, ManualJob, Step, WriteOptions, make_change
from echod.cli.output import pluralize, problem_line, sanitize, short_path, title_text, wrap
from echod.cli.root import example, pass_command_context
from echod.cli.targets import block_title, list_roles_of, select_project_to_change
from echod.jobs.migrate import migrate_names, plan_names
from echod.memory.document import parse
from echod.memory.model import Document
from echod.memory.renames import RenamedDocument
from echod.state.job import JobKind
from echod.store.layout import Role

_MAX_ROWS = 40


class _RoleNames(NamedTuple):
    role: Role
    renamed: RenamedDocument


@click.command(epilog=example("echod migrate ~/src/my-project --dry-run"))
@options.project_path_to_change
@options.dry_run
@options.yes
@options.force
@pass_command_context
def migrate(context: CommandContext, *, path: Path | None, dry_run: bool, yes: bool, force: bool) -> None:
    """Bring the names in a memory up to date.

    Agents, commands and paths of earlier versions of the workflow plugins are renamed in the source and evidence of
    entries, never in a learning. Each changed file is copied to its archive first.
    """
    project = select_project_to_change(context, path, in_all=False)
    assert project is not None  # noqa: S101  only `--all` has none
    write_options = WriteOptions(dry_run, yes, force)
    make_change(context, _names_change(context, project), write_options)


def _names_change(context: CommandContext, project: Path) -> Change:
    found: list[_RoleNames] = []
    problems: list[str] = []
    with context.open_read_context() as read_context:
        for role in list_roles_of(context.list_stores(project)):
            document = parse(read_context.reader.read_role(role).memory.text)
            if isinstance(document, Document):
                found.append(_RoleNames(role, plan_names(role, document)))
            else:
                problems.append(f"{role.name} is left alone: {document.reason}")
    changed = [one for one in found if one.renamed.entries]
    entries = sum(len(one.renamed.entries) for one in changed)
    current = sum(one.renamed.current for one in found)
    counted = f"{pluralize(entries, 'entry', 'entries')} to migrate, {current} already current."
    lines = [line for one in found for line in _names_lines(one)]
    shown = lines[:_MAX_ROWS] + ([f"  ... and {len(lines) - _MAX_ROWS} more lines"] if len(lines) > _MAX_ROWS else [])
    return Change(
        preview="\n".join([*shown, *map(problem_line, problems), counted]),
        steps=[_names_step(one.role) for one in changed],
        question=Confirmation(f"Rename in {pluralize(entries, 'entry', 'entries')}?") if changed else None,
    )


def _names_lines(one: _RoleNames) -> Iterator[str]:
    if one.renamed.entries or one.renamed.ambiguous:
        yield f"{one.role.name}  {short_path(one.role.store.key)}"
    for entry in one.renamed.entries:
        yield wrap(title_text(block_title(entry.before)), indent=f"  {entry.old_id}  ")
        for change, times in Counter(entry.changes).items():
            repeated = f" ({times} times)" if times > 1 else ""
            yield f"    {change.field}: {sanitize(change.old)} -> {sanitize(change.new)}{repeated}"
    for identity in one.renamed.ambiguous:
        text = "it names Tarnished, which meant a teammate for one day and the lead since; look at it yourself"
        yield wrap(text, indent=f"  {identity}  ")


def _names_step(role: Role) -> Step:
    def step(runner: JobRunner) -> str:
        job = ManualJob(JobKind.MIGRATE, role, "the user migrates the names")
        return runner.run_multi_role(job, lambda resources: migrate_names(resources, role)).describe(role.name)

    return step

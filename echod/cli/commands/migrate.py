"""`echod migrate`: bring names in metadata up to date, or move a memory to the present layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from echod.app.context import ReadContext
from echod.cli.context import CommandContext
from echod.cli.execute import (
    Change,
    Confirmation,
    JobRefusedError,
    JobRunner,
    ManualJob,
    Step,
    WriteNotAllowedError,
    WriteOptions,
    make_change,
    report_already_so,
)
from echod.cli.output import problem_line, sanitize, short_path, title_text, wrap
from echod.cli.targets import block_title, list_roles_of, select_project_to_change
from echod.jobs.base import JobDone, JobOutcome, JobResources
from echod.jobs.migrate import (
    NEW_LAYOUT,
    OLD_LAYOUT,
    MovePlan,
    create_new_store,
    find_move_problem,
    migrate_names,
    move_role,
    new_store,
    old_store,
    plan_knowledge_names,
    plan_move,
    plan_names,
)
from echod.memory import KNOWLEDGE_FILE, MEMORY_FILE
from echod.memory.document import parse
from echod.memory.entry_matching import RenamedDocument
from echod.memory.model import Unreadable
from echod.memory.text import pluralize
from echod.scheduler.needs import describe_verdict
from echod.state.jobs import JobKind
from echod.state.repair import copy_entry_rows
from echod.store.git import find_tracked_file
from echod.store.layout import ARCHIVE, QUARANTINE, Role
from echod.workflows.model import GateState

_MAX_ROWS = 40
_MAX_NAMES = 4


class _FileNames(NamedTuple):
    role: Role
    file: str
    renamed: RenamedDocument


def migrate(context: CommandContext, *, path: Path | None, layout: bool, dry_run: bool, yes: bool, force: bool) -> None:
    """Run `echod migrate`."""
    project = select_project_to_change(context, path, in_all=False)
    assert project is not None  # noqa: S101  only `--all` has none
    write_options = WriteOptions(dry_run, yes, force)
    change = _layout_change(context, project, write_options) if layout else _names_change(context, project)
    make_change(context, change, write_options)


def _names_change(context: CommandContext, project: Path) -> Change:
    found: list[_FileNames] = []
    problems: list[str] = []
    with context.open_read_context() as read_context:
        for role in list_roles_of(context.list_stores(project)):
            view = read_context.reader.read_role(role)
            document = parse(view.memory.text)
            if isinstance(document, Unreadable):
                problems.append(f"{role.name} is left alone: {document.reason}")
                continue
            found.append(_FileNames(role, MEMORY_FILE, plan_names(role, document)))
            if (knowledge := plan_knowledge_names(view)) is not None:
                found.append(_FileNames(role, KNOWLEDGE_FILE, knowledge))
    changed = [one for one in found if one.renamed.entries]
    entries = sum(len(one.renamed.entries) for one in changed)
    current = sum(one.renamed.current for one in found)
    counted = f"{pluralize(entries, 'entry', 'entries')} to migrate, {current} already current."
    lines = [line for one in found for line in _names_lines(one)]
    shown = lines[:_MAX_ROWS] + ([f"  ... and {len(lines) - _MAX_ROWS} more lines"] if len(lines) > _MAX_ROWS else [])
    return Change(
        preview="\n".join([*shown, *map(problem_line, problems), counted]),
        steps=[_names_step(role) for role in dict.fromkeys(one.role for one in changed)],
        question=Confirmation(f"Rename in {pluralize(entries, 'entry', 'entries')}?") if changed else None,
    )


def _names_lines(one: _FileNames) -> Iterator[str]:
    if one.renamed.entries or one.renamed.ambiguous:
        yield f"{one.role.name}  {short_path(str(one.role.path / one.file))}"
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

    return Step(role.name, step)


def _layout_change(context: CommandContext, project: Path, write_options: WriteOptions) -> Change:
    if (problem := find_move_problem(project)) is not None:
        raise JobRefusedError(f"{problem} Nothing was changed.")
    source = old_store(project)
    plans: list[tuple[Role, MovePlan]] = []
    if source in context.list_stores(project):
        with context.open_read_context() as read_context:
            for role in list_roles_of([source]):
                plan = plan_move(read_context.reader.read_role(role))
                if plan.files or plan.problem is not None:
                    plans.append((role, plan))
            if not (write_options.force or write_options.dry_run):
                _check_idle(context, read_context, project)
    moving = [(role, plan) for role, plan in plans if plan.files]
    if not plans:
        report_already_so(context, f"nothing in {source.root} is left to move")
    return Change(
        preview="\n".join(_layout_lines(project, plans)),
        steps=[Step(short_path(str(project)), partial(_move_roles, project, [role for role, _ in moving]))]
        if moving
        else (),
        question=Confirmation(f"Move {pluralize(len(moving), 'role')}?") if moving else None,
    )


def _check_idle(context: CommandContext, read_context: ReadContext, project: Path) -> None:
    """Check that no program wrote to the memory just now. Raises WriteNotAllowedError."""
    verdict = read_context.project_gate.check(project, context.list_stores(project), context.now())
    if verdict.state is GateState.QUIET:
        raise WriteNotAllowedError(
            f"{describe_verdict(verdict).rstrip('.')}. Nothing was changed. Try again in a minute, or use --force."
        )


def _layout_lines(project: Path, plans: Sequence[tuple[Role, MovePlan]]) -> Iterator[str]:
    yield f"{short_path(str(project / OLD_LAYOUT))} -> {short_path(str(project / NEW_LAYOUT))}"
    for role, plan in plans:
        if plan.problem is not None:
            yield problem_line(sanitize(f"{role.name} stays: {plan.problem}."), indent="  ")
            continue
        target = Role(new_store(project), role.name)
        merged = " (merged with what is there)" if target.memory.exists() else ""
        yield wrap(sanitize(f"{', '.join(plan.files)}{merged}"), indent=f"  {role.name:<14} ")
    if any(find_tracked_file(project, role.memory) is not None for role, _ in plans):
        yield wrap("git tracks these files, so the move is a change to commit.", indent="  ")
    yield wrap("The archives stay, and get a copy of what moves.", indent="  ")
    if others := _other_files(plans):
        names = ", ".join(others[:_MAX_NAMES]) + (f" and {len(others) - _MAX_NAMES} more" * (len(others) > _MAX_NAMES))
        yield wrap(sanitize(f"Files that are no memory stay: {names}"), indent="  ")


def _other_files(plans: Sequence[tuple[Role, MovePlan]]) -> list[str]:
    """Return the visible files beside the roles' own, by their paths in the store of the former layout."""
    root = plans[0][0].store.root
    moving = {role.path / name for role, plan in plans for name in plan.files}
    found = (path for path in root.rglob("*") if path not in moving and path.is_file())
    names = (path.relative_to(root) for path in found)
    return sorted(str(name) for name in names if not ({ARCHIVE, QUARANTINE} & {*name.parts} or str(name)[0] == "."))


def _move_roles(project: Path, roles: Sequence[Role], runner: JobRunner) -> str:
    """Move all roles as one job."""

    def work(resources: JobResources) -> JobOutcome:
        moved: list[str] = []
        create_new_store(project)
        for role in roles:
            outcome = move_role(resources, role)
            if not isinstance(outcome, JobDone):
                return outcome
            target = new_store(project).key
            copy_entry_rows(runner.services.checked_database.database, role.store.key, target, role.name)
            moved.append(f"{role.name}: {outcome.summary}")
        return JobDone("; ".join(moved), changed=True)

    job = ManualJob(JobKind.MIGRATE, roles[0], "the user migrates the layout")
    return runner.run_multi_role(job, work).describe(str(NEW_LAYOUT))

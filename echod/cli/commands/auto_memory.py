"""Claude Code's own memory: `echod doctor --auto-memory --fix`, and `echod restore --auto-memory`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from echod.auto_memory.changes import MAX_FILE_BYTES, MemoryChanges, NewFile
from echod.auto_memory.copies import CopyError, MemoryCopies, MemoryCopy, copied_directories
from echod.auto_memory.places import default_directory, memory_project, read_directory
from echod.cli.commands.doctor import copies_root, find_memory_places
from echod.cli.context import CommandContext
from echod.cli.execute import Change, Confirmation, JobRunner, ManualJob, Step, WriteOptions, make_change
from echod.cli.output import format_timestamp, problem_line, sanitize, short_path, wrap
from echod.cli.session_roots import memory_job_role
from echod.errors import UsageError, os_reason
from echod.files import read_regular
from echod.jobs.base import JobDone, JobOutcome, JobResources
from echod.memory.auto_memory.notes import INDEX, MemoryDirectory
from echod.memory.auto_memory.repair import IndexRepair, plan_repair
from echod.memory.text import pluralize
from echod.paths import claude_home
from echod.state.jobs import JobKind

_MAX_SHOWN = 12


# Repair


def repair(context: CommandContext, path: Path | None, *, yes: bool) -> None:
    """Repair the pointers of each index, and its order where the host cuts it, after asking. Each is a job.

    Raises:
        UsageError: there is no terminal to ask at.
        EchodError: a repair failed, or was refused; earlier ones are done.
    """
    plans = []
    for place in find_memory_places(context, path).places:
        try:
            directory = read_directory(place.path)
        except OSError as error:
            click.echo(problem_line(f"{place.path} cannot be listed: {os_reason(error)}."), err=True)
            continue
        plan = plan_repair(directory)
        if plan is not None:
            plans.append((place.path, directory, plan))
    for directory_path, _, plan in plans:
        click.echo("\n".join(_repair_lines(directory_path, plan)), err=True)
    steps = [_repair_step(context, place, directory, plan) for place, directory, plan in plans if plan.changes]
    if steps:
        question = Confirmation(f"Repair {pluralize(len(steps), 'index', 'indexes')}?")
        make_change(context, Change("", steps, question), WriteOptions(yes=yes))


def _repair_lines(path: Path, plan: IndexRepair) -> Iterator[str]:
    yield short_path(str(path / INDEX))
    for change in plan.changes[:_MAX_SHOWN]:
        yield wrap(sanitize(change), indent="  ", hang="    ")
    if len(plan.changes) > _MAX_SHOWN:
        yield f"  ... and {len(plan.changes) - _MAX_SHOWN} more"
    for reason in plan.left[:_MAX_SHOWN]:
        yield wrap(sanitize(reason), indent="  - ", hang="    ")


def _repair_step(context: CommandContext, path: Path, directory: MemoryDirectory, plan: IndexRepair) -> Step:
    index = directory.index_file
    before = None if index is None else index.data
    summary = f"{INDEX}: {'; '.join(plan.changes[:3])}{' ...' if len(plan.changes) > 3 else ''}"  # noqa: PLR2004

    def files() -> Mapping[str, NewFile]:
        keeps_time = plan.only_order and index is not None
        return {INDEX: NewFile(plan.data, before, (path / INDEX).stat().st_mtime_ns if keeps_time else None)}

    return _job_step(context, path, "repair", summary, files)


# Restore


def restore(context: CommandContext, path: Path | None, *, number: int | None, dry_run: bool, yes: bool) -> None:
    """Restore files from a copy of auto memory: those that are gone, and with a number also those that differ.

    Raises:
        UsageError: there is no copy, or no directory is named and several have lost files.
        EchodError: the change failed, or was refused.
    """
    copies = _select_copies(context, path)
    try:
        everything = copies.copies()
        copy = copies.newest_with_losses() if number is None else _numbered(everything, number)
    except OSError as error:
        raise UsageError(f"{copies.directory} cannot be listed: {os_reason(error)}.") from error
    lines = [short_path(str(copies.directory))]
    for one in everything[-_MAX_SHOWN:]:
        mark = ">" if one == copy else " "
        lines.append(f"  {mark} copy {one.number}  {format_timestamp(one.at, context.now())}  {len(one.files)} files")
    if copy is None:
        click.echo("\n".join([*lines, "No file that a copy has is gone. To go back to a copy: --copy N"]))
        return
    files = _files_to_restore(copies, copy, only_missing=number is None)
    if not files:
        click.echo("\n".join([*lines, "All files are as in the copy."]))
        return
    for name, new in list(files.items())[:_MAX_SHOWN]:
        lines.append(f"  {'restore' if new.before is None else 'replace'}  {sanitize(name)}")
    if len(files) > _MAX_SHOWN:
        lines.append(f"  ... and {len(files) - _MAX_SHOWN} more files")
    summary = f"{pluralize(len(files), 'file')} restored from copy {copy.number}"
    change = Change(
        "\n".join(lines),
        [_job_step(context, copies.directory, "restore", summary, lambda: files)],
        Confirmation(f"Restore {pluralize(len(files), 'file')}?"),
    )
    make_change(context, change, WriteOptions(dry_run, yes))


def _select_copies(context: CommandContext, path: Path | None) -> MemoryCopies:
    """Return the copies of the memory of a project, or of the only one that has lost files.

    Raises:
        UsageError: there are none, or several.
    """
    root = copies_root(context)
    known = copied_directories(root)
    if not known:
        raise UsageError("There is no copy of auto memory. To have copies made, set: auto_memory.copies = true")
    if path is None:
        selected = [directory for directory in known if _has_losses(root, directory)]
    else:
        start = context.absolute_path(path)
        own = default_directory(claude_home(context.environ), memory_project(start))
        selected = [directory for directory in known if directory in (start, own) or start in directory.parents]
    if len(selected) == 1:
        return MemoryCopies(root, selected[0])
    raise UsageError(f"Name a directory that has copies: {', '.join(map(str, selected or known))}")


def _has_losses(root: Path, directory: Path) -> bool:
    try:
        return MemoryCopies(root, directory).newest_with_losses() is not None
    except (CopyError, OSError):
        return True


def _numbered(copies: Sequence[MemoryCopy], number: int) -> MemoryCopy:
    for copy in copies:
        if copy.number == number:
            return copy
    raise UsageError(f"There is no copy {number}. --dry-run lists the copies.")


def _files_to_restore(copies: MemoryCopies, copy: MemoryCopy, *, only_missing: bool) -> dict[str, NewFile]:
    files = {}
    for name, file in copy.files.items():
        target = copies.directory / name
        try:
            present: bytes | None = read_regular(target, MAX_FILE_BYTES, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            present = None
        except OSError as error:
            raise UsageError(f"{target} cannot be read: {os_reason(error)}.") from error
        if present is not None and only_missing:
            continue
        data = copies.read(file)
        if data != present:
            # The time is restored too, since the host ranks files by it.
            files[name] = NewFile(data, present, file.mtime_ns)
    return files


# Jobs


def _job_step(
    context: CommandContext, directory: Path, kind: str, summary: str, files: Callable[[], Mapping[str, NewFile]]
) -> Step:
    def step(runner: JobRunner) -> str:
        def work(resources: JobResources) -> JobOutcome:
            changes = MemoryChanges(context.paths.auto_memory)
            changes.recover()
            changes.apply(directory, files(), job=resources.job_id, kind=kind, summary=summary, now=context.now())
            return JobDone(summary, changed=True)

        manual_job = ManualJob(JobKind.AUTO_MEMORY, memory_job_role(directory))
        result = runner._replace(force=True).run_multi_role(manual_job, work)
        return result.describe(short_path(str(directory)))

    return Step(short_path(str(directory)), step)

"""Claude Code's own memory: `echod doctor --auto-memory`, `echod restore --auto-memory`, and the undo of both.

What changes files is loaded only where that is asked for, since loading it takes as long as examining a memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from echod.auto_memory.changes import MAX_FILE_BYTES, MemoryChanges, NewFile
from echod.auto_memory.copies import CopyError, MemoryCopies, MemoryCopy, copied_directories
from echod.auto_memory.places import (
    FoundPlaces,
    default_directory,
    find_places,
    is_disabled,
    memory_project,
    read_directory,
)
from echod.cli.context import CommandContext
from echod.cli.output import format_timestamp, problem_line, sanitize, short_path, wrap
from echod.contract.commands import Check, CheckResult, DoctorReport
from echod.errors import UsageError, os_reason
from echod.files import read_regular
from echod.memory.auto_memory.checks import MemoryFinding, check_directory
from echod.memory.auto_memory.notes import (
    INDEX,
    MAX_LOADED_CHARACTERS,
    MAX_LOADED_LINES,
    MemoryDirectory,
    load_index,
)
from echod.memory.text import pluralize
from echod.paths import claude_home

if TYPE_CHECKING:
    from echod.cli.execute import JobRunner, Step
    from echod.jobs.base import JobOutcome, JobResources
    from echod.memory.auto_memory.repair import IndexRepair

_MAX_SHOWN = 12


def examine(context: CommandContext, path: Path | None) -> DoctorReport:
    """Return every finding about the auto memory of one project, or of all. Reads only."""
    found = _find(context, path)
    home = claude_home(context.environ)
    checks: list[Check] = []
    if (reason := is_disabled(home, context.environ)) is not None:
        checks.append(Check("auto-disabled", CheckResult.NOTE, f"Auto memory is switched off by {reason}.", ""))
    checks += [_to_check(finding, file) for file, finding in found.findings]
    for place in found.places:
        try:
            directory = read_directory(place.path)
        except OSError as error:
            text = f"The directory cannot be listed: {os_reason(error)}."
            checks.append(Check("auto-unreadable", CheckResult.PROBLEM, text, "", str(place.path)))
            continue
        # The index first, and every file once.
        findings = sorted(check_directory(directory, context.now()), key=lambda one: (one.file != INDEX, one.file))
        checks.append(_summary(place.path, place.source, directory))
        checks += [_to_check(finding, place.path / finding.file) for finding in findings]
    checks += _losses(context, found, path)
    if not found.places and not checks:
        text = "There is no auto memory here."
        checks.append(Check("auto-none", CheckResult.NOTE, text, "Claude Code creates it with its first memory."))
    return DoctorReport(all(check.result is not CheckResult.PROBLEM for check in checks), tuple(checks))


def _find(context: CommandContext, path: Path | None) -> FoundPlaces:
    only = None if path is None else memory_project(context.existing_path(path))
    projects: tuple[Path, ...] = ()
    if only is None:
        with context.open_read_context() as read_context:
            projects = read_context.discover_stores().projects
    return find_places(claude_home(context.environ), projects, only=only)


def _to_check(finding: MemoryFinding, file: Path) -> Check:
    result = CheckResult.PROBLEM if finding.is_problem else CheckResult.NOTE
    return Check(finding.code, result, sanitize(finding.text), sanitize(finding.fix), str(file), finding.line)


def _summary(path: Path, source: str, directory: MemoryDirectory) -> Check:
    text = f"{pluralize(len(directory.notes), 'file')}, {source}."
    if directory.index_file is not None:
        loaded = load_index(directory.index_file.text or "")
        text = (
            f"{pluralize(len(directory.notes), 'file')}; the index has {loaded.lines} of {MAX_LOADED_LINES} lines and "
            f"{loaded.characters:,} of {MAX_LOADED_CHARACTERS:,} characters. It is {source}."
        )
    return Check("auto-memory", CheckResult.OK, text, "", str(path))


def _losses(context: CommandContext, found: FoundPlaces, path: Path | None) -> Iterator[Check]:
    """Yield a check for each copied directory that lost many files."""
    root = _copies_root(context)
    selected = None
    if path is not None:  # also if all of it is gone
        own = default_directory(claude_home(context.environ), memory_project(context.absolute_path(path)))
        selected = {own, *(place.path for place in found.places)}
    for directory in copied_directories(root):
        if selected is None or directory in selected:
            try:
                finding = MemoryCopies(root, directory).loss(context.now())
            except (CopyError, OSError) as error:
                yield Check("auto-lost", CheckResult.NOTE, f"The copies cannot be used: {error}", "", str(directory))
                continue
            if finding is not None:
                yield _to_check(finding, directory)


# Repair


def repair(context: CommandContext, path: Path | None, *, yes: bool) -> None:
    """Repair the pointers of each index, and its order where the host cuts it, after asking. Each is a job.

    Raises:
        UsageError: there is no terminal to ask at.
        EchodError: a repair failed, or was refused; earlier ones are done.
    """
    from echod.cli.execute import Change, Confirmation, WriteOptions, make_change
    from echod.memory.auto_memory.repair import plan_repair

    plans = []
    for place in _find(context, path).places:
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
    from echod.cli.execute import Change, Confirmation, WriteOptions, make_change

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
    root = _copies_root(context)
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


def _copies_root(context: CommandContext) -> Path:
    return context.paths.auto_memory / "copies"


def _job_step(
    context: CommandContext, directory: Path, kind: str, summary: str, files: Callable[[], Mapping[str, NewFile]]
) -> Step:
    from echod.cli.execute import ManualJob
    from echod.cli.session_roots import memory_job_role
    from echod.jobs.base import JobDone
    from echod.state.job import JobKind

    def step(runner: JobRunner) -> str:
        def work(resources: JobResources) -> JobOutcome:
            changes = MemoryChanges(context.paths.auto_memory)
            changes.recover()
            changes.apply(directory, files(), job=resources.job_id, kind=kind, summary=summary, now=context.now())
            return JobDone(summary, changed=True)

        manual_job = ManualJob(JobKind.AUTO_MEMORY, memory_job_role(directory))
        result = runner._replace(force=True).run_multi_role(manual_job, work)
        return result.describe(short_path(str(directory)))

    return step

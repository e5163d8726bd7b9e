"""`echod doctor`: print every check of the installation, each problem with its fix."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import click

from echod import __version__
from echod.auto_memory.copies import CopyError, MemoryCopies, copied_directories
from echod.auto_memory.places import (
    FoundPlaces,
    default_directory,
    find_places,
    is_disabled,
    memory_project,
    read_directory,
)
from echod.cli import commands
from echod.cli.context import CommandContext
from echod.cli.output import sanitize, short_path, wrap
from echod.contract.codec import to_json
from echod.contract.commands import Check, CheckResult, DoctorReport
from echod.errors import ConfigurationError, ExitCode, os_reason
from echod.lazy import lazy_imports
from echod.memory.auto_memory.checks import MemoryFinding, check_directory
from echod.memory.auto_memory.notes import INDEX, MAX_LOADED_CHARACTERS, MAX_LOADED_LINES, MemoryDirectory, load_index
from echod.memory.text import pluralize
from echod.paths import claude_home
from echod.runtime.system import read_mounts
from echod.settings.schema import Settings
from echod.store.layout import Store

with lazy_imports(__name__):
    from echod import doctor as checks
    from echod.cli import execute

_MAX_ALIKE = 8
"""Findings of one kind in one directory that are printed; the others are counted, unless all are asked for."""

_MARKS = {CheckResult.OK: "ok  ", CheckResult.NOTE: "-   ", CheckResult.PROBLEM: "!   "}


def doctor(
    context: CommandContext,
    *,
    path: Path | None,
    auto_memory: bool,
    fix: bool,
    yes: bool,
    verbose: bool,
    json: bool,
) -> None:
    """Run `echod doctor`."""
    if auto_memory:
        if fix:
            commands.auto_memory.repair(context, path, yes=yes)
        _print_report(context, examine_memory(context, path), verbose=verbose, json=json)
    if fix:
        execute.delete_leftovers(context, _stores_to_fix(context, path), yes=yes)
    doctor_context = checks.DoctorContext(
        paths=context.paths,
        settings=_settings_or_defaults(context),
        environ=context.environ,
        platform=sys.platform,
        python=Path(sys.executable),
        version=__version__,
        uid=os.getuid(),
        now=context.now(),
        monotonic=time.monotonic(),
        mounts=read_mounts(),
    )
    only_project = None if path is None else _project_or_root(context, path)
    with context.progress_line(json=json) as progress:
        report = checks.run_checks(
            doctor_context, only_project, lambda check: progress.show(f"checked {check.path or check.code}")
        )
    _print_report(context, report, verbose=verbose, json=json)


def _print_report(context: CommandContext, report: DoctorReport, *, verbose: bool, json: bool) -> NoReturn:
    click.echo(to_json(report) if json else context.colored("\n".join(_report_lines(report, verbose=verbose))))
    raise click.exceptions.Exit(ExitCode.OK if report.healthy else ExitCode.FAILED)


def _stores_to_fix(context: CommandContext, path: Path | None) -> tuple[Store, ...]:
    if path is not None:
        return context.list_stores(_project_or_root(context, path))
    with context.open_read_context() as read_context:
        return read_context.discover_stores().stores


def _project_or_root(context: CommandContext, path: Path) -> Path:
    """Return the project of `path`, or the path itself if it is in none."""
    root = context.absolute_path(path)
    try:
        return context.locator.find_project(root) or root
    except OSError:
        return root  # the checks report it


def _settings_or_defaults(context: CommandContext) -> Settings:
    try:
        return context.settings
    except ConfigurationError:
        return Settings()  # one of the checks reports invalid settings


def _report_lines(report: DoctorReport, *, verbose: bool) -> Iterator[str]:
    """Format the checks: problems first, then notes; the passed ones only count, unless all are asked for."""
    problems, notes, passed = (
        [check for check in report.checks if check.result is result]
        for result in (CheckResult.PROBLEM, CheckResult.NOTE, CheckResult.OK)
    )
    for checks in (problems, notes, passed if verbose else []):
        if checks:
            yield from _section_lines(checks if verbose else tuple(_without_repeats(checks)))
            yield ""
    verdict = pluralize(len(problems), "problem") if problems else "No problems"
    notes_text = f", {pluralize(len(notes), 'note')}" if notes else ""
    passed_text = f"{pluralize(len(passed), 'check')} passed"
    yield f"{verdict}{notes_text}; {passed_text}{'' if verbose else ' (-v lists them)'}."


def _without_repeats(checks: Sequence[Check]) -> Iterator[Check]:
    """Yield the first findings of each kind in a directory; at the end, for each directory, how many others it has."""
    seen: Counter[tuple[str, str]] = Counter()
    hidden: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for check in checks:
        directory = os.path.dirname(check.path or "")  # noqa: PTH120  a Path for each of thousands is slow
        seen[directory, check.code] += 1
        if seen[directory, check.code] <= _MAX_ALIKE:
            yield check
        else:
            hidden[directory][check.code] += 1
    for directory, counts in hidden.items():
        kinds = ", ".join(f"{number} {code}" for code, number in counts.most_common())
        text = f"{pluralize(counts.total(), 'more finding')} of these kinds: {kinds}"
        yield Check("", checks[0].result, text, "List all of them with -v or --json.", directory or None)


def _section_lines(checks: Sequence[Check]) -> Iterator[str]:
    path: str | None = None
    for number, check in enumerate(checks, start=1):
        if check.path is not None and check.path != path:
            yield short_path(check.path)
        path = check.path
        following = checks[number] if number < len(checks) else None
        # A fix that several lines of a file share is printed once, below the last of them.
        shared = following is not None and check.line is not None and following[3:5] == check[3:5]
        yield from _check_lines(check._replace(fix="") if shared else check)


def _check_lines(check: Check) -> Iterator[str]:
    """Format a check. Each line of its text is a paragraph, as in a list of wrong settings."""
    first, *others = check.text.splitlines() or [""]
    place = "" if check.line is None else f"line {check.line}: "
    yield wrap(f"{place}{first}", indent=_MARKS[check.result])
    yield from (wrap(line.strip(), indent="    ") for line in others if line.strip())
    if check.fix:
        yield wrap(check.fix, indent="    > ", hang="      ")


# Auto memory


def examine_memory(context: CommandContext, path: Path | None) -> DoctorReport:
    """Return every finding about the auto memory of one project, or of all. Reads only."""
    found = find_memory_places(context, path)
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
        checks.append(_memory_summary(place.path, place.source, directory))
        checks += [_to_check(finding, place.path / finding.file) for finding in findings]
    checks += _losses(context, found, path)
    if not found.places and not checks:
        text = "There is no auto memory here."
        checks.append(Check("auto-none", CheckResult.NOTE, text, "Claude Code creates it with its first memory."))
    return DoctorReport(all(check.result is not CheckResult.PROBLEM for check in checks), tuple(checks))


def find_memory_places(context: CommandContext, path: Path | None) -> FoundPlaces:
    """Return the directories of auto memory of one project, or of all."""
    only = None if path is None else memory_project(context.existing_path(path))
    projects: tuple[Path, ...] = ()
    if only is None:
        with context.open_read_context() as read_context:
            projects = read_context.discover_stores().projects
    return find_places(claude_home(context.environ), projects, only=only)


def _to_check(finding: MemoryFinding, file: Path) -> Check:
    result = CheckResult.PROBLEM if finding.is_problem else CheckResult.NOTE
    return Check(finding.code, result, sanitize(finding.text), sanitize(finding.fix), str(file), finding.line)


def _memory_summary(path: Path, source: str, directory: MemoryDirectory) -> Check:
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
    root = copies_root(context)
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


def copies_root(context: CommandContext) -> Path:
    """Return the directory of the copies of auto memory."""
    return context.paths.auto_memory / "copies"

"""`echod scrub`: find secrets in the memory of a project, and remove them by manual jobs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from echod.cli.context import CommandContext
from echod.cli.execute import Change, JobRunner, ManualJob, Step, WriteOptions, make_change, settle_and_report
from echod.cli.output import problem_line, sanitize, short_path, wrap
from echod.contract.codec import to_json
from echod.contract.commands import ScrubFile, ScrubReport, SecretPositionInfo
from echod.errors import EchodError, ExitCode
from echod.inspection.secrets import ScanCandidate, list_scan_candidates, locate_secrets_in_file
from echod.jobs import manual
from echod.jobs.base import JobContext, JobOutcome
from echod.memory.redact import SecretLocation
from echod.memory.text import pluralize
from echod.state.jobs import JobKind
from echod.store import layout
from echod.store.git import find_tracked_file
from echod.store.layout import Role, Store
from echod.store.leftovers import list_exposed_files, list_private_files
from echod.store.private_directory import is_own_name


class _FileSecrets(NamedTuple):
    """A file and its secrets, or the problem that kept it from being read."""

    file: ScanCandidate
    locations: tuple[SecretLocation, ...]
    problem: str | None

    def needs_scrub(self, *, include_protected: bool) -> bool:
        """Return whether a secret in it may be removed."""
        return any(include_protected or not location.needs_confirmation for location in self.locations)


def scrub(
    context: CommandContext, *, path: Path, dry_run: bool, include_protected: bool, force: bool, json: bool
) -> None:
    """Run `echod scrub`."""
    project = context.find_project(path)
    files = tuple(_scan_project(context, project, as_json=json))
    writes = not dry_run and context.settings.mode == "maintain"
    verbose = (dry_run or not context.quiet) and not json
    if verbose:
        _print_secrets(project, files)
        if not (writes or dry_run):
            click.echo('Nothing is removed, since the settings contain mode = "report".')
    skipped: list[str] = []
    if writes:
        protected_too = include_protected or (not json and _confirm_protected(context, files))
        action = partial(manual.scrub, include_protected=protected_too)
        batches = _batches(files, include_protected=protected_too)
        steps = [Step(role.name, partial(_run_job, role, batch, action, skipped)) for role, batch in batches]
        make_change(context, Change(preview="", steps=steps), WriteOptions(force=force))
        if files:  # the exchange has just put each old version into the private directory
            settle_and_report(context, context.list_stores(project))
    remaining = tuple(_scan_project(context, project, as_json=json)) if writes else files
    if json:
        click.echo(to_json(_scrub_report(project, files, remaining)))
    else:
        for sentence in skipped:
            click.echo(wrap(sentence, indent="! "))
    if verbose:
        _print_result(files, remaining, writes=writes)
    clean = not _count_secrets(remaining) and not any(file.problem for file in remaining)
    raise click.exceptions.Exit(ExitCode.OK if clean else ExitCode.FAILED)


def _scan_project(context: CommandContext, project: Path, *, as_json: bool) -> Iterator[_FileSecrets]:
    # One at a time: there can be very many files, and nothing is kept of a file without a secret.
    in_roles = (
        file
        for store in context.list_stores(project)
        for role in _list_roles(store)
        for file in list_scan_candidates(role)
    )
    files = itertools.chain(
        in_roles, (file for store in context.list_stores(project) for file in _own_candidates(store))
    )
    with context.progress_line(json=as_json) as progress:
        for number, file in enumerate(files, start=1):
            progress.show(f"file {number}: {file.path.relative_to(project)}")
            try:
                locations, problem = () if file.problem else locate_secrets_in_file(file), file.problem
            except OSError as error:
                locations, problem = (), f"It cannot be read: {error.strerror}."
            if locations or problem:
                yield _FileSecrets(file, locations, problem)


def _own_candidates(store: Store) -> Iterator[ScanCandidate]:
    """Yield the replaced versions of files. They lose no secret, they are deleted once no program can write to them."""
    for path in (*list_private_files(store), *list_exposed_files(store)):
        yield ScanCandidate(Role(store, ""), path)


def _list_roles(store: Store) -> tuple[Role, ...]:
    try:
        return layout.find_roles(store)
    except OSError as error:
        raise EchodError(f"{store.root} cannot be listed: {error.strerror}. Check its permissions.") from error


def _confirm_protected(context: CommandContext, files: Sequence[_FileSecrets]) -> bool:
    protected = sum(location.needs_confirmation for file in files for location in file.locations)
    if not protected or not context.is_interactive:
        return False
    return click.confirm(f"Also remove {pluralize(protected, 'secret')} from etched entries and notes?")


def _batches(
    files: Sequence[_FileSecrets], *, include_protected: bool
) -> Iterator[tuple[Role, tuple[ScanCandidate, ...]]]:
    """Group the files to change by role, in batches of a size that one job takes."""
    files_by_role: dict[Role, list[ScanCandidate]] = {}
    for file in files:
        if not is_own_name(file.file.path.name) and file.needs_scrub(include_protected=include_protected):
            files_by_role.setdefault(file.file.role, []).append(file.file)
    for role, candidates in files_by_role.items():
        for start in range(0, len(candidates), manual.MAX_SCRUBBED_FILES):
            yield role, tuple(candidates[start : start + manual.MAX_SCRUBBED_FILES])


def _run_job(
    role: Role,
    files: Sequence[ScanCandidate],
    action: Callable[[JobContext, Sequence[ScanCandidate]], JobOutcome],
    skipped: list[str],
    runner: JobRunner,
) -> str:
    """Run the job on files of a role, and collect a sentence for each skipped file. The report follows at the end."""
    manual_job = ManualJob(JobKind.SCRUB, role, f"secrets in {pluralize(len(files), 'file')}")
    skipped += runner.run(manual_job, lambda job: action(job, files)).skipped
    return ""


def _count_secrets(files: Sequence[_FileSecrets]) -> int:
    return sum(len(file.locations) for file in files)


def _count_removed(before: Sequence[_FileSecrets], after: Sequence[_FileSecrets]) -> int:
    return max(0, _count_secrets(before) - _count_secrets(after))


def _is_tracked(project: Path, file: _FileSecrets) -> bool:
    return find_tracked_file(project, file.file.path) is not None


def _scrub_report(project: Path, files: Sequence[_FileSecrets], remaining: Sequence[_FileSecrets]) -> ScrubReport:
    return ScrubReport(
        project=str(project),
        files=tuple(
            ScrubFile(
                path=str(file.file.path),
                tracked=_is_tracked(project, file),
                secrets=tuple(
                    SecretPositionInfo(location.line, location.kind, location.entry, location.needs_confirmation)
                    for location in file.locations
                ),
                problem=file.problem,
            )
            for file in files
        ),
        stripped=_count_removed(files, remaining),
        remaining=_count_secrets(remaining),
    )


def _print_secrets(project: Path, files: Sequence[_FileSecrets]) -> None:
    click.echo(short_path(str(project)))
    any_tracked = False
    for file in files:
        tracked = bool(file.locations) and _is_tracked(project, file)
        any_tracked |= tracked
        click.echo(f"\n{file.file.path.relative_to(project)}{'  (tracked by git)' if tracked else ''}")
        if file.problem:
            click.echo(problem_line(file.problem, indent="  "))
        for location in file.locations:
            entry_text = f'  in "{sanitize(location.entry)[:100]}"' if location.entry is not None else ""
            protected_text = "  (protected: asks first)" if location.needs_confirmation else ""
            click.echo(f"  line {location.line:<6} {location.kind:<18}{entry_text}{protected_text}")
    if any_tracked:
        text = (
            "Files that git tracks keep their secrets in its history. Treat these secrets as leaked and change them. "
            "echod does not rewrite the history."
        )
        click.echo("\n" + wrap(text, indent="! "))


def _print_result(files: Sequence[_FileSecrets], remaining: Sequence[_FileSecrets], *, writes: bool) -> None:
    if not _count_secrets(files):
        click.echo("No secret was found.")
        return
    if not writes:
        click.echo(f"\n{pluralize(_count_secrets(remaining), 'secret')} found. Nothing was changed.")
        return
    removed = _count_removed(files, remaining)
    click.echo(f"\n{pluralize(removed, 'secret')} removed, {_count_secrets(remaining)} left.")
    if any(location.needs_confirmation for file in remaining for location in file.locations):
        click.echo(wrap("Etched entries and notes keep theirs. To change them too: --include-protected", indent="> "))
    if removed:
        text = "For undo, echod keeps the exact files for at most seven days, readable only by you."
        click.echo(wrap(text, indent="> "))

"""`echod scrub`: which secrets stand in a project's memory on the disk, and take them out.

Commands that keep memory and knowledge files in shape.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import click

from echod.app.services import Services, open_services
from echod.cli import options
from echod.cli.context import CommandContext, notify_daemon
from echod.cli.execute import ManualJob, run_manual_job
from echod.cli.output import pluralize, sanitize, short_path, wrap
from echod.cli.root import example, pass_command_context
from echod.contract.commands import ScrubFile, ScrubReport, SecretPositionInfo
from echod.contract.status import to_json
from echod.errors import EchodError, ExitCode
from echod.inspection.secrets import ScanCandidate, list_scan_candidates, locate_secrets_in_file
from echod.jobs import scrub as job
from echod.memory.exposed_secrets import SecretLocation
from echod.state.job import JobKind
from echod.store import layout
from echod.store.git import find_tracked_file
from echod.store.layout import Role, Store


class _FileSecrets(NamedTuple):
    """A file and what stands in it; or why it could not be looked at."""

    file: ScanCandidate
    locations: tuple[SecretLocation, ...]
    problem: str | None

    def needs_scrub(self, *, confirmed: bool) -> bool:
        """Whether there is something to take out."""
        return any(confirmed or not place.needs_confirmation for place in self.locations)


def scrub_project(
    context: CommandContext, path: Path, *, dry_run: bool, yes: bool, force: bool, as_json: bool
) -> NoReturn:
    """Report, strip, and exit with 0 only if no secret is left."""
    project = context.find_project(path)
    files = tuple(_scan_project(context, project))
    writes = not dry_run and context.settings.mode == "maintain"
    verbose = dry_run or not context.quiet
    if verbose and not as_json:
        _print_secrets(project, files)
        if not (writes or dry_run):
            click.echo('Nothing is taken out, since the settings say mode = "report".')
    confirmed = yes or (writes and not as_json and _confirm_protected(files))
    skipped: list[str] = []
    if writes and any(one.needs_scrub(confirmed=confirmed) for one in files):
        skipped = _strip_files(context, files, confirmed=confirmed, force=force)
        notify_daemon(context)
    remaining = tuple(_scan_project(context, project)) if writes else files
    removed = _count_secrets(files) - _count_secrets(remaining)
    if as_json:
        click.echo(to_json(_scrub_report(project, files, max(0, removed), _count_secrets(remaining))))
    else:
        for sentence in skipped:
            click.echo(wrap(sentence, indent="! "))
        if verbose:
            _print_scrub_result(files, remaining, writes=writes)
    has_problem = any(one.problem for one in remaining)
    raise click.exceptions.Exit(ExitCode.FAILED if _count_secrets(remaining) or has_problem else ExitCode.OK)


def _scan_project(context: CommandContext, project: Path) -> Iterator[_FileSecrets]:
    # One by one: there may be very many, and nothing is kept of a file in which nothing stands.
    files = (
        file
        for store in context.list_stores(project)
        for role in _list_roles(store)
        for file in list_scan_candidates(role)
    )
    with context.progress_line() as progress:
        for number, file in enumerate(files, start=1):
            progress.show(f"file {number}: {file.path.relative_to(project)}")
            try:
                locations, problem = () if file.problem else locate_secrets_in_file(file), file.problem
            except OSError as error:
                locations, problem = (), f"It cannot be read: {error.strerror}."
            if locations or problem:
                yield _FileSecrets(file, locations, problem)


def _list_roles(store: Store) -> tuple[Role, ...]:
    try:
        return layout.find_roles(store)
    except OSError as error:
        raise EchodError(f"{store.root} cannot be listed: {error.strerror}; check its permissions.") from error


def _confirm_protected(files: Sequence[_FileSecrets]) -> bool:
    protected = sum(place.needs_confirmation for one in files for place in one.locations)
    if not protected or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return click.confirm(f"Take {pluralize(protected, 'secret')} out of etched entries and notes too?")


def _strip_files(context: CommandContext, found: Sequence[_FileSecrets], *, confirmed: bool, force: bool) -> list[str]:
    """Do it, a job for each part of a role; what was left alone, a sentence each."""
    skipped: list[str] = []
    with open_services(context.paths, context.settings, context.environ, context.now) as services:
        files_by_role: dict[Role, list[ScanCandidate]] = {}
        for one in found:
            if one.needs_scrub(confirmed=confirmed):
                files_by_role.setdefault(one.file.role, []).append(one.file)
        for role, files in files_by_role.items():
            for start in range(0, len(files), job.MAX_FILES):
                batch = files[start : start + job.MAX_FILES]
                skipped += _strip_batch(context, services, role, batch, confirmed=confirmed, force=force)
    return skipped


def _strip_batch(
    context: CommandContext,
    services: Services,
    role: Role,
    files: Sequence[ScanCandidate],
    *,
    confirmed: bool,
    force: bool,
) -> tuple[str, ...]:
    return run_manual_job(
        context,
        services,
        ManualJob(JobKind.SCRUB, role, f"secrets in {pluralize(len(files), 'file')}"),
        lambda context: job.run(context, files, include_protected=confirmed),
        force=force,
    ).skipped


def _count_secrets(files: Sequence[_FileSecrets]) -> int:
    return sum(len(one.locations) for one in files)


def _is_tracked(project: Path, file: _FileSecrets) -> bool:
    return find_tracked_file(project, file.file.path) is not None


def _scrub_report(project: Path, found: Sequence[_FileSecrets], stripped: int, remaining: int) -> ScrubReport:
    return ScrubReport(
        project=str(project),
        files=tuple(
            ScrubFile(
                path=str(one.file.path),
                tracked=_is_tracked(project, one),
                secrets=tuple(SecretPositionInfo(p.line, p.kind, p.entry, p.needs_confirmation) for p in one.locations),
                problem=one.problem,
            )
            for one in found
        ),
        stripped=stripped,
        remaining=remaining,
    )


def _print_secrets(project: Path, found: Sequence[_FileSecrets]) -> None:
    click.echo(short_path(str(project)))
    tracked = False
    for one in found:
        is_tracked = _is_tracked(project, one) if one.locations else False
        tracked |= is_tracked
        click.echo(f"\n{one.file.path.relative_to(project)}{'  (tracked by git)' if is_tracked else ''}")
        if one.problem:
            click.echo(wrap(one.problem, indent="  ! "))
        for location in one.locations:
            entry_text = f'  in "{sanitize(location.entry)[:100]}"' if location.entry is not None else ""
            protected_text = "  (etched or a note: asks first)" if location.needs_confirmation else ""
            click.echo(f"  line {location.line:<6} {location.kind:<18}{entry_text}{protected_text}")
    if tracked:
        text = (
            "Files that git tracks keep their secrets in its history. Treat these secrets as known to others: "
            "change them. Rewriting the history is up to you."
        )
        click.echo("\n" + wrap(text, indent="! "))


def _print_scrub_result(found: Sequence[_FileSecrets], remaining: Sequence[_FileSecrets], *, writes: bool) -> None:
    if not _count_secrets(found):
        click.echo("No secret was found.")
        return
    removed, remaining_count = max(0, _count_secrets(found) - _count_secrets(remaining)), _count_secrets(remaining)
    if not writes:
        click.echo(f"\n{pluralize(remaining_count, 'secret')} found; nothing was changed.")
        return
    click.echo(f"\n{pluralize(removed, 'secret')} taken out, {remaining_count} left.")
    if any(place.needs_confirmation for one in remaining for place in one.locations):
        click.echo(wrap("Etched entries and notes keep theirs until you say --yes.", indent="> "))
    if removed:
        text = "For undo, echod keeps the exact files for at most seven days, readable by you alone."
        click.echo(wrap(text, indent="> "))


@click.command(epilog=example("echod scrub ~/src/my-project --dry-run"))
@options.project_path_or_cwd
@click.option("--dry-run", is_flag=True, help="Only say what stands where.")
@click.option("--yes", is_flag=True, help="Also change etched entries and notes.")
@options.force
@options.json
@pass_command_context
def scrub(context: CommandContext, *, path: Path, dry_run: bool, yes: bool, force: bool, json: bool) -> None:
    """Find and remove secrets on disk.

    Says file, entry and kind, never the secret. Ends with 1 while one is left.
    """
    scrub_project(context, path, dry_run=dry_run, yes=yes, force=force, as_json=json)

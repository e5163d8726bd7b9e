"""`echod scrub`: which secrets stand in a project's memory on the disk, and take them out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import click

from echod.app.services import House, furnish
from echod.cli.asked import Asked, carry_out
from echod.cli.shell import Shell
from echod.cli.text import count, paragraph, plain, short_path
from echod.cli.wake import wake_daemon
from echod.contract.commands import ScrubFile, ScrubPlace, ScrubReport
from echod.contract.status import to_json
from echod.errors import EchodError, Exit
from echod.inspection.secrets import Candidate, candidates, places_in
from echod.jobs import scrub as job
from echod.memory.exposed_secrets import Place
from echod.state.job import Job, JobKind
from echod.store import layout
from echod.store.changes import Gate
from echod.store.git import tracking
from echod.store.layout import Role, Store


class _Found(NamedTuple):
    """A file and what stands in it; or why it could not be looked at."""

    file: Candidate
    places: tuple[Place, ...]
    problem: str | None

    def due(self, *, confirmed: bool) -> bool:
        """Whether there is something to take out."""
        return any(confirmed or not place.confirm for place in self.places)


def scrub(shell: Shell, path: Path, *, dry_run: bool, yes: bool, force: bool, as_json: bool) -> NoReturn:
    """Report, strip, and exit with 0 only if no secret is left."""
    project = shell.project(path)
    found = tuple(_look(shell, project))
    writes = not dry_run and shell.settings.mode == "maintain"
    told = dry_run or not shell.quiet
    if told and not as_json:
        _show(project, found)
        if not (writes or dry_run):
            click.echo('Nothing is taken out, since the settings say mode = "report".')
    confirmed = yes or (writes and not as_json and _agreed(found))
    skipped: list[str] = []
    if writes and any(one.due(confirmed=confirmed) for one in found):
        skipped = _strip(shell, found, confirmed=confirmed, force=force)
        wake_daemon(shell)
    left = tuple(_look(shell, project)) if writes else found
    gone = _number(found) - _number(left)
    if as_json:
        click.echo(to_json(_report(project, found, max(0, gone), _number(left))))
    else:
        for sentence in skipped:
            click.echo(paragraph(sentence, indent="! "))
        if told:
            _show_end(found, left, writes=writes)
    unknown = any(one.problem for one in left)
    raise click.exceptions.Exit(Exit.FAILED if _number(left) or unknown else Exit.OK)


def _look(shell: Shell, project: Path) -> Iterator[_Found]:
    # One by one: there may be very many, and nothing is kept of a file in which nothing stands.
    files = (file for store in shell.stores(project) for role in _roles(store) for file in candidates(role))
    with shell.progress() as progress:
        for number, file in enumerate(files, start=1):
            progress.show(f"file {number}: {file.path.relative_to(project)}")
            try:
                places, problem = () if file.problem else places_in(file), file.problem
            except OSError as error:
                places, problem = (), f"It cannot be read: {error.strerror}."
            if places or problem:
                yield _Found(file, places, problem)


def _roles(store: Store) -> tuple[Role, ...]:
    try:
        return layout.roles_of(store)
    except OSError as error:
        raise EchodError(f"{store.root} cannot be listed: {error.strerror}; check its permissions.") from error


def _agreed(found: Sequence[_Found]) -> bool:
    held = sum(place.confirm for one in found for place in one.places)
    if not held or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return click.confirm(f"Take {count(held, 'secret')} out of etched entries and notes too?")


def _strip(shell: Shell, found: Sequence[_Found], *, confirmed: bool, force: bool) -> list[str]:
    """Do it, a job for each part of a role; what was left alone, a sentence each."""
    skipped: list[str] = []
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        todo: dict[Role, list[Candidate]] = {}
        for one in found:
            if one.due(confirmed=confirmed):
                todo.setdefault(one.file.role, []).append(one.file)
        for role, files in todo.items():
            for start in range(0, len(files), job.MOST_FILES):
                part = files[start : start + job.MOST_FILES]
                skipped += _strip_part(shell, house, role, part, confirmed=confirmed, force=force)
    return skipped


def _strip_part(
    shell: Shell, house: House, role: Role, files: Sequence[Candidate], *, confirmed: bool, force: bool
) -> tuple[str, ...]:
    skipped: list[str] = []

    def work(row: Job, gate: Gate) -> str:
        with house.engine.open_role(role) as session:
            done = job.run(row.id, session, files, confirmed=confirmed, gate=gate)
        skipped.extend(done.skipped)
        return done.summary

    carry_out(shell, house, Asked(JobKind.SCRUB, role, f"secrets in {count(len(files), 'file')}"), work, force=force)
    return tuple(skipped)


def _number(found: Sequence[_Found]) -> int:
    return sum(len(one.places) for one in found)


def _tracked(project: Path, one: _Found) -> bool:
    return tracking(project, one.file.path) is not None


def _report(project: Path, found: Sequence[_Found], stripped: int, left: int) -> ScrubReport:
    return ScrubReport(
        project=str(project),
        files=tuple(
            ScrubFile(
                path=str(one.file.path),
                tracked=_tracked(project, one),
                places=tuple(ScrubPlace(p.line, p.kind, p.entry, p.confirm) for p in one.places),
                problem=one.problem,
            )
            for one in found
        ),
        stripped=stripped,
        left=left,
    )


def _show(project: Path, found: Sequence[_Found]) -> None:
    click.echo(short_path(str(project)))
    tracked = False
    for one in found:
        known = _tracked(project, one) if one.places else False
        tracked |= known
        click.echo(f"\n{one.file.path.relative_to(project)}{'  (tracked by git)' if known else ''}")
        if one.problem:
            click.echo(paragraph(one.problem, indent="  ! "))
        for place in one.places:
            where = f'  in "{plain(place.entry)[:100]}"' if place.entry is not None else ""
            asks = "  (etched or a note: asks first)" if place.confirm else ""
            click.echo(f"  line {place.line:<6} {place.kind:<18}{where}{asks}")
    if tracked:
        text = (
            "Files that git tracks keep their secrets in its history. Treat these secrets as known to others: "
            "change them. Rewriting the history is up to you."
        )
        click.echo("\n" + paragraph(text, indent="! "))


def _show_end(found: Sequence[_Found], left: Sequence[_Found], *, writes: bool) -> None:
    if not _number(found):
        click.echo("No secret was found.")
        return
    gone, rest = max(0, _number(found) - _number(left)), _number(left)
    if not writes:
        click.echo(f"\n{count(rest, 'secret')} found; nothing was changed.")
        return
    click.echo(f"\n{count(gone, 'secret')} taken out, {rest} left.")
    if any(place.confirm for one in left for place in one.places):
        click.echo(paragraph("Etched entries and notes keep theirs until you say --yes.", indent="> "))
    if gone:
        text = "For undo, echod keeps the exact files for at most seven days, readable by you alone."
        click.echo(paragraph(text, indent="> "))

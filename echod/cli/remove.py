"""`echod remove`: a project is left alone from now on; with `--purge` also forgotten. Its memory stays as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from echod.app.forget_project import Kept, forget, kept, settle_up, stores_ever
from echod.app.services import furnish
from echod.cli.by_hand import agree
from echod.cli.shell import Shell
from echod.cli.text import count, paragraph, short_path
from echod.cli.wake import wake_daemon
from echod.daemon.main import me
from echod.errors import UsageError
from echod.inbox.spool import Spool
from echod.projects.registry import Projects, expand
from echod.runtime.locks import worker_lock
from echod.state.database import Database

_LOCK_SECONDS = 30.0
_KIB = 1024


def remove(shell: Shell, path: Path, *, purge: bool, dry_run: bool, yes: bool) -> None:
    """Take a project off the list, which may be gone from the disk, and forget it if that is wanted.

    Raises:
        UsageError: it is not registered, or there is no terminal to ask at.
        StillFollowedError: it cannot be forgotten yet, since another program may still write; it was not removed.
    """
    projects = Projects(shell.paths.projects)
    root, registered = _meant(shell, projects, path)
    known = _kept(shell, root) if purge else None
    if not registered and not known:
        more = ", and echod keeps nothing of it" if purge else ""
        raise UsageError(f"{short_path(str(root))} is not registered{more}; `echod projects` lists what is.")
    if dry_run or known is not None:
        shell.lay_out("\n".join(_plan(root, known, registered=registered)), needed=dry_run or not yes)
    if dry_run:
        return
    if known and not yes:
        agree("Forget all that? This cannot be undone.")
    if known is None:
        projects.remove(root)
        _withdraw(shell, root)
    else:
        _purge(shell, projects, root)
    wake_daemon(shell)
    gone = " and forgotten" if known is not None else ""
    shell.say(paragraph(f"{short_path(str(root))} is not maintained any more{gone}. Its memory stays as it is."))
    if root in expand(shell.settings.projects):
        shell.say(paragraph("But `projects` in the settings matches it, so it is maintained all the same."))


def _meant(shell: Shell, projects: Projects, path: Path) -> tuple[Path, bool]:
    """The registered project at or above `path`, and True; else `path` itself, and False."""
    start = Path(os.path.realpath(shell.cwd / path.expanduser()))
    roots = projects.roots()
    found = next((place for place in (start, *start.parents) if place in roots), None)
    return (start, False) if found is None else (found, True)


def _kept(shell: Shell, root: Path) -> Kept:
    database = Database.open_reading(shell.paths.database)
    spool = Spool(shell.paths.spool)
    if database is None:
        return kept(root, shell.paths.journal, None, spool, shell.now)
    with database:
        return kept(root, shell.paths.journal, database, spool, shell.now)


def _plan(root: Path, known: Kept | None, *, registered: bool) -> Iterator[str]:
    yield short_path(str(root))
    if registered:
        yield "  goes off the list of projects"
    if known is not None and known.journal_bytes:
        size = f"{max(1, known.journal_bytes // _KIB)} KiB"
        changes = count(known.changes, "change")
        yield f"  {changes} can be neither listed nor undone any more ({size} of journal go)"
    if known is not None and known.rows:
        yield f"  {count(known.rows, 'row')} of the database go: jobs, references, ages, pins"
    if known is not None and known.events:
        yield f"  {count(len(known.events), 'report')} of agents that wait are dropped"
    yield "  its memory, archives and settings stay where they are"


def _withdraw(shell: Shell, root: Path) -> None:
    """Let nothing be done there that was queued before."""
    if not shell.paths.database.exists():
        return
    with furnish(shell.paths, shell.settings, shell.environ, shell.now) as house:
        for store in stores_ever(root):
            house.queue.withdraw(store.key, shell.now(), "the project is not maintained any more")


def _purge(shell: Shell, projects: Projects, root: Path) -> None:
    with (
        furnish(shell.paths, shell.settings, shell.environ, shell.now) as house,
        # As the one worker, so that the service begins nothing there meanwhile.
        worker_lock(shell.paths.worker_lock, me(), _LOCK_SECONDS),
    ):
        settle_up(root, shell.paths.journal, shell.now)
        projects.remove(root)
        wake_daemon(shell)
        forget(root, shell.paths.journal, house.opened.database, house.lookout.spool)

"""The registered projects: are they there, may echod read and write their memory, and what is weaker there?

Never writes into a project. What a file system can do is tried out in the state directory, if that is on the same one.

Does a project's `.gitignore` name its memory? Git is not asked: it would run what a repository configures.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from echod.contract.commands import Check
from echod.doctor.case import Case, command, fine, note, problem
from echod.errors import reason_of
from echod.files import read_plain
from echod.memory.document import parse
from echod.memory.model import SIZE_LIMIT, Unreadable
from echod.projects.settings import read_project_settings
from echod.runtime.disk import kind_of, misses_remote_changes
from echod.store import layout
from echod.store.capabilities import Capabilities, probe
from echod.store.layout import Role, Store
from echod.workflows.model import Verdict

_LARGEST_BYTES = 1024 * 1024


def ignored_by(store: Store) -> str | None:
    """The line of the project's own `.gitignore` that names the store or a directory above it, if there is one.

    Patterns with wildcards are not understood; neither are the files of other directories and of the user.
    """
    below = store.root.relative_to(store.project)
    names = {part.as_posix() for part in (below, *below.parents) if part != Path()}
    for line in _lines(store.project / ".gitignore"):
        if line.strip().strip("/") in names:
            return line.strip()
    return None


def _lines(file: Path) -> list[str]:
    try:
        return [] if file.is_symlink() else read_plain(file, _LARGEST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []


_OTHERS_WRITE = 0o022
_IDLE_WORDS = {"idle": "no workflow runs", "quiet": "it was just at work", "active": "a workflow runs"}


def check_missing(project: Path) -> Check:
    """A project whose directory is not there."""
    return problem(
        "project-missing",
        "The project is not there (deleted, moved or not mounted). It stays registered.",
        f"If it is gone for good: {command('echod', 'remove', project)}",
        project,
    )


def check_without_store(project: Path) -> Check:
    """A project that has no memory yet."""
    return note(
        "project-without-store",
        "The project has no memory directory; echod starts when one appears.",
        f"Make one with: {command('echod', 'init', project)}",
        project,
    )


def check_project(case: Case, project: Path, stores: Sequence[Store], verdict: Verdict | None) -> Iterator[Check]:
    """A project that is there. `verdict` is the gate's, None where it could not be asked."""
    for warning in read_project_settings(project).warnings:
        yield problem("project-settings", warning, "Correct the file; until then the defaults hold for what is wrong.")
    if len(stores) > 1:
        yield note(
            "two-stores",
            "The project has two memory directories; each is maintained where it is, and new entries go to .rune.",
            "Move one's roles into the other when no workflow runs, if agents should see one memory.",
            project,
        )
    if verdict is not None:
        yield from _markers(project, verdict)
    for store in stores:
        yield from _store(case, store)
        yield from _git(store)


def _markers(project: Path, verdict: Verdict) -> Iterator[Check]:
    held = [reason for reason in verdict.reasons if reason.holds]
    said = "; ".join(f"{reason.marker}: {reason.text}" for reason in held)
    yield fine("markers", f"Its gate is {verdict.state.value}: {said or _IDLE_WORDS[verdict.state.value]}.", project)
    for reason in verdict.reasons:
        if not reason.holds:
            fix = f"If that workflow is over, delete {reason.marker}"
            yield note("marker-not-believed", f"{reason.marker}: {reason.text}.", fix, project)


def _store(case: Case, store: Store) -> Iterator[Check]:
    try:
        roles = layout.roles_of(store)
    except OSError as error:
        yield problem("store-unreadable", f"It cannot be listed: {reason_of(error)}.", _chmod(store.root), store.root)
        return
    found = [check for role in roles for check in _role(case, role)]
    found += _directory(store.root)
    yield from found
    if not found:
        names = ", ".join(role.name for role in roles) or "none yet"
        yield fine("store", f"Its roles can be read and written: {names}.", store.root)
    yield _file_system(case, store)


def _role(case: Case, role: Role) -> Iterator[Check]:
    yield from _directory(role.path)
    for path in (role.memory, role.knowledge):
        yield from _file(case, path)


def _directory(path: Path) -> Iterator[Check]:
    try:
        status = path.lstat()
    except OSError as error:
        yield problem("store-unreadable", f"It cannot be looked at: {reason_of(error)}.", _chmod(path.parent), path)
        return
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield problem("store-unwritable", "echod may not read and write here.", _chmod(path), path)
    elif status.st_mode & _OTHERS_WRITE:
        text = "Other users of this machine may write here, and agents believe what stands here."
        yield note("store-open", text, command("chmod", "go-w", path), path)


def _file(case: Case, path: Path) -> Iterator[Check]:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    except OSError:
        return  # its directory was told about
    if not stat.S_ISREG(status.st_mode):
        text = "It is no plain file (a symbolic link?); echod leaves it alone."
        yield problem("memory-no-file", text, "Put a plain file in its place.", path)
    elif not os.access(path, os.R_OK):
        yield problem("memory-unreadable", "echod may not read it.", command("chmod", "u+rw", path), path)
    elif case.uid not in {status.st_uid, 0}:
        text = "It belongs to another user, whom a new version of it could not be given to; echod leaves it alone."
        yield problem("memory-owner", text, f"As root: {command('chown', case.uid, path)}", path)
    elif (reason := _not_understood(path, status.st_size)) is not None:
        yield problem("memory-unreadable", f"echod leaves it alone: {reason}", "Mend it, or move it away.", path)


def _not_understood(path: Path, size: int) -> str | None:
    """Why a file is not taken for memory, in a sentence; None if it is."""
    if size > SIZE_LIMIT:
        return f"it has {size:,} bytes, more than echod reads."
    try:
        document = parse(read_plain(path, SIZE_LIMIT))
    except OSError as error:
        return f"it cannot be read: {reason_of(error)}."
    return document.reason if isinstance(document, Unreadable) else None


def _file_system(case: Case, store: Store) -> Check:
    kind = kind_of(store.root, case.mounts)
    name = kind or "an unknown file system"
    if misses_remote_changes(kind):
        text = (
            f"The memory is on {name}: changes by other machines are noticed only every "
            f"{case.settings.reconcile_minutes:g} minutes, and it is written only when all is still."
        )
        return note("file-system", text, "Keep the project on a local disk if you can.", store.root)
    able = _capabilities(case, store)
    if able is None:
        return fine("file-system", f"The memory is on {name}; what that can do was not tried out.", store.root)
    lacking = [
        word
        for word, works in (
            ("exchanging two files at once", able.exchange),
            ("telling who still writes", able.lease),
            ("second names for a file", able.hard_link),
        )
        if not works
    ]
    if lacking:
        text = f"The memory is on {name}, which lacks {', '.join(lacking)}; it is written only when all is still."
        return note("file-system", text, "Nothing is less safe for it, only later.", store.root)
    return fine("file-system", f"The memory is on {name}: exchange, leases and links work.", store.root)


def _capabilities(case: Case, store: Store) -> Capabilities | None:
    try:
        if store.root.stat().st_dev != case.paths.state.stat().st_dev:
            return None
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=case.paths.state) as place:
            return probe(Path(place))
    except OSError:
        return None


def _git(store: Store) -> Iterator[Check]:
    wanted = read_project_settings(store.project).settings.version_controlled
    if wanted is None or not (store.project / ".git").exists():
        return
    line = ignored_by(store)
    fix = command("echod", "init", store.project)
    if wanted and line is not None:
        text = f"The project's settings want git to track the memory, but .gitignore says {line}."
        yield problem("git-ignores", text, fix, store.root)
    elif not wanted and line is None:
        text = "The project's settings want git to leave the memory alone, but .gitignore does not say so."
        yield problem("git-tracks", text, fix, store.root)


def _chmod(path: Path) -> str:
    return command("chmod", "u+rwx", path)

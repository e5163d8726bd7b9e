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
from echod.doctor.case import DoctorContext, command_line, note, passed, problem
from echod.errors import os_reason
from echod.files import read_regular
from echod.memory.document import parse
from echod.memory.model import MAX_FILE_BYTES, Unreadable
from echod.projects.settings import read_project_settings
from echod.runtime.disk import filesystem_type, is_remote_filesystem
from echod.store import layout
from echod.store.capabilities import Capabilities, probe
from echod.store.layout import Role, Store
from echod.workflows.model import Verdict

_MAX_GITIGNORE_BYTES = 1024 * 1024


def gitignore_line(store: Store) -> str | None:
    """The line of the project's own `.gitignore` that names the store or a directory above it, if there is one.

    Patterns with wildcards are not understood; neither are the files of other directories and of the user.
    """
    relative = store.root.relative_to(store.project)
    names = {part.as_posix() for part in (relative, *relative.parents) if part != Path()}
    for line in _read_lines(store.project / ".gitignore"):
        if line.strip().strip("/") in names:
            return line.strip()
    return None


def _read_lines(file: Path) -> list[str]:
    try:
        return (
            [] if file.is_symlink() else read_regular(file, _MAX_GITIGNORE_BYTES).decode(errors="replace").splitlines()
        )
    except OSError:
        return []


_OTHERS_WRITE_MASK = 0o022
_GATE_STATE_TEXTS = {"idle": "no workflow runs", "quiet": "it was just at work", "active": "a workflow runs"}


def check_missing_project(project: Path) -> Check:
    """A project whose directory is not there."""
    return problem(
        "project-missing",
        "The project is not there (deleted, moved or not mounted). It stays registered.",
        f"If it is gone for good: {command_line('echod', 'remove', project)}",
        project,
    )


def check_project_without_store(project: Path) -> Check:
    """A project that has no memory yet."""
    return note(
        "project-without-store",
        "The project has no memory directory; echod starts when one appears.",
        f"Make one with: {command_line('echod', 'init', project)}",
        project,
    )


def check_project(
    context: DoctorContext, project: Path, stores: Sequence[Store], verdict: Verdict | None
) -> Iterator[Check]:
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
        yield from _check_markers(project, verdict)
    for store in stores:
        yield from _check_store(context, store)
        yield from _check_git(store)


def _check_markers(project: Path, verdict: Verdict) -> Iterator[Check]:
    holding = [reason for reason in verdict.reasons if reason.blocking]
    text = "; ".join(f"{reason.marker}: {reason.text}" for reason in holding)
    yield passed(
        "markers", f"Its gate is {verdict.state.value}: {text or _GATE_STATE_TEXTS[verdict.state.value]}.", project
    )
    for reason in verdict.reasons:
        if not reason.blocking:
            fix = f"If that workflow is over, delete {reason.marker}"
            yield note("stale-marker", f"{reason.marker}: {reason.text}.", fix, project)


def _check_store(context: DoctorContext, store: Store) -> Iterator[Check]:
    try:
        roles = layout.find_roles(store)
    except OSError as error:
        yield problem(
            "store-unreadable", f"It cannot be listed: {os_reason(error)}.", _chmod_fix(store.root), store.root
        )
        return
    problems = [check for role in roles for check in _check_role(context, role)]
    problems += _check_directory(store.root)
    yield from problems
    if not problems:
        names = ", ".join(role.name for role in roles) or "none yet"
        yield passed("store", f"Its roles can be read and written: {names}.", store.root)
    yield _check_filesystem(context, store)


def _check_role(context: DoctorContext, role: Role) -> Iterator[Check]:
    yield from _check_directory(role.path)
    for path in (role.memory, role.knowledge):
        yield from _check_file(context, path)


def _check_directory(path: Path) -> Iterator[Check]:
    try:
        status = path.lstat()
    except OSError as error:
        yield problem("store-unreadable", f"It cannot be looked at: {os_reason(error)}.", _chmod_fix(path.parent), path)
        return
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield problem("store-unwritable", "echod may not read and write here.", _chmod_fix(path), path)
    elif status.st_mode & _OTHERS_WRITE_MASK:
        text = "Other users of this machine may write here, and agents believe what stands here."
        yield note("store-writable-by-others", text, command_line("chmod", "go-w", path), path)


def _check_file(context: DoctorContext, path: Path) -> Iterator[Check]:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    except OSError:
        return  # its directory was told about
    if not stat.S_ISREG(status.st_mode):
        text = "It is no plain file (a symbolic link?); echod leaves it alone."
        yield problem("memory-not-regular-file", text, "Put a plain file in its place.", path)
    elif not os.access(path, os.R_OK):
        yield problem("memory-unreadable", "echod may not read it.", command_line("chmod", "u+rw", path), path)
    elif context.uid not in {status.st_uid, 0}:
        text = "It belongs to another user, whom a new version of it could not be given to; echod leaves it alone."
        yield problem("memory-owner", text, f"As root: {command_line('chown', context.uid, path)}", path)
    elif (reason := _unreadable_reason(path, status.st_size)) is not None:
        yield problem("memory-unreadable", f"echod leaves it alone: {reason}", "Mend it, or move it away.", path)


def _unreadable_reason(path: Path, size: int) -> str | None:
    """Why a file is not taken for memory, in a sentence; None if it is."""
    if size > MAX_FILE_BYTES:
        return f"it has {size:,} bytes, more than echod reads."
    try:
        document = parse(read_regular(path, MAX_FILE_BYTES))
    except OSError as error:
        return f"it cannot be read: {os_reason(error)}."
    return document.reason if isinstance(document, Unreadable) else None


def _check_filesystem(context: DoctorContext, store: Store) -> Check:
    type_name = filesystem_type(store.root, context.mounts)
    name = type_name or "an unknown file system"
    if is_remote_filesystem(type_name):
        text = (
            f"The memory is on {name}: changes by other machines are noticed only every "
            f"{context.settings.reconcile_minutes:g} minutes, and it is written only when all is still."
        )
        return note("file-system", text, "Keep the project on a local disk if you can.", store.root)
    capabilities = _probe_capabilities(context, store)
    if capabilities is None:
        return passed("file-system", f"The memory is on {name}; what that can do was not tried out.", store.root)
    missing = [
        word
        for word, works in (
            ("exchanging two files at once", capabilities.exchange),
            ("telling who still writes", capabilities.lease),
            ("second names for a file", capabilities.hard_link),
        )
        if not works
    ]
    if missing:
        text = f"The memory is on {name}, which lacks {', '.join(missing)}; it is written only when all is still."
        return note("file-system", text, "Nothing is less safe for it, only later.", store.root)
    return passed("file-system", f"The memory is on {name}: exchange, leases and links work.", store.root)


def _probe_capabilities(context: DoctorContext, store: Store) -> Capabilities | None:
    try:
        if store.root.stat().st_dev != context.paths.state.stat().st_dev:
            return None
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=context.paths.state) as scratch:
            return probe(Path(scratch))
    except OSError:
        return None


def _check_git(store: Store) -> Iterator[Check]:
    version_controlled = read_project_settings(store.project).settings.version_controlled
    if version_controlled is None or not (store.project / ".git").exists():
        return
    line = gitignore_line(store)
    fix = command_line("echod", "init", store.project)
    if version_controlled and line is not None:
        text = f"The project's settings want git to track the memory, but .gitignore says {line}."
        yield problem("git-ignores", text, fix, store.root)
    elif not version_controlled and line is None:
        text = "The project's settings want git to leave the memory alone, but .gitignore does not say so."
        yield problem("git-tracks", text, fix, store.root)


def _chmod_fix(path: Path) -> str:
    return command_line("chmod", "u+rwx", path)

"""Check the registered projects: access to their memory, their file system, their git rules, their conversations.

Never writes into a project. The capabilities of a file system are probed in the state directory, if that is on the
same one. A project's `.gitignore` is read without git, which would run commands that a repository configures.

There is no result where no project archives conversations.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from echod.contract.commands import Check
from echod.doctor.machine import DoctorContext, command_line, note, passed, problem
from echod.errors import EchodError, os_reason
from echod.files import read_regular
from echod.memory import MAX_FILE_BYTES
from echod.memory.document import parse
from echod.memory.model import Unreadable
from echod.paths import claude_home
from echod.projects.discovery import ExcludedDirectory
from echod.projects.settings import read_project_settings
from echod.runtime import filesystem_type, is_remote_filesystem
from echod.sessions.roots import SessionError, SessionProjects, SessionRoot
from echod.sessions.transcripts import host_retention_days
from echod.store import layout
from echod.store.errors import StoreError
from echod.store.fs import Capabilities, probe
from echod.store.layout import Role, SkippedItem, Store, find_skipped
from echod.store.leftovers import find_leftovers
from echod.store.private_directory import PRIVATE_DIRECTORY
from echod.workflows.model import Verdict

_MAX_GITIGNORE_BYTES = 1024 * 1024
_OTHERS_WRITE_MASK = 0o022
_GATE_STATE_TEXTS = {
    "idle": "no workflow is running",
    "quiet": "a workflow was active a moment ago",
    "active": "a workflow is running",
}


def check_missing_project(project: Path) -> Check:
    """Report a project whose directory does not exist."""
    text = "The project does not exist (deleted, moved or not mounted). It stays registered."
    fix = (
        f"If it was moved: {command_line('echod', 'move', project)} NEW. "
        f"If it was deleted: {command_line('echod', 'remove', project)}"
    )
    return problem("project-missing", text, fix, project)


def check_excluded(excluded: ExcludedDirectory) -> Check:
    """Report a directory that is never a project, although it is listed."""
    text = f"This is not a project: {excluded.reason}. It is not maintained."
    return note("project-excluded", text, command_line("echod", "remove", excluded.root), excluded.root)


def check_skipped(item: SkippedItem) -> Check:
    """Report what is passed over because of its name or because it is a symbolic link."""
    return note("skipped", item.reason, item.fix, item.path)


def check_project_without_store(project: Path) -> Check:
    """Report a project that has no memory yet."""
    text = "The project has no memory directory. echod starts when one appears."
    fix = f"Create one with: {command_line('echod', 'init', project)}"
    return note("project-without-store", text, fix, project)


def check_project(
    context: DoctorContext, project: Path, stores: Sequence[Store], verdict: Verdict | None
) -> Iterator[Check]:
    """Check an existing project. `verdict` is the gate's, or None if it could not be determined."""
    for warning in read_project_settings(project).warnings:
        yield problem("project-settings", warning, "Correct the file. Until then the invalid keys have their defaults.")
    if len(stores) > 1:
        text = "The project has two memory directories. Both are maintained, and new entries are written to .rune."
        fix = "If agents should see one memory, move the roles of one into the other while no workflow is running."
        yield note("two-stores", text, fix, project)
    if verdict is not None:
        yield from _check_markers(project, verdict)
    for store in stores:
        yield from _check_store(context, store)
        yield from map(check_skipped, find_skipped(store))
        yield from _check_git(store)
        yield from _check_leftovers(context, store)


def _check_markers(project: Path, verdict: Verdict) -> Iterator[Check]:
    state = verdict.state.value
    text = "; ".join(f"{reason.marker}: {reason.text}" for reason in verdict.reasons if reason.blocking)
    yield passed("markers", f"The gate is {state}: {text or _GATE_STATE_TEXTS[state]}.", project)
    for reason in verdict.reasons:
        if not reason.blocking:
            fix = f"If that workflow is over, delete {reason.marker}"
            yield note("stale-marker", f"{reason.marker}: {reason.text}.", fix, project)


def _check_store(context: DoctorContext, store: Store) -> Iterator[Check]:
    try:
        roles = layout.find_roles(store)
    except OSError as error:
        text = f"The directory cannot be listed: {os_reason(error)}."
        yield problem("store-unreadable", text, _chmod_fix(store.root), store.root)
        return
    problems = [check for role in roles for check in _check_role(context, role)]
    problems += _check_directory(store.root)
    yield from problems
    if not problems:
        names = ", ".join(role.name for role in roles) or "none yet"
        yield passed("store", f"All roles can be read and written: {names}.", store.root)
    yield _check_filesystem(context, store)


def _check_role(context: DoctorContext, role: Role) -> Iterator[Check]:
    yield from _check_directory(role.path)
    for path in (role.memory, role.knowledge):
        yield from _check_file(context, path)


def _check_directory(path: Path) -> Iterator[Check]:
    try:
        status = path.lstat()
    except OSError as error:
        text = f"The directory cannot be read: {os_reason(error)}."
        yield problem("store-unreadable", text, _chmod_fix(path.parent), path)
        return
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield problem("store-unwritable", "echod may not read and write this directory.", _chmod_fix(path), path)
    elif status.st_mode & _OTHERS_WRITE_MASK:
        text = "Other users of this machine may write to this directory, and agents trust its content."
        yield note("store-writable-by-others", text, command_line("chmod", "go-w", path), path)


def _check_file(context: DoctorContext, path: Path) -> Iterator[Check]:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    except OSError:
        return  # its directory has been reported
    if not stat.S_ISREG(status.st_mode):
        text = "This is not a regular file (a symbolic link?), so echod does not use it."
        yield problem("memory-not-regular-file", text, "Replace it with a regular file.", path)
    elif not os.access(path, os.R_OK):
        yield problem("memory-unreadable", "echod may not read this file.", command_line("chmod", "u+rw", path), path)
    elif context.uid not in {status.st_uid, 0}:
        text = "The file belongs to another user. A new version could not keep that owner, so echod does not change it."
        yield problem("memory-owner", text, f"As root: {command_line('chown', context.uid, path)}", path)
    elif (reason := _unreadable_reason(path, status.st_size)) is not None:
        text = f"echod does not use this file: {reason}"
        yield problem("memory-unreadable", text, "Repair it, or move it away.", path)


def _unreadable_reason(path: Path, size: int) -> str | None:
    """Return why a file cannot be used as memory, as part of a sentence; None if it can."""
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
            f"The memory is on {name}. Changes by other machines are detected only once a minute, and the memory is "
            "written only while nothing else happens."
        )
        return note("file-system", text, "Keep the project on a local disk if you can.", store.root)
    capabilities = _probe_capabilities(context, store)
    if capabilities is None:
        return passed("file-system", f"The memory is on {name}, whose capabilities were not probed.", store.root)
    exchange, lease, hard_link = capabilities.exchange, capabilities.lease, capabilities.hard_link
    found = {"atomic exchange": exchange, "read leases": lease, "hard links": hard_link}
    missing = ", ".join(word for word, works in found.items() if not works)
    if missing:
        text = f"The memory is on {name}, which lacks {missing}. It is written only while nothing else happens."
        return note("file-system", text, "Writing is as safe as elsewhere, but happens later.", store.root)
    return passed("file-system", f"The memory is on {name}. Exchange, leases and links work.", store.root)


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
        text = f"The project's settings require git to track the memory, but .gitignore contains {line}."
        yield problem("git-ignores", text, fix, store.root)
    elif not version_controlled and line is None:
        text = "The project's settings require git to ignore the memory, but .gitignore does not contain it."
        yield problem("git-tracks", text, fix, store.root)


def _check_leftovers(context: DoctorContext, store: Store) -> Iterator[Check]:
    """Report files of echod's own that nothing follows any more. Git may take those that are not in `.echod/`."""
    try:
        leftovers = find_leftovers(store, context.paths.journal)
    except StoreError as error:
        yield problem("leftovers", str(error), "", store.root)
        return
    for leftover in leftovers:
        exposed = leftover.path.parent.name != PRIVATE_DIRECTORY
        kind = "An earlier version of echod left it where git and other users can take it" if exposed else "It is old"
        text = f"{leftover.path.name} is a replaced version of a file that echod no longer follows. {kind}."
        fix = command_line("echod", "doctor", "--fix", store.project)
        if not leftover.known:
            fix = "Its text is nowhere else, so look at it, then delete it by hand."
        yield (problem if exposed else note)("leftovers", text, fix, leftover.path.parent)


def gitignore_line(store: Store) -> str | None:
    """Return the line of the project's own `.gitignore` that names the store or a directory above it, or None.

    Patterns with wildcards are not understood. Other ignore files (of subdirectories, of the user) are not read.
    """
    relative = store.root.relative_to(store.project)
    names = {part.as_posix() for part in (relative, *relative.parents) if part != Path()}
    try:
        data = read_regular(store.project / ".gitignore", _MAX_GITIGNORE_BYTES, follow_symlinks=False)
    except OSError:
        return None
    lines = (line.strip() for line in data.decode(errors="replace").splitlines())
    return next((line for line in lines if line.strip("/") in names), None)


def _chmod_fix(path: Path) -> str:
    return command_line("chmod", "u+rwx", path)


_OTHERS_MASK = 0o077
_MIN_HOST_DAYS = 7


def check_sessions(context: DoctorContext, projects: Iterable[Path]) -> Iterator[Check]:
    """Check the conversations of these projects."""
    try:
        sessions = SessionProjects(
            context.paths, context.settings.sessions, lambda project: read_project_settings(project).settings
        )
        enabled = sessions.enabled(projects)
    except EchodError as error:
        yield problem("sessions", str(error), "Correct it. Until then no conversation is archived.")
        return
    for project in enabled:
        yield from _check_root(project, sessions.root(project))
    if not enabled:
        return
    days = host_retention_days(claude_home(context.environ))
    if days < _MIN_HOST_DAYS:
        text = f"Claude Code deletes transcripts after {days} days (cleanupPeriodDays)."
        yield note("sessions-host", text, "Keep the service running, so that nothing is deleted before it is archived.")
    command = context.settings.sessions.summary_command
    if command and shutil.which(command[0], path=context.environ.get("PATH", "")) is None:
        text = f"The command for summaries, {command[0]}, is not found. Summaries are extracted instead."
        yield problem("sessions-summaries", text, "Correct sessions.summary_command in the settings.")


def _check_root(project: Path, root: SessionRoot) -> Iterator[Check]:
    if not root.exists:
        text = f"Conversations of {project} are archived, but {root.memory} does not exist yet."
        yield note("sessions-root", text, "It is made with the first archive.", project)
        return
    try:
        root.require()
        number = len(root.archives())
        mode = stat.S_IMODE(root.memory.stat().st_mode)
    except (SessionError, OSError) as error:
        yield problem("sessions-root", str(error), "Check the directory.", root.memory)
        return
    if mode & _OTHERS_MASK:
        fix = command_line("chmod", "700", root.memory)
        yield problem(
            "sessions-private", "Other users can read the archived conversations.", f"Run: {fix}", root.memory
        )
        return
    config = root.config()
    if config.problem:
        yield problem("sessions-config", f"{config.problem}.", f"{config.entries} summaries are kept.", root.memory)
    yield passed("sessions-root", f"Conversations are archived: {number} so far.", root.memory)

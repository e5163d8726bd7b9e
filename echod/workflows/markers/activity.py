"""Detect work that no workflow's own file shows: teams, busy sessions, recent edits, open editors, git operations.

A team's tasks report in `tmp/.rune-signals/{team}/` that they are done. Files directly in `.rune-signals` are messages
between hooks (and `.echo-dirty`, which echod itself touches). They mean nothing for workflows.

Claude Code's own directory has a `sessions/{pid}.json` for each running session. Only the word "busy" counts, and a
session without a terminal (`claude -p`), which works from its start to its end and states no word. A session that waits
for its user delays nothing, and an unknown word is not a reason either: every version brings new words, and workflows
leave markers of their own.

Git itself is never run, because it would take locks. *Tracks* is decided by the repository's index: it contains the
store's path. That may match a path of the same ending elsewhere. Where the index cannot be searched (version 4 shortens
paths, a split index keeps them elsewhere, it is unreadable or huge) the answer is yes, because waiting for a merge
costs little, and changing files in the middle of one costs more.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase

from echod.files import open_regular
from echod.lazy import lazy_pattern
from echod.memory import KNOWLEDGE_FILE, MEMORY_FILE
from echod.workflows import files
from echod.workflows.markers.workflow_files import unlistable_marker
from echod.workflows.model import (
    NO_OWNER,
    EditorLock,
    ExternalChange,
    Marker,
    MarkerKind,
    MarkerOwner,
    MarkerState,
    ProcessTable,
)

SIGNALS_DIRECTORY = "tmp/.rune-signals"


_TEAM = lazy_pattern(r"[A-Za-z0-9_-]{1,200}")
_NUMBER = lazy_pattern(rb"\s*([0-9]{1,6})\s*")
_ALL_DONE = (".all-done", "all-tasks-done")
_EXPECTED_LIMIT = 64
_TEAM_LIMIT = 64
_FILE_LIMIT = 2_000

_SESSION = lazy_pattern(r"[0-9]{1,7}\.json")
_SESSION_SIZE_LIMIT = 1 << 16
_SESSION_LIMIT = 256
_WORKTREES = Path(".claude/worktrees")
_HEADLESS_ENTRYPOINT = "sdk-cli"
_HEADLESS_OPTIONS = frozenset({b"-p", b"--print"})
_COMMAND_LIMIT = 4096
"""Enough for the options, which are before the prompt or after it; a longer prompt may hide them."""


def read_teams(project: Path) -> tuple[tuple[Marker, ...], dict[str, float]]:
    """Return a marker for each team with tasks, and the last sign of life (Unix seconds) of every team."""
    base = project / SIGNALS_DIRECTORY
    if not files.is_directory(base.parent):
        return (), {}
    listing = files.list_names(base, lambda name: _TEAM.fullmatch(name) is not None)
    markers = [] if listing.readable else [unlistable_marker(project, base, listing.modified_at)]
    teams: dict[str, float] = {}
    for team in files.newest((base / name for name in listing.names), _TEAM_LIMIT):
        if not files.is_directory(team):
            continue
        contents = files.list_names(team, lambda _name: True)
        last_active = _last_activity(team, contents)
        if last_active is not None:
            teams[team.name] = last_active
        markers.extend(_team_markers(team, project, contents, last_active))
    return tuple(markers), teams


def _team_markers(
    team: Path, project: Path, contents: files.DirectoryListing, last_active: float | None
) -> tuple[Marker, ...]:
    if not contents.readable:
        return (unlistable_marker(project, team, contents.modified_at),)
    expected = files.read_file(team / ".expected", _EXPECTED_LIMIT)
    if expected is None:
        return ()
    done = sum(1 for name in contents.names if name.endswith(".done") and not name.startswith("."))
    total = _parse_count(expected)
    all_done = (files.lstat_or_none(team / name) for name in _ALL_DONE if name in contents.names)
    if any(status is not None and stat.S_ISREG(status.st_mode) for status in all_done) or total == 0:
        state, description = MarkerState.ENDED, f"team {team.name} has done its tasks"
    elif total is None:
        state, description = MarkerState.UNREADABLE, f"team {team.name} does not state how many tasks it has"
    else:
        state = MarkerState.RUNNING if total > done else MarkerState.ENDED
        description = f"team {team.name} has done {done} of {total} tasks"
    path = files.relative_path(team, project)
    return (Marker(MarkerKind.SIGNALS, path, team.name, description, state, expected.modified_at, last_active),)


def _parse_count(file: files.MarkerFile) -> int | None:
    match = _NUMBER.fullmatch(file.data) if file.data is not None and file.complete else None
    return int(match[1]) if match else None


def _last_activity(team: Path, contents: files.DirectoryListing) -> float | None:
    """Return a team's last sign of life. Agents rewrite their files in place, which does not touch the directory."""
    statuses = (files.lstat_or_none(team / name) for name in contents.names[:_FILE_LIMIT])
    return files.latest_time(contents.modified_at, *(files.modified_time(status) for status in statuses if status))


def read_sessions(claude_home: Path, project: Path, processes: ProcessTable) -> tuple[Marker, ...]:
    """Return the busy sessions whose working directory is in the project (and not in a worktree copy of it)."""
    directory = claude_home / "sessions"
    names = files.list_names(directory, lambda name: _SESSION.fullmatch(name) is not None).names
    paths = files.newest((directory / name for name in names), _SESSION_LIMIT)
    markers = (_read_session(path, project, processes) for path in paths)
    return tuple(marker for marker in markers if marker is not None)


def _read_session(path: Path, project: Path, processes: ProcessTable) -> Marker | None:
    file = files.read_file(path, _SESSION_SIZE_LIMIT)
    session = None if file is None else files.parse_json_object(file)
    if file is None or session is None or not _works_in(files.text_field(session, "cwd"), project):
        return None
    number = files.parse_pid(session.get("pid")) or files.parse_pid(path.stem)
    if number is None:
        return None
    busy = files.normalize_status(files.text_field(session, "status")) == "busy"
    if not busy and not _is_headless(session, number):
        return None
    return Marker(
        kind=MarkerKind.SESSION,
        path=str(path),
        name=files.printable(files.text_field(session, "sessionId")),
        description=f"a Claude Code session {'is busy' if busy else 'without a terminal works'} in this project",
        state=MarkerState.RUNNING,
        modified_at=file.modified_at,
        last_active=file.modified_at,
        owner=MarkerOwner(number, processes.lookup(number)),
        started=files.first_time(session, "startedAt", "started_at"),
    )


def _is_headless(session: Mapping[str, object], number: int) -> bool:
    """Return whether a session was started to do one task and end (`claude -p`)."""
    if files.text_field(session, "entrypoint") == _HEADLESS_ENTRYPOINT:
        return True
    command = files.read_file(Path(f"/proc/{number}/cmdline"), _COMMAND_LIMIT)
    words = () if command is None or command.data is None else command.data.split(b"\0")
    return bool(words) and b"claude" in b" ".join(words[:2]) and not _HEADLESS_OPTIONS.isdisjoint(words[1:])


def _works_in(directory: str, project: Path) -> bool:
    if not Path(directory).is_absolute() or "\0" in directory:
        return False
    try:
        inside = Path(os.path.realpath(directory))
    except OSError:
        return False
    return inside.is_relative_to(project) and not inside.is_relative_to(project / _WORKTREES)


MEMORY_FILES = frozenset({MEMORY_FILE, KNOWLEDGE_FILE})
_ROLE = lazy_pattern(r"[A-Za-z0-9_-]{1,128}")
_EDITED = r"(?P<edits>MEMORY\.md|knowledge\.md)"
_VIM = lazy_pattern(rf"\.{_EDITED}\.sw[a-z]")  # nano writes the same
_EMACS = lazy_pattern(rf"\.#{_EDITED}")
# Kate's and LibreOffice's do not name their process. A backup (`MEMORY.md~`) is not a lock, because it is kept.
_OTHER_EDITORS = (lazy_pattern(rf"\.{_EDITED}\.kate-swp"), lazy_pattern(rf"\.~lock\.{_EDITED}#"))
# Checked by name: a role may hold very many files, and the gate is evaluated often.
_LOCK_NAMES = tuple(
    lock
    for name in sorted(MEMORY_FILES)
    for lock in (
        f".#{name}",
        *(f".{name}.sw{letter}" for letter in ascii_lowercase),
        f".{name}.kate-swp",
        f".~lock.{name}#",
    )
)
_NAMES = (*sorted(MEMORY_FILES), *_LOCK_NAMES)
_EMACS_TARGET = lazy_pattern(r".*@(?P<host>.+)\.(?P<pid>[0-9]+)(?::[0-9]+)?", re.DOTALL)
_VIM_HEADER = 108
_VIM_PID = slice(24, 28)
_VIM_HOST = slice(68, 108)


def read_edits(
    project: Path,
    stores: Sequence[Path],
    since: float,
    own_mtime: Callable[[Path], int | None],
    processes: ProcessTable,
) -> tuple[tuple[ExternalChange, ...], tuple[EditorLock, ...]]:
    """Return changes since `since` (Unix seconds) and editors in the roles of the stores' directories.

    `own_mtime` returns the modification time (nanoseconds) that echod's own last write left on a path. A file in that
    state was not changed by another program.
    """
    changes: list[ExternalChange] = []
    editors: list[EditorLock] = []
    for store in stores:
        for role in files.list_names(store, lambda name: _ROLE.fullmatch(name) is not None).names:
            directory = store / role
            for name in files.existing_names(directory, _NAMES):
                path = directory / name
                if name in MEMORY_FILES:
                    changes.extend(_read_change(path, project, since, own_mtime))
                else:
                    editors.extend(_read_editor_lock(path, project, processes))
    return tuple(changes), tuple(editors)


def edited_file(name: str) -> str | None:
    """Return the file whose lock or swap file has this name, None if it is neither."""
    matches = (pattern.fullmatch(name) for pattern in (_VIM, _EMACS, *_OTHER_EDITORS))
    return next((match["edits"] for match in matches if match), None)


def _read_change(
    path: Path, project: Path, since: float, own_mtime: Callable[[Path], int | None]
) -> tuple[ExternalChange, ...]:
    status = files.lstat_or_none(path)
    if status is None or not stat.S_ISREG(status.st_mode):
        return ()
    changed_at = files.modified_time(status)
    # Most files are older, and looking up our own write costs as much as the status.
    if changed_at < since or own_mtime(path) == status.st_mtime_ns:
        return ()
    return (ExternalChange(files.relative_path(path, project), changed_at),)


def _read_editor_lock(path: Path, project: Path, processes: ProcessTable) -> tuple[EditorLock, ...]:
    status = files.lstat_or_none(path)
    if status is None or not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        return ()
    edits = edited_file(path.name) or path.name
    host, number = _emacs_owner(path) if _EMACS.fullmatch(path.name) else _vim_owner(path)
    # A process number means something on its own host only.
    owner = NO_OWNER if number is None or host != os.uname().nodename else MarkerOwner(number, processes.lookup(number))
    return (EditorLock(files.relative_path(path, project), edits, files.modified_time(status), owner),)


def _emacs_owner(path: Path) -> tuple[str, int | None]:
    """Return host and process from Emacs' lock, a link to nothing (`user@host.pid:boot`) that is read, not followed."""
    try:
        target = str(path.readlink())
    except OSError:
        return "", None
    match = _EMACS_TARGET.fullmatch(target)
    return (match["host"], files.parse_pid(match["pid"])) if match else ("", None)


def _vim_owner(path: Path) -> tuple[str, int | None]:
    """Return host and process from Vim's first block: "b0", and both at fixed offsets (the number little endian)."""
    file = files.read_file(path, _VIM_HEADER)
    if file is None or file.data is None or len(file.data) < _VIM_HEADER or not file.data.startswith(b"b0"):
        return "", None
    host = file.data[_VIM_HOST].partition(b"\0")[0].decode(errors="replace")
    return host, files.parse_pid(int.from_bytes(file.data[_VIM_PID], "little"))


OPERATIONS = {
    "index.lock": "git is writing its index",
    "MERGE_HEAD": "a git merge is in progress",
    "CHERRY_PICK_HEAD": "a git cherry-pick is in progress",
    "REVERT_HEAD": "a git revert is in progress",
    "rebase-merge": "a git rebase is in progress",
    "rebase-apply": "a git rebase or am is in progress",
}
_GITDIR = b"gitdir:"
_GITDIR_LIMIT = 4_096
_INDEX_LIMIT = 256 << 20
_CHUNK = 1 << 20
_MAX_REBASE_FILES = 64


def read_git_operations(project: Path, stores: Sequence[Path]) -> tuple[Marker, ...]:
    """Return the git operations in progress that concern any of the stores."""
    markers: dict[Path, Marker] = {}
    for store in stores:
        repository = _find_repository(store)
        if repository is None:
            continue
        worktree, git = repository
        running = [name for name in OPERATIONS if files.lstat_or_none(git / name) is not None]
        if running and _may_track_path(git, store.relative_to(worktree)):
            markers |= {git / name: _git_marker(git / name, project) for name in running}
    return tuple(markers.values())


def may_track(store: Path) -> bool:
    """Return whether git may track files of a store: its index contains the store, or cannot be read."""
    repository = _find_repository(store)
    return repository is not None and _may_track_path(repository[1], store.relative_to(repository[0]))


def _git_marker(path: Path, project: Path) -> Marker:
    at, shown_path = _last_git_activity(path), files.relative_path(path, project)
    return Marker(MarkerKind.GIT, shown_path, path.name, OPERATIONS[path.name], MarkerState.RUNNING, at, at)


def _last_git_activity(path: Path) -> float | None:
    """Return the last sign of life. A rebase keeps its steps in files of its directory, rewritten in place."""
    names = files.list_names(path, lambda _name: True).names[:_MAX_REBASE_FILES]
    statuses = (files.lstat_or_none(at) for at in (path, *(path / step for step in names)))
    return files.latest_time(*(files.modified_time(status) for status in statuses if status))


def _find_repository(store: Path) -> tuple[Path, Path] | None:
    """Return the worktree that contains a store, and its git directory (elsewhere for a worktree or submodule)."""
    for directory in (store, *store.parents):
        link = f"{directory}/.git"  # as text, which takes a third of the time
        if not os.path.lexists(link):
            continue
        target = Path(os.path.realpath(link))
        git = target if files.is_directory(target) else _read_gitdir_link(target)
        if git is not None:
            return directory, git
    return None


def _read_gitdir_link(link: Path) -> Path | None:
    file = files.read_file(link, _GITDIR_LIMIT)
    if file is None or file.data is None or not file.data.startswith(_GITDIR):
        return None
    target = os.fsdecode(file.data.removeprefix(_GITDIR).strip())
    return None if not target or "\0" in target else Path(os.path.normpath(link.parent / target))


def _may_track_path(git: Path, relative_path: Path) -> bool:
    if files.list_names(git, lambda name: name.startswith("sharedindex.")).names:
        return True
    try:
        with open_regular(git / "index") as index:
            header = index.read(8)
            version = int.from_bytes(header[4:8], "big")
            if header[:4] != b"DIRC" or version not in {2, 3} or os.fstat(index.fileno()).st_size > _INDEX_LIMIT:
                return True
            return _contains(iter(lambda: index.read(_CHUNK), b""), os.fsencode(relative_path.as_posix()) + b"/")
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _contains(chunks: Iterable[bytes], needle: bytes) -> bool:
    tail = b""
    for chunk in chunks:
        window = tail + chunk
        if needle in window:
            return True
        tail = window[-len(needle) :]
    return False

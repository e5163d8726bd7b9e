"""Read the files that a workflow keeps in a project while it runs: its state file, lock, checkpoint and loop file.

A run's lead writes `tmp/.rune-{type}-{id}.json` at the start, rewrites it in place at the end, and never deletes it, so
most of them are of past runs. It is written by a language model's file tool, not atomically: it can be caught
half-written. The incremental audit's checkpoint is read in the same way.

A lock (`tmp/.rune-locks/{workflow}/meta.json`) is a directory; its owner is written a moment later. Upstream takes
locks as advice, so the absence of a lock proves nothing. There is also upstream's lock of its move from `.claude` to
`.rune`.

`unlistable_marker` is for all kinds of markers: a directory that cannot be listed may hold any of them, so it counts,
for a bounded time.

The checkpoint is `arc/{arc-id}/checkpoint.json`. A finished pipeline and an abandoned one both keep `completed_at:
null` and pending phases, so only a phase in progress means anything.

An `arc-{phase,batch,hierarchy,issues}-loop.local.md` has lines like YAML between two lines of `---`, then a prompt. It
changes between phases only, and those last up to an hour. Deleting one may end with an empty file. An abrupt end leaves
`active: true`, so its checkpoint decides.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from echod.lazy import lazy_pattern
from echod.workflows import files
from echod.workflows.model import NO_OWNER, Marker, MarkerKind, MarkerState, ProcessTable

_NAME = lazy_pattern(r"\.rune-(?P<run>[a-zA-Z0-9]+-[a-zA-Z0-9_-]+)\.json")
# Files with such a name that hold no state: requests to stop, compaction notes, cleanup notes, review findings.
_EXCLUDED_PREFIXES = (
    ".rune-shutdown-signal-",
    ".rune-force-shutdown-",
    ".rune-compact-",
    ".rune-cleanup-",
    ".rune-pr-comment-findings-",
)
# Types whose names contain a hyphen; every other type ends at the first hyphen.
_HYPHENATED_TYPES = ("gap-fix", "design-sync", "resolve-todos", "self-audit", "codex-review")
_AUDIT_CHECKPOINT = ("audit-state", "checkpoint.json")
_ARC_ID = lazy_pattern(r"arc-[0-9]+")
_SIZE_LIMIT = 1 << 20
MAX_STATE_FILES = 256

LOCKS_DIRECTORY = "tmp/.rune-locks"

# Names with a dot are locks that are just being made or reclaimed.
_LOCK_NAME = lazy_pattern(r"[A-Za-z0-9_-]{1,100}")
_SOURCE = lazy_pattern(r"/[a-zA-Z0-9_./ -]+")
_LOCK_SIZE_LIMIT = 1 << 16
_MAX_LOCKS = 256


def read_state_files(project: Path, teams: Mapping[str, float], processes: ProcessTable) -> tuple[Marker, ...]:
    """Return the state files of a project; `teams` has the last sign of life (Unix seconds) of each team's signals."""
    directory = project / "tmp"
    listing = files.list_names(directory, is_state_file)
    markers = [] if listing.readable else [unlistable_marker(project, directory, listing.modified_at)]
    paths = files.newest((directory / name for name in listing.names), MAX_STATE_FILES)
    read = (_read_state_file(path, project, teams, processes) for path in (*paths, *_audit_checkpoints(project)))
    return (*markers, *(marker for marker in read if marker is not None))


def _audit_checkpoints(project: Path) -> Iterator[Path]:
    """Yield the possible paths of the incremental audit's checkpoint."""
    for root in files.UPSTREAM_DIRECTORIES:
        parent = project / root
        if files.is_directory(parent) and files.is_directory(directory := parent / _AUDIT_CHECKPOINT[0]):
            yield directory / _AUDIT_CHECKPOINT[1]


def is_state_file(name: str) -> bool:
    """Return whether a name in `tmp` is a state file's. Unknown types count, because upstream adds new ones."""
    return name.startswith(".rune-") and not name.startswith(_EXCLUDED_PREFIXES) and _NAME.fullmatch(name) is not None


def _read_state_file(path: Path, project: Path, teams: Mapping[str, float], processes: ProcessTable) -> Marker | None:
    file = files.read_file(path, _SIZE_LIMIT)
    if file is None:
        return None
    content = files.parse_json_object(file)
    fields = content or {}
    status = files.text_field(fields, "status")
    match = _NAME.fullmatch(path.name)
    run = match["run"] if match else "audit-incremental"
    workflow = next((known for known in _HYPHENATED_TYPES if run.startswith(known + "-")), run.partition("-")[0])
    team = files.text_field(fields, "team_name", "teamName")
    arc = _ARC_ID.search(f"{team} {run}")
    return Marker(
        kind=MarkerKind.STATE_FILE,
        path=files.relative_path(path, project),
        name=run,
        description=_describe(workflow, status, readable=content is not None),
        state=MarkerState.UNREADABLE if content is None else marker_state(status),
        modified_at=file.modified_at,
        last_active=files.latest_time(file.modified_at, teams.get(team)),
        owner=files.find_owner(fields, processes),
        started=files.first_time(fields, "started", "started_at", "startedAt"),
        ended=files.first_time(fields, "completed", "completed_at", "completedAt", "stopped_at"),
        workflow=workflow,
        key=_workflow_key(run, arc[0] if arc else "", readable=content is not None),
    )


def marker_state(status: str) -> MarkerState:
    """Return the meaning of a status: none means nothing (as upstream reads it), and a new word means running."""
    ended = not status or files.normalize_status(status) in files.ENDED_STATUSES
    return MarkerState.ENDED if ended else MarkerState.RUNNING


def _workflow_key(run: str, arc: str, *, readable: bool) -> str:
    """Return the identity of a run: its arc's, if it is a phase of one. A file that cannot be read may be either."""
    if not readable:
        return ""
    return f"arc:{arc}" if arc else f"run:{run}"


def _describe(workflow: str, status: str, *, readable: bool) -> str:
    if not readable:
        return f"the state file of the {workflow} workflow cannot be read, perhaps it is still being written"
    return f'the {workflow} workflow has the status "{files.printable(status)}"'


def read_locks(project: Path, processes: ProcessTable) -> tuple[Marker, ...]:
    """Return the locks that concern a project; in a worktree, upstream takes them in the main repository."""
    roots = dict.fromkeys((project, *_main_repository(project)))
    markers = (marker for root in roots for marker in _lock_markers(root / LOCKS_DIRECTORY, project, processes))
    return (*markers, *_migration_markers(project))


def _lock_markers(base: Path, project: Path, processes: ProcessTable) -> tuple[Marker, ...]:
    if not files.is_directory(base.parent) or not files.is_directory(base):
        return ()
    listing = files.list_names(base, lambda name: _LOCK_NAME.fullmatch(name) is not None)
    if not listing.readable:
        return (unlistable_marker(project, base, listing.modified_at),)
    # A released lock leaves no file; only the directory's own time shows it.
    text, path, at = "a workflow lock was taken or released", files.relative_path(base, project), listing.modified_at
    released = Marker(MarkerKind.LOCK, path, "", text, MarkerState.ENDED, modified_at=at, last_active=at)
    paths = files.newest((base / name for name in listing.names), _MAX_LOCKS)
    locks = (_read_lock(path, project, processes) for path in paths if files.is_directory(path))
    return (*locks, released)


def _read_lock(path: Path, project: Path, processes: ProcessTable) -> Marker:
    file = files.read_file(path / "meta.json", _LOCK_SIZE_LIMIT)
    meta = None if file is None else files.parse_json_object(file)
    modified_at = files.modified_time_or_none(path) if file is None else file.modified_at
    return Marker(
        kind=MarkerKind.LOCK,
        path=files.relative_path(path, project),
        name=path.name,
        description=f"the lock of {path.name} is {'held' if meta else 'being taken'}",
        state=MarkerState.RUNNING if meta else MarkerState.UNREADABLE,
        modified_at=modified_at,
        last_active=modified_at,
        owner=files.find_owner(meta, processes, "pid", "owner_pid") if meta else NO_OWNER,
        started=files.first_time(meta, "started") if meta else None,
    )


def _migration_markers(project: Path) -> tuple[Marker, ...]:
    path = project / ".rune" / ".migration-lock"
    status = files.lstat_or_none(path) if files.is_directory(path.parent) and files.is_directory(path) else None
    if status is None:
        return ()
    shown_path, at = files.relative_path(path, project), files.modified_time(status)
    text = "the plugin is moving its files from .claude to .rune"
    return (Marker(MarkerKind.MIGRATION, shown_path, "migration", text, MarkerState.RUNNING, at, at),)


def _main_repository(project: Path) -> tuple[Path, ...]:
    """Return the root that upstream wrote into a worktree it made; nothing for an ordinary project."""
    git = files.lstat_or_none(project / ".git")
    if git is None or files.is_directory(project / ".git"):
        return ()
    for root in files.UPSTREAM_DIRECTORIES:
        file = files.read_file(project / root / ".rune-worktree-source", _LOCK_SIZE_LIMIT)
        first = (file.data or b"").partition(b"\n")[0].decode(errors="replace").strip() if file else ""
        if _SOURCE.fullmatch(first) and ".." not in first and files.is_directory(Path(first)):
            return (Path(first),)
    return ()


def unlistable_marker(project: Path, directory: Path, modified_at: float | None) -> Marker:
    """Return the marker for a `directory`, last changed at `modified_at` (Unix seconds), that cannot be listed."""
    path = files.relative_path(directory, project)
    text, at = f"the directory {path} cannot be read; make it readable for echod", modified_at
    return Marker(MarkerKind.INACCESSIBLE, path, directory.name, text, MarkerState.UNREADABLE, at, at)


ARC_DIRECTORIES = (".rune/arc", ".claude/arc", "tmp/arc")
"""After a compaction a checkpoint may be in `tmp`. Deeper copies and other directories are archives."""
_ARC_DIRECTORY = lazy_pattern(r"arc-[0-9]{1,24}")
_CHECKPOINT_SIZE_LIMIT = 4 << 20
_COUNT_LIMIT = 64


class Arc(NamedTuple):
    """A pipeline: its checkpoint as a marker, and whether it is over (no phase can follow)."""

    marker: Marker
    finished: bool


def is_arc_id(name: str) -> bool:
    """Return whether a directory's name is a pipeline's id."""
    return _ARC_DIRECTORY.fullmatch(name) is not None


def read_checkpoints(project: Path, processes: ProcessTable) -> tuple[dict[str, Arc], tuple[Marker, ...]]:
    """Return the pipelines of a project by id, and the directories that could not be listed."""
    arcs: dict[str, Arc] = {}
    problems: list[Marker] = []
    for root in ARC_DIRECTORIES:
        base = project / root
        if not all(files.is_directory(parent) for parent in (base.parent, base)):
            continue
        listing = files.list_names(base, is_arc_id)
        if not listing.readable:
            problems.append(unlistable_marker(project, base, listing.modified_at))
        inside = (base / name / "checkpoint.json" for name in listing.names if files.is_directory(base / name))
        for path in files.newest(inside, _COUNT_LIMIT):
            arc = _read_checkpoint(path, project, processes)
            if arc is not None:
                arcs[path.parent.name] = _newer(arcs.get(path.parent.name), arc)
    return arcs, tuple(problems)


def _newer(current: Arc | None, other: Arc) -> Arc:
    """Return the newer of two copies of one pipeline, which it may have left in two directories."""
    if current is None or (other.marker.modified_at or 0) > (current.marker.modified_at or 0):
        return other
    return current


def _read_checkpoint(path: Path, project: Path, processes: ProcessTable) -> Arc | None:
    file = files.read_file(path, _CHECKPOINT_SIZE_LIMIT)
    if file is None:
        return None
    arc_id = path.parent.name
    heartbeat_at = files.modified_time_or_none(project / "tmp" / "arc" / arc_id / "heartbeat.json")
    marker = Marker(
        kind=MarkerKind.CHECKPOINT,
        path=files.relative_path(path, project),
        name=arc_id,
        description=f"the checkpoint of {arc_id} cannot be read, perhaps it is still being written",
        state=MarkerState.UNREADABLE,
        modified_at=file.modified_at,
        last_active=files.latest_time(file.modified_at, heartbeat_at),
        workflow="arc",
    )
    content = files.parse_json_object(file)
    phases = None if content is None else _phases(content)
    if content is None or phases is None:
        return Arc(marker, finished=False)
    marker = marker._replace(
        owner=files.find_owner(content, processes),
        started=files.first_time(content, "started_at"),
        ended=files.first_time(content, "completed_at", "cancelled_at"),
        key="" if {"", "pending", "skipped"}.issuperset(phases.values()) else f"arc:{arc_id}",
    )
    cancelled = files.parse_flag(content.get("user_cancelled")) or bool(files.text_field(content, "stop_reason"))
    in_progress = () if cancelled else tuple(name for name, status in phases.items() if _is_in_progress(status))
    if in_progress:
        description = f"{arc_id} is in phase {files.printable(', '.join(in_progress))}"
        return Arc(marker._replace(state=MarkerState.RUNNING, description=description), finished=False)
    finished = cancelled or all(status in files.ENDED_STATUSES for status in phases.values())
    return Arc(marker._replace(state=MarkerState.ENDED, description=f"{arc_id} is in no phase"), finished=finished)


def _phases(content: Mapping[str, object]) -> dict[str, str] | None:
    """Return each phase's status; None if this is not a checkpoint."""
    phases = content.get("phases")
    if not isinstance(phases, dict) or not phases:
        return None
    return {str(name): _status(phase) for name, phase in phases.items()}


def _status(phase: object) -> str:
    status = phase.get("status") if isinstance(phase, dict) else phase
    return files.normalize_status(status) if isinstance(status, str) else ""


def _is_in_progress(status: str) -> bool:
    """Return whether a status means work in progress. A new word does: unknown means running, for a bounded time."""
    return bool(status) and status not in files.ENDED_STATUSES and status != "pending"


LOOP_KINDS = ("phase", "batch", "hierarchy", "issues")
_KIND_BY_NAME = {f"arc-{kind}-loop.local.md": kind for kind in LOOP_KINDS}
_LOOP_SIZE_LIMIT = 1 << 16
_FENCE = "---"


def read_loops(project: Path, arcs: Mapping[str, Arc], processes: ProcessTable) -> tuple[Marker, ...]:
    """Return the loop files of a project, judged together with the checkpoints (`arcs`, by id) they name."""
    markers: list[Marker] = []
    for root in files.UPSTREAM_DIRECTORIES:
        directory = project / root
        listing = files.list_names(directory, _KIND_BY_NAME.__contains__)
        # Where names cannot be listed, files may exist all the same.
        for name in listing.names if listing.readable else _KIND_BY_NAME:
            marker = _read_loop(directory / name, _KIND_BY_NAME[name], project, arcs, processes)
            if marker is not None:
                markers.append(marker)
    return tuple(markers)


def _read_loop(path: Path, kind: str, project: Path, arcs: Mapping[str, Arc], processes: ProcessTable) -> Marker | None:
    file = files.read_file(path, _LOOP_SIZE_LIMIT)
    if file is None:
        return None
    front_matter = None if file.data is None else parse_front_matter(file.data)
    fields = front_matter or {}
    arc_id = _arc_id(fields.get("checkpoint_path", ""))
    arc = arcs.get(arc_id)
    state = MarkerState.UNREADABLE if front_matter is None else _loop_state(front_matter, arc)
    return Marker(
        kind=MarkerKind.LOOP,
        path=files.relative_path(path, project),
        name=arc_id or f"arc-{kind}",
        description=_describe_arc(kind, arc_id, state),
        state=state,
        modified_at=file.modified_at,
        last_active=files.latest_time(file.modified_at, arc.marker.last_active if arc else None),
        owner=files.find_owner(fields, processes),
        started=files.first_time(fields, "started_at") or (arc.marker.started if arc else None),
        workflow="arc" if kind == "phase" else f"arc-{kind}",
        key=_arc_key(kind, arc_id, fields),
    )


def parse_front_matter(data: bytes) -> dict[str, str] | None:
    """Return the `key: value` lines at the top; none for an empty (that is a deleted) file, None for anything else."""
    text = data.decode("utf-8-sig", errors="replace")
    if not text.strip():
        return {}
    lines = [line.rstrip() for line in text.split("\n")]
    if lines[0] != _FENCE or _FENCE not in lines[1:]:
        return None
    fields: dict[str, str] = {}
    for line in lines[1 : lines.index(_FENCE, 1)]:
        key, colon, value = line.partition(":")
        if colon and key.strip() == key and key:
            fields[key] = _unquoted(value.strip())
    return fields


def _unquoted(value: str) -> str:
    if value[:1] in {'"', "'"}:
        return value[1:].partition(value[0])[0]
    value = value.partition(" #")[0].rstrip()
    return "" if value in {"null", "~"} else value


def _loop_state(fields: Mapping[str, str], arc: Arc | None) -> MarkerState:
    stopped = any(files.parse_flag(fields.get(name)) for name in ("user_cancelled", "stop_reason", "group_paused"))
    if stopped or (arc is not None and arc.finished):
        return MarkerState.ENDED
    active, status = fields.get("active", ""), files.normalize_status(fields.get("status", ""))
    if active:
        return MarkerState.RUNNING if files.parse_flag(active) else MarkerState.ENDED
    return MarkerState.RUNNING if status and status not in files.ENDED_STATUSES | {"inactive"} else MarkerState.ENDED


def _arc_id(checkpoint_path: str) -> str:
    """Return the pipeline that a checkpoint's path, relative or absolute, names; "" if it names none."""
    name = posixpath.basename(posixpath.dirname(checkpoint_path))
    return name if is_arc_id(name) else ""


def _arc_key(kind: str, arc_id: str, fields: Mapping[str, str]) -> str:
    if arc_id:
        return f"arc:{arc_id}"
    # Nothing else distinguishes one batch from the next.
    start = fields.get("started_at", "")
    return f"loop:{kind}:{files.printable(start)}" if start and kind != "phase" else ""


def _describe_arc(kind: str, arc_id: str, state: MarkerState) -> str:
    of = f" of {arc_id}" if arc_id else ""
    if state is MarkerState.UNREADABLE:
        return f"the {kind} loop file cannot be read"
    return f"the {kind} loop{of} is {'active' if state is MarkerState.RUNNING else 'over'}"

"""Loop files: `arc-{phase,batch,hierarchy,issues}-loop.local.md`, which keep a pipeline going from phase to phase.

Lines like YAML between two lines of `---`, then a prompt. It changes between phases only, and those last up to an hour.
Deleting one may end with an empty file. An abrupt end leaves `active: true`, so its checkpoint has the last word.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from echod.workflows import files
from echod.workflows.markers.checkpoints import Arc, is_arc
from echod.workflows.model import Claim, Kind, Marker

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from echod.workflows.model import Processes

ROOTS = (".rune", ".claude")
KINDS = ("phase", "batch", "hierarchy", "issues")
_KINDS = {f"arc-{kind}-loop.local.md": kind for kind in KINDS}
_SIZE_LIMIT = 1 << 16
_FENCE = "---"


def read(project: Path, arcs: Mapping[str, Arc], processes: Processes) -> tuple[Marker, ...]:
    """The loop files of a project, judged together with the checkpoints (`arcs`, by id) they name."""
    markers: list[Marker] = []
    for root in ROOTS:
        directory = project / root
        listing = files.names_in(directory, _KINDS.__contains__)
        # Where names cannot be listed, files may be there all the same.
        for name in listing.names if listing.readable else _KINDS:
            marker = _read_one(directory / name, _KINDS[name], project, arcs, processes)
            if marker is not None:
                markers.append(marker)
    return tuple(markers)


def _read_one(path: Path, kind: str, project: Path, arcs: Mapping[str, Arc], processes: Processes) -> Marker | None:
    found = files.read(path, _SIZE_LIMIT)
    if found is None:
        return None
    lines = None if found.data is None else frontmatter(found.data)
    said = lines or {}
    arc_id = _arc_id(said.get("checkpoint_path", ""))
    arc = arcs.get(arc_id)
    claim = Claim.UNREADABLE if lines is None else _claim(lines, arc)
    return Marker(
        kind=Kind.LOOP,
        path=files.relative(path, project),
        name=arc_id or f"arc-{kind}",
        says=_says(kind, arc_id, claim),
        claim=claim,
        written=found.written,
        touched=files.latest(found.written, arc.marker.touched if arc else None),
        owner=files.owner(said, processes),
        started=files.first_moment(said, "started_at") or (arc.marker.started if arc else None),
        workflow="arc" if kind == "phase" else f"arc-{kind}",
        key=_key(kind, arc_id, said),
    )


def frontmatter(data: bytes) -> dict[str, str] | None:
    """The `key: value` lines at the top. Empty for an empty file (that is a deleted one), None for anything else."""
    text = data.decode("utf-8-sig", errors="replace")
    if not text.strip():
        return {}
    lines = [line.rstrip() for line in text.split("\n")]
    if lines[0] != _FENCE or _FENCE not in lines[1:]:
        return None
    said: dict[str, str] = {}
    for line in lines[1 : lines.index(_FENCE, 1)]:
        key, colon, value = line.partition(":")
        if colon and key.strip() == key and key:
            said[key] = _unquoted(value.strip())
    return said


def _unquoted(value: str) -> str:
    if value[:1] in {'"', "'"}:
        return value[1:].partition(value[0])[0]
    value = value.partition(" #")[0].rstrip()
    return "" if value in {"null", "~"} else value


def _claim(said: Mapping[str, str], arc: Arc | None) -> Claim:
    halted = any(files.flag(said.get(name)) for name in ("user_cancelled", "stop_reason", "group_paused"))
    if halted or (arc is not None and arc.over):
        return Claim.ENDED
    active, status = said.get("active", ""), files.word(said.get("status", ""))
    if active:
        return Claim.RUNNING if files.flag(active) else Claim.ENDED
    return Claim.RUNNING if status and status not in files.ENDED_WORDS | {"inactive"} else Claim.ENDED


def _arc_id(checkpoint_path: str) -> str:
    """The pipeline that a checkpoint's path, relative or absolute, names; "" if it names none."""
    name = posixpath.basename(posixpath.dirname(checkpoint_path))
    return name if is_arc(name) else ""


def _key(kind: str, arc_id: str, said: Mapping[str, str]) -> str:
    if arc_id:
        return f"arc:{arc_id}"
    # Nothing else tells one batch from the next.
    own = said.get("started_at", "")
    return f"loop:{kind}:{files.shown(own)}" if own and kind != "phase" else ""


def _says(kind: str, arc_id: str, claim: Claim) -> str:
    of = f" of {arc_id}" if arc_id else ""
    if claim is Claim.UNREADABLE:
        return f"the {kind} loop file cannot be understood"
    return f"the {kind} loop{of} says it is {'active' if claim is Claim.RUNNING else 'over'}"

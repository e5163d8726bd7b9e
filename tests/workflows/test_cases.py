"""The table: one line for each way a marker can look, with the verdict and the kind of its first reason.

Ages are hours. `active` and `quiet` need a reason that holds; after `idle` a kind stands for a warning that stays.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from echod.workflows import DeclaredWorkflow, GateState, MarkerKind
from tests.workflows.scene import DEAD_PID, LIVE_PID, MINUTE, REUSED_PID, UNKNOWN_PID

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.workflows.scene import Scene

ACTIVE, QUIET, IDLE = GateState.ACTIVE, GateState.QUIET, GateState.IDLE
STATE = MarkerKind.STATE_FILE

Row = tuple[str, "Callable[[Scene], object]", GateState, MarkerKind | None]

STATE_FILES: list[Row] = [
    ("nothing at all", lambda s: s.project, IDLE, None),
    ("active, owner alive", lambda s: s.state(status="active", owner_pid=str(LIVE_PID)), ACTIVE, STATE),
    ("running", lambda s: s.state(status="running", owner_pid=str(LIVE_PID)), ACTIVE, STATE),
    ("dispatched", lambda s: s.state("dispatch-17", status="dispatched", owner_pid=str(LIVE_PID)), ACTIVE, STATE),
    ("in another spelling", lambda s: s.state(status=" In-Progress ", owner_pid=LIVE_PID), ACTIVE, STATE),
    ("owner as a number", lambda s: s.state(status="active", owner_pid=LIVE_PID, age=5), ACTIVE, STATE),
    ("owner in camel case", lambda s: s.state("verify-1", status="running", ownerPid=LIVE_PID, age=5), ACTIVE, STATE),
    ("owner alive, untouched for 11 h", lambda s: s.state(status="active", owner_pid=LIVE_PID, age=11), ACTIVE, STATE),
    ("owner alive, untouched for 13 h", lambda s: s.state(status="active", owner_pid=LIVE_PID, age=13), IDLE, STATE),
    ("owner gone for 9 min", lambda s: s.state(status="active", owner_pid=DEAD_PID, age=9 * MINUTE), ACTIVE, STATE),
    ("owner gone for 11 min", lambda s: s.state(status="active", owner_pid=DEAD_PID, age=11 * MINUTE), IDLE, None),
    ("owner's number reused", lambda s: s.state(status="active", owner_pid=REUSED_PID), IDLE, None),
    ("owner's number reused, young", lambda s: s.state(status="active", owner_pid=REUSED_PID, age=0.1), ACTIVE, STATE),
    ("nobody can tell, young", lambda s: s.state(status="active", owner_pid=UNKNOWN_PID, age=1.9), ACTIVE, STATE),
    ("nobody can tell, old", lambda s: s.state(status="active", owner_pid=UNKNOWN_PID, age=2.1), IDLE, STATE),
    ("no owner, young", lambda s: s.state(status="active", age=1.9), ACTIVE, STATE),
    ("no owner, old", lambda s: s.state(status="active", age=2.1), IDLE, STATE),
    ("no owner, residue of last month", lambda s: s.state(status="active", age=720), IDLE, None),
    ("owner $PPID, young", lambda s: s.state(status="active", owner_pid="$PPID", age=1.9), ACTIVE, STATE),
    ("owner $PPID, old", lambda s: s.state(status="active", owner_pid="$PPID", age=2.1), IDLE, STATE),
    ("owner 0", lambda s: s.state("goldmask-1", status="active", owner_pid="0", age=1.9), ACTIVE, STATE),
    ("owner 1", lambda s: s.state(status="active", owner_pid=1, age=2.1), IDLE, STATE),
    ("owner null", lambda s: s.state(status="active", owner_pid=None, age=2.1), IDLE, STATE),
    ("owner empty", lambda s: s.state(status="active", owner_pid="", age=2.1), IDLE, STATE),
    ("owner true", lambda s: s.state(status="active", owner_pid=True, age=2.1), IDLE, STATE),
    ("owner negative", lambda s: s.state(status="active", owner_pid=-LIVE_PID, age=2.1), IDLE, STATE),
    ("owner beyond every table", lambda s: s.state(status="active", owner_pid=9_999_999, age=2.1), IDLE, STATE),
    ("of another installation", lambda s: s.state(status="active", owner_pid=LIVE_PID, config_dir="/else"), ACTIVE, STATE),
    ("completed", lambda s: s.state(status="completed", owner_pid=LIVE_PID), IDLE, None),
    ("completed with gaps", lambda s: s.state(status="completed_with_gaps", owner_pid=LIVE_PID), IDLE, None),
    ("failed", lambda s: s.state(status="failed", owner_pid=LIVE_PID), IDLE, None),
    ("cancelled", lambda s: s.state(status="cancelled", owner_pid=LIVE_PID), IDLE, None),
    ("stopped by a hook", lambda s: s.state(status="stopped", stopped_by="STOP-001", owner_pid=LIVE_PID), IDLE, None),
    ("partial", lambda s: s.state("mend-7", status="partial", owner_pid=LIVE_PID), IDLE, None),
    ("just completed", lambda s: s.state(status="completed", age=0.1 * MINUTE), QUIET, MarkerKind.CHANGED),
    ("a status nobody knows, young", lambda s: s.state(status="pondering", age=1), ACTIVE, STATE),
    ("a status nobody knows, old", lambda s: s.state(status="pondering", age=3), IDLE, STATE),
    ("a status that is a number", lambda s: s.state(status=3, age=1), ACTIVE, STATE),
    ("no status", lambda s: s.state(owner_pid=LIVE_PID), IDLE, None),
    ("status null", lambda s: s.state(status=None, owner_pid=LIVE_PID), IDLE, None),
    ("an empty object", lambda s: s.state(), IDLE, None),
    ("a type nobody knows", lambda s: s.state("newthing-1", status="active", owner_pid=LIVE_PID), ACTIVE, STATE),
    ("half-written, young", lambda s: s.file("tmp/.rune-work-1.json", '{"status": "comp', age=1), ACTIVE, STATE),
    ("half-written, old", lambda s: s.file("tmp/.rune-work-1.json", '{"status": "comp', age=3), IDLE, STATE),
    ("empty, young", lambda s: s.file("tmp/.rune-work-1.json", "", age=1), ACTIVE, STATE),
    ("a list", lambda s: s.file("tmp/.rune-work-1.json", "[]", age=1), ACTIVE, STATE),
    ("not UTF-8", lambda s: s.file("tmp/.rune-work-1.json", b'{"status": "\xff"}', age=1), ACTIVE, STATE),
    ("nested without end", lambda s: s.file("tmp/.rune-work-1.json", "[" * 100_000, age=1), ACTIVE, STATE),
    ("larger than any marker", lambda s: s.file("tmp/.rune-work-1.json", b" " * (2 << 20), age=1), ACTIVE, STATE),
    ("with a byte order mark", lambda s: s.file("tmp/.rune-work-1.json", b'\xef\xbb\xbf{"status": "done"}'), IDLE, None),
    ("a time to come", lambda s: s.state(status="active", age=-5), ACTIVE, STATE),
    ("a time years ahead", lambda s: s.state(status="active", owner_pid=DEAD_PID, age=-100_000), ACTIVE, STATE),
    ("the epoch", lambda s: s.state(status="active", age=s.now / 3600), IDLE, None),
    ("a request to stop", lambda s: s.state("shutdown-signal-s1", status="active"), IDLE, None),
    ("a request to stop at once", lambda s: s.state("force-shutdown-s1", status="active"), IDLE, None),
    ("a compaction note", lambda s: s.state("compact-checkpoint", status="active"), IDLE, None),
    ("a cleanup note", lambda s: s.state("cleanup-team", status="active"), IDLE, None),
    ("review comments", lambda s: s.state("pr-comment-findings-3", status="active"), IDLE, None),
    ("a name with a dot in its id", lambda s: s.state("review-a.b", status="active"), IDLE, None),
    ("a hook's temporary file", lambda s: s.json("tmp/.rune-review-1.json.Xk29aQ", status="active"), IDLE, None),
    ("no id", lambda s: s.json("tmp/.rune-review.json", status="active"), IDLE, None),
    ("a directory of that name", lambda s: (s.project / "tmp/.rune-work-1.json").mkdir(parents=True), IDLE, None),
    ("outside tmp", lambda s: s.json(".rune-review-1.json", status="active"), IDLE, None),
    ("in a worktree", lambda s: s.json(".claude/worktrees/w/tmp/.rune-work-1.json", status="active"), IDLE, None),
    ("an audit between batches", lambda s: s.json(".rune/audit-state/checkpoint.json", status="active"), ACTIVE, STATE),
    ("the same, older place", lambda s: s.json(".claude/audit-state/checkpoint.json", status="active"), ACTIVE, STATE),
]  # fmt: skip


LOOP_TEXT = """---
{lines}
---

go on with the next phase
"""


def loop(s: Scene, *lines: str, kind: str = "phase", root: str = ".rune", age: float = 1.0) -> Path:
    return s.file(f"{root}/arc-{kind}-loop.local.md", LOOP_TEXT.format(lines="\n".join(lines)), age=age)


def phases(*statuses: str) -> dict[str, object]:
    return {f"phase_{n}": {"status": status} for n, status in enumerate(statuses)}


def arc(
    s: Scene, *statuses: str, root: str = ".rune/arc", name: str = "arc-7", age: float = 1.0, **more: object
) -> Path:
    fields: dict[str, object] = {"id": name, "completed_at": None, "phases": phases(*statuses), **more}
    return s.json(f"{root}/{name}/checkpoint.json", age=age, **fields)


def loop_of_arc(s: Scene, *statuses: str, age: float = 1.0) -> Path:
    arc(s, *statuses, age=age)
    return loop(
        s, "active: true", "checkpoint_path: .rune/arc/arc-7/checkpoint.json", f"owner_pid: {LIVE_PID}", age=age
    )


LOOP = MarkerKind.LOOP
LOOPS: list[Row] = [
    ("active, owner alive", lambda s: loop(s, "active: true", f'owner_pid: "{LIVE_PID}"', age=11), ACTIVE, LOOP),
    ("active, alive, untouched for 13 h", lambda s: loop(s, "active: true", f"owner_pid: {LIVE_PID}", age=13), IDLE, LOOP),
    ("active, owner gone, 149 min", lambda s: loop(s, "active: true", f"owner_pid: {DEAD_PID}", age=149 * MINUTE), ACTIVE, LOOP),
    ("active, owner gone, 151 min", lambda s: loop(s, "active: true", f"owner_pid: {DEAD_PID}", age=151 * MINUTE), IDLE, None),
    ("active, no owner, 149 min", lambda s: loop(s, "active: true", age=149 * MINUTE), ACTIVE, LOOP),
    ("active, no owner, 151 min", lambda s: loop(s, "active: true", age=151 * MINUTE), IDLE, LOOP),
    ("in quotes", lambda s: loop(s, "active: 'true'"), ACTIVE, LOOP),
    ("with a remark", lambda s: loop(s, "active: true # on"), ACTIVE, LOOP),
    ("CRLF", lambda s: s.file(".rune/arc-phase-loop.local.md", "---\r\nactive: true\r\n---\r\n"), ACTIVE, LOOP),
    ("older place", lambda s: loop(s, "active: true", root=".claude"), ACTIVE, LOOP),
    ("batch", lambda s: loop(s, "active: true", kind="batch"), ACTIVE, LOOP),
    ("issues", lambda s: loop(s, "active: true", kind="issues"), ACTIVE, LOOP),
    ("hierarchy by status", lambda s: loop(s, "status: active", kind="hierarchy"), ACTIVE, LOOP),
    ("hierarchy by active", lambda s: loop(s, "active: true", kind="hierarchy"), ACTIVE, LOOP),
    ("a status that ended", lambda s: loop(s, "status: completed", kind="hierarchy"), IDLE, None),
    ("a kind nobody knows", lambda s: loop(s, "active: true", kind="dream"), IDLE, None),
    ("inactive", lambda s: loop(s, "active: false", f"owner_pid: {LIVE_PID}"), IDLE, None),
    ("active null", lambda s: loop(s, "active: null"), IDLE, None),
    ("says nothing", lambda s: loop(s, "iteration: 3"), IDLE, None),
    ("cancelled by its person", lambda s: loop(s, "active: true", "user_cancelled: true"), IDLE, None),
    ("not cancelled", lambda s: loop(s, "active: true", "user_cancelled: false", "stop_reason: null"), ACTIVE, LOOP),
    ("stopped", lambda s: loop(s, "active: true", 'stop_reason: "context limit"'), IDLE, None),
    ("paused for its person", lambda s: loop(s, "active: true", "group_paused: true"), IDLE, None),
    ("waiting for a compaction", lambda s: loop(s, "active: true", "compact_pending: true"), ACTIVE, LOOP),
    ("emptied, as good as deleted", lambda s: s.file(".rune/arc-phase-loop.local.md", ""), IDLE, None),
    ("emptied just now", lambda s: s.file(".rune/arc-phase-loop.local.md", "", age=0.1 * MINUTE), QUIET, MarkerKind.CHANGED),
    ("without frontmatter, young", lambda s: s.file(".rune/arc-phase-loop.local.md", "active: true"), ACTIVE, LOOP),
    ("without frontmatter, old", lambda s: s.file(".rune/arc-phase-loop.local.md", "hello", age=3), IDLE, LOOP),
    ("half-written", lambda s: s.file(".rune/arc-phase-loop.local.md", "---\nactive: fa"), ACTIVE, LOOP),
    ("between two phases", lambda s: loop_of_arc(s, "completed", "pending"), ACTIVE, LOOP),
    ("every phase is over", lambda s: loop_of_arc(s, "completed", "skipped", "cancelled"), IDLE, None),
    ("checkpoint missing", lambda s: loop(s, "active: true", "checkpoint_path: /x/arc-9/checkpoint.json"), ACTIVE, LOOP),
    ("in a worktree", lambda s: loop(s, "active: true", root=".claude/worktrees/w/.rune"), IDLE, None),
]  # fmt: skip

CHECKPOINT = MarkerKind.CHECKPOINT
CHECKPOINTS: list[Row] = [
    ("in progress, owner alive", lambda s: arc(s, "completed", "in_progress", owner_pid=str(LIVE_PID), age=11), ACTIVE, CHECKPOINT),
    ("in progress, alive, 13 h", lambda s: arc(s, "in_progress", owner_pid=str(LIVE_PID), age=13), IDLE, CHECKPOINT),
    ("in progress, owner gone, 119 min", lambda s: arc(s, "in_progress", owner_pid=DEAD_PID, age=119 * MINUTE), ACTIVE, CHECKPOINT),
    ("in progress, owner gone, 121 min", lambda s: arc(s, "in_progress", owner_pid=DEAD_PID, age=121 * MINUTE), IDLE, None),
    ("in progress, no owner, young", lambda s: arc(s, "in_progress", age=1.9), ACTIVE, CHECKPOINT),
    ("in progress, no owner, old", lambda s: arc(s, "in_progress", age=2.1), IDLE, CHECKPOINT),
    ("old, but its heart beats", lambda s: (arc(s, "in_progress", age=5), s.json("tmp/arc/arc-7/heartbeat.json", age=0.1)), ACTIVE, CHECKPOINT),
    ("older place", lambda s: arc(s, "in_progress", root=".claude/arc"), ACTIVE, CHECKPOINT),
    ("after a compaction", lambda s: arc(s, "in_progress", root="tmp/arc"), ACTIVE, CHECKPOINT),
    ("two copies, the newer says it is over", lambda s: (arc(s, "in_progress", age=1), arc(s, "completed", root="tmp/arc", age=0.5)), IDLE, None),
    ("two copies, the newer says it runs", lambda s: (arc(s, "completed", age=1), arc(s, "in_progress", root="tmp/arc", age=0.5)), ACTIVE, CHECKPOINT),
    ("all over, never marked completed", lambda s: arc(s, "completed", "skipped", owner_pid=str(LIVE_PID)), IDLE, None),
    ("a last phase pending", lambda s: arc(s, "completed", "pending", owner_pid=str(LIVE_PID)), IDLE, None),
    ("all pending, abandoned", lambda s: arc(s, "pending", "pending", owner_pid=str(LIVE_PID)), IDLE, None),
    ("failed, timed out, cancelled", lambda s: arc(s, "failed", "timeout", "cancelled", owner_pid=str(LIVE_PID)), IDLE, None),
    ("cancelled by its person", lambda s: arc(s, "in_progress", user_cancelled=True, owner_pid=str(LIVE_PID)), IDLE, None),
    ("stopped", lambda s: arc(s, "in_progress", stop_reason="limit", owner_pid=str(LIVE_PID)), IDLE, None),
    ("a phase in a word nobody knows", lambda s: arc(s, "brewing"), ACTIVE, CHECKPOINT),
    ("half-written, young", lambda s: s.file(".rune/arc/arc-7/checkpoint.json", '{"phases"'), ACTIVE, CHECKPOINT),
    ("half-written, old", lambda s: s.file(".rune/arc/arc-7/checkpoint.json", '{"phases"', age=3), IDLE, CHECKPOINT),
    ("no phases in it", lambda s: s.json(".rune/arc/arc-7/checkpoint.json", age=3), IDLE, CHECKPOINT),
    ("archived", lambda s: arc(s, "in_progress", root=".rune/arc/archived"), IDLE, None),
    ("in a person's own directory", lambda s: arc(s, "in_progress", root=".rune/arc/bu"), IDLE, None),
    ("an id that is none", lambda s: arc(s, "in_progress", name="arc-x"), IDLE, None),
    ("in a worktree", lambda s: arc(s, "in_progress", root=".claude/worktrees/w/.rune/arc"), IDLE, None),
]  # fmt: skip


def lock(s: Scene, name: str = "strive", *, age: float = 1.0, **meta: object) -> Path:
    path = s.json(f"tmp/.rune-locks/{name}/meta.json", age=age, **meta)
    s.set_age(path.parent, age)
    s.set_age(path.parent.parent, age)
    return path


def lock_without_meta(s: Scene, name: str = "strive", *, age: float, meta: str | None = None) -> None:
    path = lock(s, name, age=age)
    path.unlink()
    if meta is not None:
        s.file(f"tmp/.rune-locks/{name}/meta.json", meta, age=age)
    s.set_age(path.parent, age)
    s.set_age(path.parent.parent, age)


def migration(s: Scene, age: float) -> None:
    path = s.project / ".rune/.migration-lock"
    path.mkdir(parents=True)
    s.set_age(path, age)


LOCK = MarkerKind.LOCK
LOCKS: list[Row] = [
    ("owner alive", lambda s: lock(s, pid=LIVE_PID, workflow="strive", age=11), ACTIVE, LOCK),
    ("owner alive, untouched for 13 h", lambda s: lock(s, pid=LIVE_PID, age=13), IDLE, LOCK),
    ("a reader's", lambda s: lock(s, "appraise", kind="reader", pid=LIVE_PID), ACTIVE, LOCK),
    ("owner gone", lambda s: lock(s, pid=DEAD_PID, age=1 * MINUTE), IDLE, None),
    ("owner's number reused", lambda s: lock(s, pid=REUSED_PID), IDLE, None),
    ("owner null, young", lambda s: lock(s, pid=None, age=9 * MINUTE), ACTIVE, LOCK),
    ("owner null, old", lambda s: lock(s, pid=None, age=11 * MINUTE), IDLE, LOCK),
    ("no meta yet, young", lambda s: lock_without_meta(s, age=9 * MINUTE), ACTIVE, LOCK),
    ("no meta, old", lambda s: lock_without_meta(s, age=11 * MINUTE), IDLE, LOCK),
    ("half-written meta, young", lambda s: lock_without_meta(s, age=9 * MINUTE, meta='{"pid'), ACTIVE, LOCK),
    ("half-written meta, old", lambda s: lock_without_meta(s, age=11 * MINUTE, meta='{"pid'), IDLE, LOCK),
    ("being reclaimed", lambda s: lock(s, "strive.orphan.Xk29aQ", pid=LIVE_PID), IDLE, None),
    ("a lock in a lock", lambda s: (lock(s, "strive", pid=DEAD_PID), lock(s, "strive/arc", pid=LIVE_PID)), IDLE, None),
    ("given back just now", lambda s: lock_without_meta(s, "x.dead.1", age=0.1 * MINUTE), QUIET, MarkerKind.CHANGED),
    ("upstream moves its files", lambda s: migration(s, 4 * MINUTE), ACTIVE, MarkerKind.MIGRATION),
    ("upstream's move died", lambda s: migration(s, 6 * MINUTE), IDLE, MarkerKind.MIGRATION),
]  # fmt: skip


def team(
    s: Scene, name: str = "rune-work-1", *, expected: str | None = "3", done: int = 1, age: float = 1.0, extra: str = ""
) -> None:
    directory = f"tmp/.rune-signals/{name}"
    if expected is not None:
        s.file(f"{directory}/.expected", expected, age=age)
    for task in range(done):
        s.json(f"{directory}/{task}.done", task_id=task, age=age)
    if extra:
        s.file(f"{directory}/{extra}", age=age)
    s.set_age(s.project / directory, age)


def idle_team_with_active_agent(s: Scene) -> None:
    team(s, age=5)
    s.file("tmp/.rune-signals/rune-work-1/.activity-forge", "17", age=0.5)
    s.set_age(s.project / "tmp/.rune-signals/rune-work-1", 5)


def team_of_state(s: Scene) -> None:
    s.state("work-1", status="active", team_name="rune-work-1", age=5)
    team(s, done=3, age=1)


SIGNALS = MarkerKind.SIGNALS
TEAMS: list[Row] = [
    ("tasks are missing", lambda s: team(s, age=1.9), ACTIVE, SIGNALS),
    ("tasks are missing for too long", lambda s: team(s, age=2.1), IDLE, SIGNALS),
    ("tasks are missing, an agent works", idle_team_with_active_agent, ACTIVE, SIGNALS),
    ("of another prefix", lambda s: team(s, "goldmask-1"), ACTIVE, SIGNALS),
    ("of current sessions", lambda s: team(s, "session-0a1b2c3d"), ACTIVE, SIGNALS),
    ("all tasks are done", lambda s: team(s, done=3), IDLE, None),
    ("says all is done", lambda s: team(s, extra=".all-done"), IDLE, None),
    ("says so in the other word", lambda s: team(s, extra="all-tasks-done"), IDLE, None),
    ("expects nothing", lambda s: team(s, expected="0", done=0), IDLE, None),
    ("no expectation yet", lambda s: team(s, expected=None), IDLE, None),
    ("an expectation nobody can read, young", lambda s: team(s, expected="many"), ACTIVE, SIGNALS),
    ("an expectation nobody can read, old", lambda s: team(s, expected="many", age=3), IDLE, SIGNALS),
    ("files between hooks", lambda s: s.file("tmp/.rune-signals/.echo-dirty", age=0), IDLE, None),
    ("a sign of life for its state file", team_of_state, ACTIVE, STATE),
]  # fmt: skip


def session(s: Scene, *, age: float = 1.0, cwd: str = ".", name: str = f"{LIVE_PID}.json", **fields: object) -> Path:
    path = s.claude_home / "sessions" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"pid": LIVE_PID, "cwd": str(s.project / cwd), "status": "busy", **fields}))
    s.set_age(path, age)
    return path


def linked_session(s: Scene) -> None:
    (s.claude_home / "elsewhere").symlink_to(s.project)
    session(s, cwd=str(s.claude_home / "elsewhere"))


SESSION = MarkerKind.SESSION
SESSIONS: list[Row] = [
    ("busy", session, ACTIVE, SESSION),
    ("busy below the root", lambda s: session(s, cwd="src/deep"), ACTIVE, SESSION),
    ("busy, through a link", linked_session, ACTIVE, SESSION),
    ("busy, no pid in it", lambda s: session(s, pid=None), ACTIVE, SESSION),
    ("busy, untouched for 13 h", lambda s: session(s, age=13), IDLE, SESSION),
    ("waiting for its person", lambda s: session(s, status="idle"), IDLE, None),
    ("a word nobody knows", lambda s: session(s, status="dreaming"), IDLE, None),
    ("no status", lambda s: session(s, status=None), IDLE, None),
    ("gone", lambda s: session(s, pid=DEAD_PID), IDLE, None),
    ("its number reused", lambda s: session(s, pid=REUSED_PID), IDLE, None),
    ("in another project", lambda s: session(s, cwd="/elsewhere"), IDLE, None),
    ("in a neighbour of a similar name", lambda s: session(s, cwd=f"{s.project}-two"), IDLE, None),
    ("in a worktree", lambda s: session(s, cwd=".claude/worktrees/w"), IDLE, None),
    ("a relative place", lambda s: session(s).write_text('{"status": "busy", "cwd": "project"}'), IDLE, None),
    ("half-written", lambda s: session(s).write_text('{"status": "busy"'), IDLE, None),
    ("not named by a number", lambda s: session(s, name="x.json"), IDLE, None),
]  # fmt: skip


def declare(
    s: Scene, *, pid: int | None = None, started: float | None = None, ttl: float = 4.0, age: float = 1.0
) -> None:
    began = s.now - age * 3600
    s.declared.append(DeclaredWorkflow("deploy", pid, started, began, began + ttl * 3600))


DECLARED = MarkerKind.DECLARED
DECLARED_WORKFLOWS: list[Row] = [
    ("no process", declare, ACTIVE, DECLARED),
    ("no process, its time is over", lambda s: declare(s, age=5), IDLE, None),
    ("its process lives", lambda s: declare(s, pid=LIVE_PID), ACTIVE, DECLARED),
    ("its process lives, its time is over", lambda s: declare(s, pid=LIVE_PID, age=5), IDLE, None),
    ("its process is gone", lambda s: declare(s, pid=DEAD_PID), IDLE, None),
    ("its number reused", lambda s: declare(s, pid=REUSED_PID), IDLE, None),
    ("its number reused, by start time", lambda s: declare(s, pid=LIVE_PID, started=s.now - 7200), IDLE, None),
    ("nobody can tell", lambda s: declare(s, pid=UNKNOWN_PID), ACTIVE, DECLARED),
    ("for a whole day, as its person said", lambda s: declare(s, age=20, ttl=24), ACTIVE, DECLARED),
]  # fmt: skip

TABLE = {
    "state file": STATE_FILES,
    "loop": LOOPS,
    "checkpoint": CHECKPOINTS,
    "lock": LOCKS,
    "team": TEAMS,
    "session": SESSIONS,
    "announced": DECLARED_WORKFLOWS,
}


@pytest.mark.parametrize(
    ("arrange", "state", "kind"),
    [pytest.param(*row[1:], id=f"{family}: {row[0]}") for family, rows in TABLE.items() for row in rows],
)
def test_verdict(scene: Scene, arrange: Callable[[Scene], object], state: GateState, kind: MarkerKind | None) -> None:
    arrange(scene)

    verdict = scene.verdict()

    assert verdict.state is state
    assert (verdict.reasons[0].kind if verdict.reasons else None) is kind
    assert all(reason.blocking == (state is not IDLE) for reason in verdict.reasons)

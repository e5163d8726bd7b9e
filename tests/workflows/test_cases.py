"""The table: one line for each way a marker can look, with the verdict and the kind of its first reason.

Ages are hours. `active` and `quiet` need a reason that holds; after `idle` a kind stands for a warning that stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from echod.workflows import GateState, Kind
from tests.workflows.scene import DEAD, HIDDEN, LATER, LIVE, MINUTE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.workflows.scene import Scene

ACTIVE, QUIET, IDLE = GateState.ACTIVE, GateState.QUIET, GateState.IDLE
STATE = Kind.STATE_FILE

Row = tuple[str, "Callable[[Scene], object]", GateState, Kind | None]

STATE_FILES: list[Row] = [
    ("nothing at all", lambda s: s.project, IDLE, None),
    ("active, owner alive", lambda s: s.state(status="active", owner_pid=str(LIVE)), ACTIVE, STATE),
    ("running", lambda s: s.state(status="running", owner_pid=str(LIVE)), ACTIVE, STATE),
    ("dispatched", lambda s: s.state("dispatch-17", status="dispatched", owner_pid=str(LIVE)), ACTIVE, STATE),
    ("in another spelling", lambda s: s.state(status=" In-Progress ", owner_pid=LIVE), ACTIVE, STATE),
    ("owner as a number", lambda s: s.state(status="active", owner_pid=LIVE, age=5), ACTIVE, STATE),
    ("owner in camel case", lambda s: s.state("verify-1", status="running", ownerPid=LIVE, age=5), ACTIVE, STATE),
    ("owner alive, untouched for 11 h", lambda s: s.state(status="active", owner_pid=LIVE, age=11), ACTIVE, STATE),
    ("owner alive, untouched for 13 h", lambda s: s.state(status="active", owner_pid=LIVE, age=13), IDLE, STATE),
    ("owner gone for 9 min", lambda s: s.state(status="active", owner_pid=DEAD, age=9 * MINUTE), ACTIVE, STATE),
    ("owner gone for 11 min", lambda s: s.state(status="active", owner_pid=DEAD, age=11 * MINUTE), IDLE, None),
    ("owner's number reused", lambda s: s.state(status="active", owner_pid=LATER), IDLE, None),
    ("owner's number reused, young", lambda s: s.state(status="active", owner_pid=LATER, age=0.1), ACTIVE, STATE),
    ("nobody can tell, young", lambda s: s.state(status="active", owner_pid=HIDDEN, age=1.9), ACTIVE, STATE),
    ("nobody can tell, old", lambda s: s.state(status="active", owner_pid=HIDDEN, age=2.1), IDLE, STATE),
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
    ("owner negative", lambda s: s.state(status="active", owner_pid=-LIVE, age=2.1), IDLE, STATE),
    ("owner beyond every table", lambda s: s.state(status="active", owner_pid=9_999_999, age=2.1), IDLE, STATE),
    ("of another installation", lambda s: s.state(status="active", owner_pid=LIVE, config_dir="/else"), ACTIVE, STATE),
    ("completed", lambda s: s.state(status="completed", owner_pid=LIVE), IDLE, None),
    ("completed with gaps", lambda s: s.state(status="completed_with_gaps", owner_pid=LIVE), IDLE, None),
    ("failed", lambda s: s.state(status="failed", owner_pid=LIVE), IDLE, None),
    ("cancelled", lambda s: s.state(status="cancelled", owner_pid=LIVE), IDLE, None),
    ("stopped by a hook", lambda s: s.state(status="stopped", stopped_by="STOP-001", owner_pid=LIVE), IDLE, None),
    ("partial", lambda s: s.state("mend-7", status="partial", owner_pid=LIVE), IDLE, None),
    ("just completed", lambda s: s.state(status="completed", age=0.1 * MINUTE), QUIET, Kind.CHANGED),
    ("a status nobody knows, young", lambda s: s.state(status="pondering", age=1), ACTIVE, STATE),
    ("a status nobody knows, old", lambda s: s.state(status="pondering", age=3), IDLE, STATE),
    ("a status that is a number", lambda s: s.state(status=3, age=1), ACTIVE, STATE),
    ("no status", lambda s: s.state(owner_pid=LIVE), IDLE, None),
    ("status null", lambda s: s.state(status=None, owner_pid=LIVE), IDLE, None),
    ("an empty object", lambda s: s.state(), IDLE, None),
    ("a type nobody knows", lambda s: s.state("newthing-1", status="active", owner_pid=LIVE), ACTIVE, STATE),
    ("half-written, young", lambda s: s.file("tmp/.rune-work-1.json", '{"status": "comp', age=1), ACTIVE, STATE),
    ("half-written, old", lambda s: s.file("tmp/.rune-work-1.json", '{"status": "comp', age=3), IDLE, STATE),
    ("empty, young", lambda s: s.file("tmp/.rune-work-1.json", "", age=1), ACTIVE, STATE),
    ("a list", lambda s: s.file("tmp/.rune-work-1.json", "[]", age=1), ACTIVE, STATE),
    ("not UTF-8", lambda s: s.file("tmp/.rune-work-1.json", b'{"status": "\xff"}', age=1), ACTIVE, STATE),
    ("nested without end", lambda s: s.file("tmp/.rune-work-1.json", "[" * 100_000, age=1), ACTIVE, STATE),
    ("larger than any marker", lambda s: s.file("tmp/.rune-work-1.json", b" " * (2 << 20), age=1), ACTIVE, STATE),
    ("with a byte order mark", lambda s: s.file("tmp/.rune-work-1.json", b'\xef\xbb\xbf{"status": "done"}'), IDLE, None),
    ("a time to come", lambda s: s.state(status="active", age=-5), ACTIVE, STATE),
    ("a time years ahead", lambda s: s.state(status="active", owner_pid=DEAD, age=-100_000), ACTIVE, STATE),
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


@pytest.mark.parametrize(
    ("arrange", "state", "kind"), [pytest.param(*row[1:], id=f"state file: {row[0]}") for row in STATE_FILES]
)
def test_verdict(scene: Scene, arrange: Callable[[Scene], object], state: GateState, kind: Kind | None) -> None:
    arrange(scene)

    verdict = scene.verdict()

    assert verdict.state is state
    assert (verdict.reasons[0].kind if verdict.reasons else None) is kind
    assert all(reason.holds == (state is not IDLE) for reason in verdict.reasons)

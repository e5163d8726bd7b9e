"""Events as Claude Code sends them to hooks: the present ones, and those from when teams had names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SESSION = "9d8d16c1-5b1f-4a53-9c0e-0c6a4d1f7e22"


def teammate_event(
    cwd: Path, task: str = "1", subject: str = "Review the session store", **changed: Any
) -> dict[str, Any]:
    """Return the event of a team member that completed a task. Today every team is named after its session."""
    return {
        "session_id": SESSION,
        "transcript_path": f"/nowhere/projects/-app/{SESSION}.jsonl",
        "cwd": str(cwd),
        "prompt_id": "5f0b",
        "agent_id": "aash-1-ea3db1c483431a62",
        "agent_type": "ash-1",
        "hook_event_name": "TaskCompleted",
        "task_id": task,
        "task_subject": subject,
        "task_description": "Look for races between login and logout.",
        "teammate_name": "ash-1",
        "team_name": f"session-{SESSION[:8]}",
    } | changed


def subagent_event(
    cwd: Path, task: str = "1", subject: str = "Review the session store", **changed: Any
) -> dict[str, Any]:
    """Return the event of a subagent in a session without a team."""
    event = teammate_event(cwd, task, subject, agent_type="rune:review:ward-sentinel")
    del event["team_name"], event["teammate_name"]
    return event | changed


def main_agent_event(
    cwd: Path, task: str = "1", subject: str = "Review the session store", **changed: Any
) -> dict[str, Any]:
    """Return the event of the main agent in a session without a team."""
    event = subagent_event(cwd, task, subject)
    del event["agent_id"], event["agent_type"]
    return event | changed


def rune_team_event(
    cwd: Path,
    task: str = "1",
    subject: str = "Review the session store",
    team: str = "rune-review-7be1",
    **changed: Any,
) -> dict[str, Any]:
    """Return the event of a member of a workflow plugin's team, from when teams had their own names."""
    event = teammate_event(cwd, task, subject, team_name=team, teammate_name="ward-sentinel")
    for name in ("prompt_id", "agent_id", "agent_type"):
        del event[name]
    return event | changed


def session_start_event(cwd: Path, source: str = "startup") -> dict[str, Any]:
    """Return the event of a starting session."""
    return {
        "session_id": SESSION,
        "transcript_path": f"/nowhere/projects/-app/{SESSION}.jsonl",
        "cwd": str(cwd),
        "hook_event_name": "SessionStart",
        "source": source,
        "model": "some-model",
    }


def start_hook_process(event: str, environ: Mapping[str, str], cwd: Path | None = None) -> subprocess.Popen[bytes]:
    """Start the process of a hook, which waits for its event."""
    return subprocess.Popen(
        [sys.executable, "-m", "echod", "hook", event],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environ),
        cwd=cwd,
    )


def run_hook(
    event: str, payload: Mapping[str, Any] | bytes, environ: Mapping[str, str], cwd: Path | None = None
) -> tuple[int, bytes, bytes]:
    """Run a hook to its end. Return its exit code and its output."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    process = start_hook_process(event, environ, cwd)
    out, err = process.communicate(data, timeout=60)
    return process.returncode, out, err


def minimal_environ(state: Path, **more: str) -> dict[str, str]:
    """Return the variables that a hook needs."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ECHOD_", "CLAUDE", "XDG_"))}
    return {**inherited, "ECHOD_STATE_DIR": str(state), **more}

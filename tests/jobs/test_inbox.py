"""Where a reported task belongs, and for which reason it is dropped."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from echod.inbox.inbox import DropReason
from echod.memory.observations import ObservationDropReason
from tests.hooks.events import SESSION, rune_team_event, session_start_event, subagent_event, teammate_event
from tests.jobs.conftest import Workspace


def route(workspace: Workspace, event: dict[str, object], kind: str = "task-completed") -> dict[str, int]:
    """Return the roles that get an event, or the outcome it was counted as."""
    workspace.spool_event(event, kind)
    with workspace.open_services() as services:
        services.refresh()
        pending = services.inbox.pending_for(workspace.store)
        return {role: len(waiting) for role, waiting in pending.items()} or {
            h.outcome: h.count for h in services.list_counts()
        }


def test_an_event_waits_for_its_role(workspace: Workspace) -> None:
    assert route(workspace, rune_team_event(workspace.project)) == {"reviewer": 1}
    assert workspace.count_waiting() == 1


def test_an_event_from_below_the_project_belongs_to_it(workspace: Workspace) -> None:
    (workspace.project / "src/deep").mkdir(parents=True)

    assert route(workspace, teammate_event(workspace.project / "src/deep")) == {"orchestrator": 1}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"cwd": "relative"}, DropReason.NO_DIRECTORY),
        ({"cwd": None}, DropReason.NO_DIRECTORY),
        ({"cwd": "/with\0nul"}, DropReason.NO_DIRECTORY),
        ({"cwd": "/nowhere/at/all"}, DropReason.NO_STORE),
        ({"task_subject": "Shutdown"}, ObservationDropReason.HOUSEKEEPING),
        ({"team_name": "other"}, ObservationDropReason.UNLISTED_TEAM),
    ],
)
def test_what_has_no_place_is_dropped_and_counted(workspace: Workspace, changed: dict[str, object], why: str) -> None:
    assert route(workspace, teammate_event(workspace.project) | changed) == {why: 1}
    assert workspace.count_waiting() == 0


def test_an_event_that_is_not_understood_is_dropped_and_counted(workspace: Workspace) -> None:
    workspace.spool_event(b"{ torn")
    with workspace.open_services() as services:
        services.refresh()
        assert services.outcomes() == {ObservationDropReason.UNREADABLE: 1}
    assert workspace.count_waiting() == 0


def test_a_project_that_is_not_registered_gets_nothing(workspace: Workspace) -> None:
    workspace.registered.clear()

    assert route(workspace, teammate_event(workspace.project)) == {DropReason.NOT_REGISTERED: 1}


def test_a_nearer_project_that_is_not_registered_does_not_lead_to_the_one_above(workspace: Workspace) -> None:
    workspace.role("orchestrator", workspace.project / "vendor/.rune/echoes")

    assert route(workspace, teammate_event(workspace.project / "vendor")) == {DropReason.NOT_REGISTERED: 1}


def test_a_project_may_not_want_observations(workspace: Workspace) -> None:
    workspace.observations_enabled = False

    assert route(workspace, teammate_event(workspace.project)) == {DropReason.OPTED_OUT: 1}


@pytest.mark.parametrize("what", ["nothing", "directory", "symlink"])
def test_a_role_without_a_plain_memory_file_gets_none(workspace: Workspace, what: str) -> None:
    memory = workspace.memory("reviewer")
    memory.rename(memory.with_name("elsewhere.md"))
    if what == "directory":
        memory.mkdir()
    elif what == "symlink":
        memory.symlink_to("elsewhere.md")

    assert route(workspace, rune_team_event(workspace.project)) == {DropReason.NO_ROLE: 1}


def test_the_user_s_own_store_is_no_project_s(workspace: Workspace) -> None:
    workspace.role("orchestrator", workspace.home / ".claude/echoes")
    workspace.registered.append(workspace.home)

    assert route(workspace, teammate_event(workspace.home / "anywhere")) == {DropReason.NO_STORE: 1}


def test_of_two_stores_the_first_gets_what_echod_creates(workspace: Workspace) -> None:
    workspace.role("orchestrator", workspace.project / ".claude/echoes")

    assert route(workspace, teammate_event(workspace.project)) == {"orchestrator": 1}


def test_a_teammate_s_definition_is_found_beside_the_transcript(workspace: Workspace) -> None:
    transcript = workspace.root / "projects/-app" / f"{SESSION}.jsonl"
    meta = transcript.with_suffix("") / "subagents/agent-aash-1-ea3db1c483431a62.meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"customAgentType": "code-reviewer"}))

    assert route(workspace, teammate_event(workspace.project, transcript_path=str(transcript))) == {"reviewer": 1}


@pytest.mark.parametrize("text", ["", "[]", '{"customAgentType": 7}', "[" * 100_000])
def test_an_odd_definition_tells_nothing(workspace: Workspace, text: str) -> None:
    transcript = workspace.root / f"{SESSION}.jsonl"
    meta = transcript.with_suffix("") / "subagents/agent-aash-1-ea3db1c483431a62.meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(text)

    assert route(workspace, teammate_event(workspace.project, transcript_path=str(transcript))) == {"orchestrator": 1}


def test_a_subagent_without_a_team_is_listened_to_on_request(workspace: Workspace) -> None:
    workspace.teams = ("",)

    assert route(workspace, subagent_event(workspace.project)) == {"reviewer": 1}


# Copies of a project


def git(*arguments: object, cwd: Path) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *map(str, arguments)], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def repository(workspace: Workspace) -> Workspace:
    git("init", cwd=workspace.project)
    git("add", "-A", cwd=workspace.project)
    git("commit", "-m", "x", cwd=workspace.project)
    return workspace


def test_a_linked_worktree_s_events_go_to_the_project_itself(repository: Workspace) -> None:
    copy = repository.root / "copy"
    git("worktree", "add", copy, cwd=repository.project)
    repository.registered.append(copy)
    assert (copy / ".rune/echoes/orchestrator/MEMORY.md").exists()

    assert route(repository, teammate_event(copy)) == {"orchestrator": 1}


def test_a_copy_below_claude_worktrees_is_the_project_even_when_it_is_gone(workspace: Workspace) -> None:
    assert route(workspace, teammate_event(workspace.project / ".claude/worktrees/fix-7/src")) == {"orchestrator": 1}


# Sessions


def test_a_session_registers_nothing_unless_it_may(workspace: Workspace) -> None:
    workspace.registered.clear()

    assert route(workspace, session_start_event(workspace.project), "session-start") == {"received": 1}
    assert workspace.registered == []


def test_a_session_registers_its_project_if_it_may_and_the_next_event_is_kept(workspace: Workspace) -> None:
    workspace.registered.clear()
    workspace.auto_register = True
    workspace.spool_event(session_start_event(workspace.project / "src"), "session-start")
    workspace.spool_event(session_start_event(workspace.project), "session-start")
    workspace.spool_event(teammate_event(workspace.project))

    with workspace.open_services() as services:
        assert services.refresh() == {workspace.store.key}
        assert [(h.event, h.outcome, h.count) for h in services.list_counts()] == [
            ("session-start", "received", 1),
            ("session-start", "the project was registered", 1),
        ]
    assert workspace.registered == [workspace.project]


def test_a_session_in_a_copy_registers_the_project_itself(repository: Workspace) -> None:
    copy = repository.root / "copy"
    git("worktree", "add", copy, cwd=repository.project)
    repository.registered.clear()
    repository.auto_register = True

    route(repository, session_start_event(copy), "session-start")

    assert repository.registered == [repository.project]


def test_a_session_where_there_is_no_memory_registers_nothing(workspace: Workspace) -> None:
    workspace.registered.clear()
    workspace.auto_register = True

    assert route(workspace, session_start_event(workspace.root), "session-start") == {"received": 1}
    assert workspace.registered == []


@pytest.mark.parametrize("kind", ["session-end", "pre-compact", "stop"])
def test_other_events_are_counted(workspace: Workspace, kind: str) -> None:
    assert route(workspace, session_start_event(workspace.project), kind) == {"received": 1}
    assert workspace.count_waiting() == 0


# Several who look


def test_two_processes_count_an_event_once(workspace: Workspace) -> None:
    workspace.spool_event(teammate_event(workspace.project, subject="Shutdown"))
    with workspace.open_services() as one, workspace.open_services() as other:
        one.refresh()
        other.refresh()
        assert other.outcomes() == {ObservationDropReason.HOUSEKEEPING: 1}


def test_a_project_that_is_removed_loses_what_waits(workspace: Workspace) -> None:
    workspace.spool_event(teammate_event(workspace.project))
    with workspace.open_services() as services:
        assert services.refresh() == {workspace.store.key}
        workspace.registered.clear()
        assert services.refresh() == frozenset()
        assert services.outcomes() == {DropReason.NOT_REGISTERED: 1}


def test_a_project_that_is_named_counts_as_registered(workspace: Workspace) -> None:
    workspace.registered.clear()
    workspace.spool_event(teammate_event(workspace.project))
    with workspace.open_services() as services:
        assert services.inbox.refresh(workspace.clock(), extra_projects=[workspace.project]) == {workspace.store.key}


DEEP = 100_000
HOSTILE_EVENTS = {
    "deep": b'{"task_subject": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep object": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "a number of a million digits": b'{"task_id": ' + b"9" * 1_000_000 + b"}",
    "no numbers": b'{"task_id": NaN, "session_id": Infinity, "task_subject": -Infinity}',
    "a list": b"[1, 2]",
    "a text": b'"task"',
    "no text": bytes(range(256)),
    "cut off": b'{"task_subject": "Review',
}


@pytest.mark.parametrize("event", HOSTILE_EVENTS)
def test_an_event_that_is_a_bomb_is_dropped_and_counted(workspace: Workspace, event: str) -> None:
    workspace.spool_event(HOSTILE_EVENTS[event])

    with workspace.open_services() as services:
        services.refresh()

        assert workspace.count_waiting() == 0
        assert sum(services.outcomes().values()) == 1


ODD_VALUES: tuple[object, ...] = (
    "\ud800", "/\ud800/x", "/a\0b", "../../../etc", "/" + "x" * 5_000, "/x" * 5_000, "-rf", 7, None, [], {},
)  # fmt: skip


@pytest.mark.parametrize(
    "field",
    ["cwd", "transcript_path", "session_id", "agent_id", "team_name", "teammate_name", "task_id", "task_subject"],
)
@pytest.mark.parametrize("value", ODD_VALUES, ids=lambda value: ascii(value)[:20])
def test_an_odd_value_in_any_field_of_an_event_harms_nothing(workspace: Workspace, field: str, value: object) -> None:
    workspace.spool_event({**teammate_event(workspace.project), field: value})
    workspace.spool_event(teammate_event(workspace.project, "2", "A plain one"))

    with workspace.open_services() as services:
        services.refresh()
        for role in ("orchestrator", "reviewer", "workers"):
            services.observe(role)

        assert workspace.count_waiting() == 0
        assert sum(services.outcomes().values()) == 2
    assert any("A plain one" in subject for subject in workspace.subjects())

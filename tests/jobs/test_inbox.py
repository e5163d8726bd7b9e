"""Where a reported task belongs, and for which reason it is dropped."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from echod.inbox.inbox import Elsewhere
from echod.memory.observations import Drop
from tests.hooks.events import SESSION, rune_team, session_start, subagent, teammate
from tests.jobs.conftest import Place


def sorted_into(place: Place, event: dict[str, object], kind: str = "task-completed") -> dict[str, int]:
    """The roles an event goes to, or what it was counted as."""
    place.tell(event, kind)
    with place.office() as office:
        office.sort()
        letters = office.inbox.letters(place.store)
        return {role: len(waiting) for role, waiting in letters.items()} or {h.outcome: h.count for h in office.heard()}


def test_an_event_waits_for_its_role(place: Place) -> None:
    assert sorted_into(place, rune_team(place.project)) == {"reviewer": 1}
    assert place.waiting() == 1


def test_an_event_from_below_the_project_belongs_to_it(place: Place) -> None:
    (place.project / "src/deep").mkdir(parents=True)

    assert sorted_into(place, teammate(place.project / "src/deep")) == {"orchestrator": 1}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"cwd": "relative"}, Elsewhere.NO_DIRECTORY),
        ({"cwd": None}, Elsewhere.NO_DIRECTORY),
        ({"cwd": "/with\0nul"}, Elsewhere.NO_DIRECTORY),
        ({"cwd": "/nowhere/at/all"}, Elsewhere.NO_STORE),
        ({"task_subject": "Shutdown"}, Drop.ERRAND),
        ({"team_name": "other"}, Drop.TEAM),
    ],
)
def test_what_has_no_place_is_dropped_and_counted(place: Place, changed: dict[str, object], why: str) -> None:
    assert sorted_into(place, teammate(place.project) | changed) == {why: 1}
    assert place.waiting() == 0


def test_an_event_that_is_not_understood_is_dropped_and_counted(place: Place) -> None:
    place.tell(b"{ torn")
    with place.office() as office:
        office.sort()
        assert office.outcomes() == {Drop.UNREADABLE: 1}
    assert place.waiting() == 0


def test_a_project_that_is_not_registered_gets_nothing(place: Place) -> None:
    place.registered.clear()

    assert sorted_into(place, teammate(place.project)) == {Elsewhere.NOT_REGISTERED: 1}


def test_a_nearer_project_that_is_not_registered_does_not_lead_to_the_one_above(place: Place) -> None:
    place.role("orchestrator", place.project / "vendor/.rune/echoes")

    assert sorted_into(place, teammate(place.project / "vendor")) == {Elsewhere.NOT_REGISTERED: 1}


def test_a_project_may_not_want_observations(place: Place) -> None:
    place.wanted = False

    assert sorted_into(place, teammate(place.project)) == {Elsewhere.OPTED_OUT: 1}


@pytest.mark.parametrize("what", ["nothing", "directory", "symlink"])
def test_a_role_without_a_plain_memory_file_gets_none(place: Place, what: str) -> None:
    memory = place.memory("reviewer")
    memory.rename(memory.with_name("elsewhere.md"))
    if what == "directory":
        memory.mkdir()
    elif what == "symlink":
        memory.symlink_to("elsewhere.md")

    assert sorted_into(place, rune_team(place.project)) == {Elsewhere.NO_ROLE: 1}


def test_the_user_s_own_store_is_no_project_s(place: Place) -> None:
    place.role("orchestrator", place.home / ".claude/echoes")
    place.registered.append(place.home)

    assert sorted_into(place, teammate(place.home / "anywhere")) == {Elsewhere.NO_STORE: 1}


def test_of_two_stores_the_first_gets_what_echod_creates(place: Place) -> None:
    place.role("orchestrator", place.project / ".claude/echoes")

    assert sorted_into(place, teammate(place.project)) == {"orchestrator": 1}


def test_a_teammate_s_definition_is_found_beside_the_transcript(place: Place) -> None:
    transcript = place.root / "projects/-app" / f"{SESSION}.jsonl"
    meta = transcript.with_suffix("") / "subagents/agent-aash-1-ea3db1c483431a62.meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"customAgentType": "code-reviewer"}))

    assert sorted_into(place, teammate(place.project, transcript_path=str(transcript))) == {"reviewer": 1}


@pytest.mark.parametrize("text", ["", "[]", '{"customAgentType": 7}', "[" * 100_000])
def test_an_odd_definition_tells_nothing(place: Place, text: str) -> None:
    transcript = place.root / f"{SESSION}.jsonl"
    meta = transcript.with_suffix("") / "subagents/agent-aash-1-ea3db1c483431a62.meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(text)

    assert sorted_into(place, teammate(place.project, transcript_path=str(transcript))) == {"orchestrator": 1}


def test_a_subagent_without_a_team_is_listened_to_on_request(place: Place) -> None:
    place.teams = ("",)

    assert sorted_into(place, subagent(place.project)) == {"reviewer": 1}


# Copies of a project


def git(*arguments: object, cwd: Path) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *map(str, arguments)], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def repository(place: Place) -> Place:
    git("init", cwd=place.project)
    git("add", "-A", cwd=place.project)
    git("commit", "-m", "x", cwd=place.project)
    return place


def test_a_linked_worktree_s_events_go_to_the_project_itself(repository: Place) -> None:
    copy = repository.root / "copy"
    git("worktree", "add", copy, cwd=repository.project)
    repository.registered.append(copy)
    assert (copy / ".rune/echoes/orchestrator/MEMORY.md").exists()

    assert sorted_into(repository, teammate(copy)) == {"orchestrator": 1}


def test_a_copy_below_claude_worktrees_is_the_project_even_when_it_is_gone(place: Place) -> None:
    assert sorted_into(place, teammate(place.project / ".claude/worktrees/fix-7/src")) == {"orchestrator": 1}


# Sessions


def test_a_session_registers_nothing_unless_it_may(place: Place) -> None:
    place.registered.clear()

    assert sorted_into(place, session_start(place.project), "session-start") == {"heard": 1}
    assert place.registered == []


def test_a_session_registers_its_project_if_it_may_and_the_next_event_is_kept(place: Place) -> None:
    place.registered.clear()
    place.registers = True
    place.tell(session_start(place.project / "src"), "session-start")
    place.tell(session_start(place.project), "session-start")
    place.tell(teammate(place.project))

    with place.office() as office:
        assert office.sort() == {place.store.key}
        assert [(h.event, h.outcome, h.count) for h in office.heard()] == [
            ("session-start", "heard", 1),
            ("session-start", "the project was registered", 1),
        ]
    assert place.registered == [place.project]


def test_a_session_in_a_copy_registers_the_project_itself(repository: Place) -> None:
    copy = repository.root / "copy"
    git("worktree", "add", copy, cwd=repository.project)
    repository.registered.clear()
    repository.registers = True

    sorted_into(repository, session_start(copy), "session-start")

    assert repository.registered == [repository.project]


def test_a_session_where_there_is_no_memory_registers_nothing(place: Place) -> None:
    place.registered.clear()
    place.registers = True

    assert sorted_into(place, session_start(place.root), "session-start") == {"heard": 1}
    assert place.registered == []


@pytest.mark.parametrize("kind", ["session-end", "pre-compact", "stop"])
def test_other_events_are_counted(place: Place, kind: str) -> None:
    assert sorted_into(place, session_start(place.project), kind) == {"heard": 1}
    assert place.waiting() == 0


# Several who look


def test_two_processes_count_an_event_once(place: Place) -> None:
    place.tell(teammate(place.project, subject="Shutdown"))
    with place.office() as one, place.office() as other:
        one.sort()
        other.sort()
        assert other.outcomes() == {Drop.ERRAND: 1}


def test_a_project_that_is_removed_loses_what_waits(place: Place) -> None:
    place.tell(teammate(place.project))
    with place.office() as office:
        assert office.sort() == {place.store.key}
        place.registered.clear()
        assert office.sort() == frozenset()
        assert office.outcomes() == {Elsewhere.NOT_REGISTERED: 1}


def test_a_project_that_is_named_counts_as_registered(place: Place) -> None:
    place.registered.clear()
    place.tell(teammate(place.project))
    with place.office() as office:
        assert office.inbox.sort(place.clock(), named=[place.project]) == {place.store.key}


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
def test_an_event_that_is_a_bomb_is_dropped_and_counted(place: Place, event: str) -> None:
    place.tell(HOSTILE_EVENTS[event])

    with place.office() as office:
        office.sort()

        assert place.waiting() == 0
        assert sum(office.outcomes().values()) == 1


ODD_VALUES: tuple[object, ...] = (
    "\ud800", "/\ud800/x", "/a\0b", "../../../etc", "/" + "x" * 5_000, "/x" * 5_000, "-rf", 7, None, [], {},
)  # fmt: skip


@pytest.mark.parametrize(
    "field",
    ["cwd", "transcript_path", "session_id", "agent_id", "team_name", "teammate_name", "task_id", "task_subject"],
)
@pytest.mark.parametrize("value", ODD_VALUES, ids=lambda value: ascii(value)[:20])
def test_an_odd_value_in_any_field_of_an_event_harms_nothing(place: Place, field: str, value: object) -> None:
    place.tell({**teammate(place.project), field: value})
    place.tell(teammate(place.project, "2", "A plain one"))

    with place.office() as office:
        office.sort()
        for role in ("orchestrator", "reviewer", "workers"):
            office.observe(role)

        assert place.waiting() == 0
        assert sum(office.outcomes().values()) == 2
    assert any("A plain one" in subject for subject in place.subjects())

"""The completed tasks that become observations, their roles and texts."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echod.memory.document import parse
from echod.memory.model import Document, Form, Layer
from echod.memory.observations import (
    MAX_TEXT_LENGTH,
    Observation,
    ObservationDropReason,
    UnwritableMemory,
    comparison_text,
    existing_texts,
    infer_role,
    observe_task,
    parse_task,
    with_observations,
)
from echod.memory.redact import redact
from echod.settings.schema import DEFAULT_TEAMS
from tests.hooks.events import SESSION, main_agent_event, rune_team_event, subagent_event, teammate_event

DAY = date(2026, 11, 27)
HERE = Path("/src/app")


def observe_event(
    event: dict[str, object], *, definition: str = "", teams: tuple[str, ...] = DEFAULT_TEAMS
) -> Observation | ObservationDropReason:
    return observe_task(parse_task(event), definition=definition, teams=teams, day=DAY)


def observed(event: dict[str, object], *, definition: str = "", teams: tuple[str, ...] = DEFAULT_TEAMS) -> Observation:
    result = observe_event(event, definition=definition, teams=teams)
    assert isinstance(result, Observation)
    return result


def test_a_task_becomes_an_entry_of_the_known_form() -> None:
    assert observed(rune_team_event(HERE)).text == (
        "## Observations \u2014 Task: Review the session store (2026-11-27)\n"
        "- **layer**: observations\n"
        "- **source**: `rune-review-7be1/ward-sentinel`\n"
        "- **Confidence**: LOW (auto-generated, unverified)\n"
        "- Task completed: Review the session store\n"
        "- Context: Look for races between login and logout.\n"
    )


def test_a_task_without_a_description_has_no_context() -> None:
    assert "Context" not in observed(teammate_event(HERE, task_description="")).text


# Guards


@pytest.mark.parametrize(
    "subject",
    [
        "Shutdown all agents",
        "shut down team",
        "Clean-up worktrees",
        "CLEANUP",
        "Aggregate findings",
        "monitor_progress",
        "Monitoring the ashes",
    ],
)
def test_housekeeping_is_not_observed(subject: str) -> None:
    assert observe_event(teammate_event(HERE, subject=subject)) is ObservationDropReason.HOUSEKEEPING


@pytest.mark.parametrize(
    "subject", ["Design the AggregateRoot", "Fix premonitory checks", "Review MonitorService", "Clean the upper cache"]
)
def test_a_word_that_only_contains_a_housekeeping_word_is_not_housekeeping(subject: str) -> None:
    assert isinstance(observe_event(teammate_event(HERE, subject=subject)), Observation)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"task_subject": ""}, ObservationDropReason.NO_SUBJECT),
        ({"task_subject": " \u200b\u202e # "}, ObservationDropReason.NO_SUBJECT),
        ({"task_subject": 7.5}, ObservationDropReason.NO_SUBJECT),
        ({"task_subject": None}, ObservationDropReason.NO_SUBJECT),
        ({"task_id": ""}, ObservationDropReason.NO_TASK),
        ({"task_id": True}, ObservationDropReason.NO_TASK),
        ({"team_name": "goldmask-1"}, ObservationDropReason.UNLISTED_TEAM),
        ({"team_name": "my-rune-review"}, ObservationDropReason.UNLISTED_TEAM),
        ({"team_name": "rune-x y"}, ObservationDropReason.INVALID_TEAM),
        ({"team_name": "rune-../../etc"}, ObservationDropReason.INVALID_TEAM),
        ({"team_name": "rune-" + "x" * 200}, ObservationDropReason.INVALID_TEAM),
        ({"team_name": ""}, ObservationDropReason.NO_TEAM),
    ],
)
def test_every_guard_has_a_reason(changed: dict[str, object], why: ObservationDropReason) -> None:
    assert observe_event(teammate_event(HERE) | changed) is why


def test_a_number_is_accepted_as_an_id() -> None:
    assert observed(teammate_event(HERE) | {"task_id": 1}).key == observed(teammate_event(HERE, task="1")).key


@pytest.mark.parametrize("event", [subagent_event(HERE), main_agent_event(HERE)])
def test_a_session_without_a_team_is_observed_only_on_request(event: dict[str, object]) -> None:
    assert observe_event(event) is ObservationDropReason.NO_TEAM
    assert observe_event(event, teams=("*",)) is ObservationDropReason.NO_TEAM
    assert f"`session-{SESSION[:8]}/" in observed(event, teams=("",)).text


def test_teams_are_observed_by_pattern() -> None:
    assert observe_event(teammate_event(HERE), teams=("rune-*",)) is ObservationDropReason.UNLISTED_TEAM
    assert isinstance(observe_event(rune_team_event(HERE, team="goldmask-3"), teams=("goldmask-*",)), Observation)


# Roles


@pytest.mark.parametrize(
    ("team", "role"),
    [
        ("rune-review-93ce2417", "reviewer"),
        ("rune-appraise-1", "reviewer"),
        ("rune-audit-1", "reviewer"),
        ("arc-plan-review-20260218", "reviewer"),
        ("rune-mend-audit-2", "reviewer"),
        ("rune-plan-1", "planner"),
        ("rune-devise-1", "planner"),
        ("rune-work-1", "workers"),
        ("rune-strive-1", "workers"),
        ("arc-20260218", "workers"),
        ("arc-plan-1", "planner"),
        ("rune-research-1", "orchestrator"),
        ("rune-network-1", "orchestrator"),
        ("rune-preview-1", "orchestrator"),
        ("rune-explanation-1", "orchestrator"),
        ("rune-mend-1", "orchestrator"),
        ("session-9d8d16c1", "orchestrator"),
    ],
)
def test_a_team_s_words_imply_the_role(team: str, role: str) -> None:
    assert observed(rune_team_event(HERE, team=team)).role == role


@pytest.mark.parametrize(
    ("definition", "role"),
    [
        ("rune:review:ward-sentinel", "reviewer"),
        ("code-reviewer", "reviewer"),
        ("securityAuditor", "reviewer"),
        ("Plan", "planner"),
        ("worker", "workers"),
        ("researcher", "orchestrator"),
        ("", "orchestrator"),
    ],
)
def test_without_a_role_word_in_the_team_the_agent_s_definition_counts(definition: str, role: str) -> None:
    assert observed(teammate_event(HERE), definition=definition).role == role


def test_a_subagent_s_type_is_its_definition() -> None:
    assert observed(subagent_event(HERE), teams=("",)).role == "reviewer"


def test_the_team_takes_precedence() -> None:
    assert observed(rune_team_event(HERE, team="rune-strive-1"), definition="code-reviewer").role == "workers"


def test_a_name_without_a_role_word_has_no_role() -> None:
    assert infer_role("search-and-archive") is None


# Sources


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (teammate_event(HERE), "ash-1"),
        (subagent_event(HERE), "rune:review:ward-sentinel"),
        (main_agent_event(HERE), "main"),
        (teammate_event(HERE, teammate_name="x`; rm"), "unknown"),
        (main_agent_event(HERE, agent_id="a7"), "unknown"),
    ],
)
def test_the_source_names_the_agent(event: dict[str, object], name: str) -> None:
    assert f"/{name}`\n" in observed(event, teams=("", *DEFAULT_TEAMS)).text


# The same task


def test_a_task_reported_twice_has_one_key() -> None:
    assert observed(teammate_event(HERE)).key == observed(teammate_event(HERE, task_description="Otherwise")).key


@pytest.mark.parametrize(
    "changed",
    [{"session_id": "other"}, {"agent_id": "other"}, {"task_id": "2"}, {"task_subject": "Other"}],
    ids=lambda changed: next(iter(changed)),
)
def test_another_session_agent_task_or_subject_is_another_task(changed: dict[str, object]) -> None:
    assert observed(teammate_event(HERE)).key != observed(teammate_event(HERE) | changed).key


def test_parts_of_a_key_are_separated() -> None:
    assert (
        observed(teammate_event(HERE, session_id="a", agent_id="bc")).key
        != observed(teammate_event(HERE, session_id="ab", agent_id="c")).key
    )


def test_only_the_plugin_s_own_teams_have_its_signal() -> None:
    assert observed(rune_team_event(HERE, task="4")).signal == ".obs-rune-review-7be1_4"
    assert observed(rune_team_event(HERE, team="arc-1")).signal == ".obs-arc-1_1"
    assert observed(teammate_event(HERE)).signal is None
    assert observed(rune_team_event(HERE, task="../4")).signal is None


# Texts


@pytest.mark.parametrize(
    ("told", "written"),
    [
        ("one\ntwo\t three\r\nfour", "one two three four"),
        ("ze\u200bro\u2066 wid\u202eth\ufeff", "zero width"),
        ("bell\x07 and\x00 escape\x1b[31m", "bell and escape[31m"),
        ("# Heading ### more", "Heading more"),
        ("before <!-- hidden\n --> after", "before after"),
        ("open <!-- never closed", "open never closed"),
        ("<!#-- a comment after all -->kept", "kept"),
        ("```python\nimport os\n```", "python import os"),
        ("`#``fence", "fence"),
        ("~~~~ tildes", "tildes"),
        ("keep `code`, *stars* and A&B", "keep `code`, *stars* and A&B"),
        ("lone \ud800 surrogate", "lone surrogate"),
        ("caf\u00e9 \u4f60\u597d \U0001f984", "caf\u00e9 \u4f60\u597d \U0001f984"),
    ],
)
def test_text_is_cleaned(told: str, written: str) -> None:
    assert f"- Context: {written}\n" in observed(teammate_event(HERE, task_description=told)).text


def test_text_is_cut_on_a_character() -> None:
    unicorn = "\U0001f984"

    text = observed(teammate_event(HERE, task_description=unicorn * 600)).text

    assert f"- Context: {unicorn * MAX_TEXT_LENGTH}\n" in text


def test_a_long_description_ends_with_a_sentence() -> None:
    sentence = "The lock in src/lock.py leaks when the child fails. "
    found = observed(teammate_event(HERE, task_description=sentence * 30))

    context = found.text.rpartition("- Context: ")[2]
    assert context.endswith("when the child fails.\n")
    assert len(context) <= MAX_TEXT_LENGTH


def test_a_secret_is_redacted_even_if_truncation_would_hide_its_kind() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    text = observed(teammate_event(HERE, task_description="x " * 245 + secret)).text

    assert "ghp_" not in text


def test_a_secret_split_by_invisible_characters_is_redacted() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9\u200bJ0k1L2m3N4o5P6q7R8"
    text = observed(teammate_event(HERE, subject=f"Rotate {secret}", task_description=f"It was {secret}")).text

    assert "ghp_" not in text
    assert "[REDACTED:" in text


def test_a_date_in_the_subject_does_not_become_the_entry_s() -> None:
    data = with_observations(b"", [observed(teammate_event(HERE, subject="Plan (2020-01-01) again"))])
    assert isinstance(data, bytes)
    document = parse(data)
    assert isinstance(document, Document)
    entry = document.blocks[0].entry

    assert entry is not None
    assert entry.heading_date == DAY


SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
KEY = "-----BEGIN PRIVATE" + " KEY-----\nMIIEvQIBADANBgkq" + "hkiG9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----"


@settings(max_examples=100)
@given(
    parts=st.lists(
        st.sampled_from([SECRET, KEY, "password: hunter2!x", "#", "\n", " ", "\u200b", "<!--", "```", "word"])
    ),
    length=st.integers(440, 520),
)
def test_no_secret_survives_cleaning_and_cutting(parts: list[str], length: int) -> None:
    told = "word " * (length // 5) + " ".join(parts)
    text = observed(teammate_event(HERE, subject=f"T {' '.join(parts)}", task_description=told)).text

    assert redact(text).text == text
    assert "ghp_" not in text
    assert "MIIEvQ" not in text


# In the file


def test_earlier_content_of_the_file_stays() -> None:
    before = b"# Reviewer Memory\r\n\r\n## Mine\r\nnot an entry"

    data = with_observations(before, [observed(teammate_event(HERE)), observed(teammate_event(HERE, task="2"))])

    assert isinstance(data, bytes)
    assert data.startswith(before)
    assert b"\n" not in data.replace(b"\r\n", b"")
    assert data.count(b"## Observations") == 2


def test_an_unreadable_file_is_unchanged() -> None:
    assert isinstance(with_observations(b"\xff", [observed(teammate_event(HERE))]), UnwritableMemory)


def test_a_note_in_the_file_is_recognised() -> None:
    one, other = observed(teammate_event(HERE)), observed(teammate_event(HERE, subject="Other"))
    data = with_observations(b"# M\r\n\r\ntext\r\n", [one])

    assert isinstance(data, bytes)
    assert comparison_text(one) in existing_texts(data)
    assert comparison_text(other) not in existing_texts(data)
    assert existing_texts(b"\xff") == ()


# Laws

HOSTILE = st.text(
    st.sampled_from(list("#`~-<>!*_[]()|:\n\r\t\\ aZ0\u200b\u202e\u2028\ud800\ufeff\u00a0\U0001f984")), max_size=60
)
MEMORY = st.lists(
    st.sampled_from(
        [
            "# Memory\n",
            "\n",
            "```\n",
            "<!-- open\n",
            "- bullet\n",
            "  - nested\n",
            "## Mine\n",
            "### [2026-01-01] Pattern: x\n- **layer**: inscribed\n- learned\n",
            "## Inscribed \u2014 y (2026-01-01)\n",
            "text",
            "> quote\n",
            "<div>\n",
        ]
    ),
    max_size=8,
).map("".join)


@settings(max_examples=150)
@given(
    subject=HOSTILE | st.text(max_size=40),
    description=HOSTILE | st.text(max_size=40),
    agent=st.text(max_size=8),
    memory=MEMORY,
)
def test_every_task_is_one_entry_at_the_end(subject: str, description: str, agent: str, memory: str) -> None:
    event = teammate_event(HERE, subject=f"T{subject}", task_description=description, teammate_name=agent)
    result = observe_event(json.loads(json.dumps(event)))
    if isinstance(result, ObservationDropReason):
        return
    before = parse(memory.encode())
    data = with_observations(memory.encode(), [result, result])
    if isinstance(data, UnwritableMemory) or not isinstance(before, Document):
        return

    after = parse(data)
    assert isinstance(after, Document)
    assert data.startswith(memory.encode())
    new = after.blocks[len(before.blocks) :]
    assert [block.entry.form if block.entry else None for block in new] == [Form.OBSERVATION] * 2
    assert all(block.entry and block.entry.layer is Layer.OBSERVATIONS for block in new)
    assert all(block.entry and block.entry.heading_date == DAY for block in new)
    assert result.text.count("\n") in {5, 6}


@given(
    value=st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    name=st.sampled_from(sorted(teammate_event(HERE))),
)
@settings(max_examples=80)
def test_any_field_value_gives_an_observation_or_a_reason(value: object, name: str) -> None:
    assert isinstance(observe_event(teammate_event(HERE) | {name: value}), Observation | ObservationDropReason)

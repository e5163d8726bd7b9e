"""The policy of observations: which completed tasks are remembered, in which role, and in which words.

A task is told by a hook of an agent's session. Guards drop what is no observation, each with a reason that can be
counted. What passes becomes an entry of the lowest layer, in the form that other writers of these files use.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple

from echod.memory.alignment import content
from echod.memory.compose import append_entries
from echod.memory.document import parse, parse_block
from echod.memory.model import Document, Form, Layer, Unreadable
from echod.memory.redact import redact

LONGEST = 500
"""Characters of a subject and of a description that are kept."""

DEFAULT_ROLE = "orchestrator"

_ROLES = (
    ("reviewer", frozenset({"review", "reviewer", "appraise", "audit", "auditor"})),
    ("planner", frozenset({"plan", "planner", "devise"})),
    ("workers", frozenset({"work", "worker", "workers", "strive", "arc"})),
)
"""Words of a team's or an agent's name that tell its role. The first that matches counts: a plan review is a review."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ERRAND = re.compile(
    r"(?<![a-z])(?:shut[ -]?down|clean[ -]?up|aggregate|monitor)(?:s|d|ed|ing)?(?![a-z])", re.IGNORECASE
)
_TEAM = re.compile(r"[A-Za-z0-9_-]{1,128}")
_AGENT = re.compile(r"[A-Za-z0-9_:.-]{1,128}")
_MARKED_TEAM = re.compile(r"(?:rune|arc)-[A-Za-z0-9_-]{1,124}")
_MARKED_TASK = re.compile(r"[A-Za-z0-9_-]{1,64}")

_MARKUP = re.compile(r"`{3,}|~{3,}|<!--|-->")
_DATE_MARK = re.compile(r"\((\d{4}-\d{2}-\d{2})\)")
_SPACES = frozenset({"Zs", "Zl", "Zp"})
_CONTROLS = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_SELECTORS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_READ_AT_MOST = 40 * LONGEST
"""Characters of a text that are looked at: what the cleaning takes away must not leave too little of the rest."""


class Drop(StrEnum):
    """Why an event becomes no observation; the words are shown to the person who asks."""

    UNREADABLE = "the event was not understood"
    NO_SUBJECT = "the task has no subject"
    NO_TASK = "the task has no id"
    NO_TEAM = "the session has no team"
    ODD_TEAM = "the team's name is no plain name"
    TEAM = "the team is not listened to (observe.teams)"
    ERRAND = "the task is an errand (shutdown, cleanup, aggregate, monitor)"


class Task(NamedTuple):
    """A completed task as the hook was told. Everything is the agent's own text; "" is what was not said.

    Attributes:
        session: the session's id.
        agent_id: the agent in the session; "" for the main one.
        agent_type: a subagent's definition; in a team, the member's name.
        teammate: the member's name in a team.
        team: the team's name.
        id: the task's number, which starts again in each session.
    """

    session: str
    agent_id: str
    agent_type: str
    teammate: str
    team: str
    id: str
    subject: str
    description: str


class Observation(NamedTuple):
    """A task that is worth an entry.

    Attributes:
        key: names the task among all tasks of all sessions; the same task told twice has the same key.
        role: where it belongs.
        text: the entry, ending with one newline, without secrets.
        signal: the name of the mark by which other writers of observations say that they wrote this one; None for
            teams that they do not look at.
    """

    key: str
    role: str
    text: str
    signal: str | None


class Unwritable(NamedTuple):
    """The memory file cannot take observations; why in a sentence."""

    reason: str


def task_of(event: Mapping[str, object]) -> Task:
    """The task in a `TaskCompleted` event; fields that are missing or odd count as not said."""
    return Task(
        session=_said(event, "session_id"),
        agent_id=_said(event, "agent_id"),
        agent_type=_said(event, "agent_type"),
        teammate=_said(event, "teammate_name"),
        team=_said(event, "team_name"),
        id=_said(event, "task_id"),
        subject=_said(event, "task_subject"),
        description=_said(event, "task_description"),
    )


def observe(task: Task, *, definition: str, teams: Sequence[str], day: date) -> Observation | Drop:
    """What becomes of a completed task.

    Args:
        task: what the hook was told.
        definition: the name of the agent's definition where it is known from elsewhere, else "".
        teams: patterns (`rune-*`) of the teams that are listened to; "" stands for sessions without a team.
        day: the local day on which the task was completed.
    """
    subject, description = _plain(task.subject), _plain(task.description)
    if not subject:
        return Drop.NO_SUBJECT
    if not task.id:
        return Drop.NO_TASK
    if not task.team and "" not in teams:
        return Drop.NO_TEAM
    if task.team and not any(fnmatchcase(task.team, pattern) for pattern in teams):
        return Drop.TEAM
    if task.team and not _TEAM.fullmatch(task.team):
        return Drop.ODD_TEAM
    if _ERRAND.search(subject):
        return Drop.ERRAND
    team = task.team or f"session-{task.session[:8]}"
    role = role_of(task.team) or role_of(definition or task.agent_type) or DEFAULT_ROLE
    return Observation(
        key=_key(task, subject),
        role=role,
        text=_entry(subject, description, f"{team}/{_agent(task)}", day),
        signal=_signal(task),
    )


def role_of(name: str) -> str | None:
    """The role that the words of a name tell; None if they tell none. `research` is not `arc`."""
    words = {word.lower() for word in _WORD.findall(name)}
    return next((role for role, telling in _ROLES if words & telling), None)


def standing(memory: bytes) -> tuple[str, ...]:
    """The texts of the entries in a memory file, to be compared with `Observation.text` by `same_text`."""
    document = parse(memory)
    if isinstance(document, Unreadable):
        return ()
    return tuple(content(block) for block in document.blocks)


def same_text(observation: Observation) -> str:
    """The observation's text as `standing` gives it."""
    return content(parse_block(observation.text))


def with_observations(memory: bytes, observations: Iterable[Observation]) -> bytes | Unwritable:
    """The memory file with these entries at its end; all that was in it reads as before."""
    before = parse(memory)
    if isinstance(before, Unreadable):
        return Unwritable(before.reason)
    newline = "\r\n" if memory.count(b"\r\n") * 2 > memory.count(b"\n") else "\n"
    texts = [observation.text.replace("\n", newline) for observation in observations]
    data = append_entries(before, texts)
    after = parse(data)
    if isinstance(after, Unreadable):
        return Unwritable(after.reason)
    if not _continues(before, after, len(texts)):
        return Unwritable("A code block or comment that is never closed in this file would swallow new entries.")
    return data


def _continues(before: Document, after: Document, added: int) -> bool:
    old = [before.preamble, *(block.text for block in before.blocks)]
    new = [after.preamble, *(block.text for block in after.blocks)]
    observations = after.blocks[len(before.blocks) :]
    return (
        len(observations) == added
        and new[: len(old) - 1] == old[:-1]
        and new[len(old) - 1].startswith(old[-1])
        and all(b.entry and b.entry.form is Form.OBSERVATION for b in observations)
        and all(b.entry and b.entry.layer is Layer.OBSERVATIONS for b in observations)
    )


def _said(event: Mapping[str, object], name: str) -> str:
    value = event.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip()[:_READ_AT_MOST] if isinstance(value, str) else ""


def _key(task: Task, subject: str) -> str:
    agent = task.agent_id or task.teammate or task.agent_type
    names = [task.session or task.team, agent, task.id, subject]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:32]


def _agent(task: Task) -> str:
    if not (task.teammate or task.agent_type or task.agent_id):
        return "main"
    name = task.teammate or task.agent_type
    return name if _AGENT.fullmatch(name) else "unknown"


def _signal(task: Task) -> str | None:
    if _MARKED_TEAM.fullmatch(task.team) and _MARKED_TASK.fullmatch(task.id):
        return f".obs-{task.team}_{task.id}"
    return None


def _entry(subject: str, description: str, source: str, day: date) -> str:
    source, subject, description = _without_secrets(source, subject, description)
    title = _DATE_MARK.sub(r"\1", subject)  # of two dates in a heading, readers take the first
    lines = [
        f"## Observations \u2014 Task: {title} ({day.isoformat()})",
        "- **layer**: observations",
        f"- **source**: `{source}`",
        "- **Confidence**: LOW (auto-generated, unverified)",
        f"- Task completed: {subject}",
        *([f"- Context: {description}"] if description else []),
    ]
    return "\n".join(lines) + "\n"


def _without_secrets(*lines: str) -> list[str]:
    """These lines rid of secrets, then cut: what is cut first may be too short to show what it is."""
    clean = redact("\n".join(lines)).text.split("\n")  # all in one go, which is what takes the time
    if len(clean) != len(lines):
        clean = [redact(line).text for line in lines]
    # A run that was too long for a secret may look like one, or be one, when it is cut.
    return [line if len(line) <= LONGEST else redact(line[:LONGEST]).text[:LONGEST].rstrip() for line in clean]


def _plain(text: str) -> str:
    """One line of plain text."""
    if "\n" in text:
        text = redact(text).text  # some secrets have several lines, and are none any more on one
    text = "".join(map(_seen, _SELECTORS.sub("", text[:_READ_AT_MOST])))
    # Marks first: without them the rest may be a comment or fence that was none before.
    text = _MARKUP.sub(" ", _without_comments(text.replace("#", "")))
    return " ".join(text.split())


def _without_comments(text: str) -> str:
    """The text with a space for each comment that is closed."""
    parts: list[str] = []
    done = 0
    while (start := text.find("<!--", done)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        parts.append(text[done:start])
        done = end + 3
    return " ".join([*parts, text[done:]])


def _seen(character: str) -> str:
    """The character, a space for one that only separates, nothing for one that nobody sees."""
    if character < "\x7f":
        return " " if character in _CONTROLS else character if character >= " " else ""
    category = unicodedata.category(character)
    if character in _CONTROLS or category in _SPACES:
        return " "
    return "" if category in _UNSEEN else character

"""The tools: names, descriptions and arguments. Names and arguments are those of the plugin whose server this replaces.

Arguments are checked here and not by the SDK, so that a wrong one gets a sentence that an agent can act upon.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from echod.memory.packs.manifest import DOMAINS

LAYERS: Final = ("etched", "notes", "inscribed", "observations", "traced")
CATEGORIES: Final = ("general", "pattern", "anti-pattern", "decision", "debugging")

SCOPES: Final = ("project", "global", "all")
FORMATS: Final = ("json", "markdown")
ARTIFACT_TYPES: Final = ("tome", "resolution", "work", "gap", "inspect")
DEFAULT_LIMIT: Final = 10
MAX_LIMIT: Final = 50
MAX_IDS: Final = 50
MAX_FILES: Final = 20

_STRING: Final = {"type": "string"}
_STRINGS: Final = {"type": "array", "items": {"type": "string"}}


class InvalidArgumentError(Exception):
    """An argument is missing or wrong. The text is for the agent."""


class ToolSchema(NamedTuple):
    """A tool. `reads_only` is false if a call records or writes something."""

    name: str
    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    reads_only: bool
    is_idempotent: bool = True

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return {"type": "object", "properties": dict(self.properties), "required": list(self.required)}


def _choice(values: tuple[str, ...], default: str | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "enum": list(values)}
    return schema if default is None else {**schema, "default": default}


def _described(schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {**schema, "description": description}


TOOLS: Final = (
    ToolSchema(
        "echo_search",
        "Search the project's memory: learnings of earlier sessions, decisions, known errors and their fixes. "
        "Use it before a task, and when something fails. Returns previews; echo_details returns whole entries.",
        {
            "query": _described(_STRING, "Words, an error message, an identifier or a path. No search syntax."),
            "limit": {"type": "integer", "default": DEFAULT_LIMIT},
            "offset": {"type": "integer", "default": 0},
            "layer": _described(_STRING, f"One of: {', '.join(LAYERS)}."),
            "role": _STRING,
            "context_files": _described(_STRINGS, "Files that you work on. Entries that cite them come first."),
            "category": _choice(CATEGORIES),
            "response_format": _choice(FORMATS, "json"),
            "scope": _described(_choice(SCOPES, "project"), "This project, the global store, or both."),
            "domain": _described(_choice(DOMAINS), "Restricts entries of the global store."),
        },
        ("query",),
        reads_only=True,
    ),
    ToolSchema(
        "echo_details",
        "Return whole entries by the ids that echo_search returned.",
        {"ids": _STRINGS, "scope": _choice(SCOPES, "project")},
        ("ids",),
        reads_only=True,
    ),
    ToolSchema(
        "echo_reindex",
        "Read all memory files again. Searches do this for changed files by themselves.",
        {"scope": _choice(SCOPES, "project")},
        (),
        reads_only=False,
    ),
    ToolSchema(
        "echo_stats",
        "Return the number of entries by layer, role and category.",
        {"scope": _choice(SCOPES, "project")},
        (),
        reads_only=True,
    ),
    ToolSchema(
        "echo_record_access",
        "Record that entries were useful. Entries that are often useful are kept longer.",
        {
            "entry_ids": _STRINGS,
            "query": {"type": "string", "default": ""},
            "scope": _choice(SCOPES[:2], "project"),
        },
        ("entry_ids",),
        reads_only=False,
        is_idempotent=False,
    ),
    ToolSchema(
        "echo_upsert_group",
        "Declare entries as related. Searches show them with each other.",
        {"group_id": _STRING, "entry_ids": _STRINGS, "similarities": {"type": "array", "items": {"type": "number"}}},
        ("entry_ids",),
        reads_only=False,
    ),
    ToolSchema(
        "artifact_search",
        "Search what earlier workflow runs left behind: review findings, resolutions, summaries, gaps and verdicts.",
        {
            "query": _STRING,
            "type": _choice(ARTIFACT_TYPES),
            "arc_id": _STRING,
            "limit": {"type": "integer", "default": DEFAULT_LIMIT},
        },
        ("query",),
        reads_only=True,
    ),
    ToolSchema(
        "echo_brief",
        "Summarize what to know before a task: permanent entries, entries that match the task and the changed files, "
        "conflicts, and evidence that is gone.",
        {
            "text": _described(_STRING, "The task in words."),
            "roles": _described(_STRINGS, "Only entries of these roles."),
            "context_files": _described(_STRINGS, "Files that you work on; default: those that changed."),
            "lines": {"type": "integer", "default": 100},
        },
        (),
        reads_only=True,
    ),
    ToolSchema(
        "echo_learn",
        "Record something that you learned. It becomes a finding of the role, and an entry when the memory is "
        "consolidated. Record one learning per call, with the evidence for it.",
        {
            "role": _described(_STRING, "The role whose memory it belongs to, for example reviewer or workers."),
            "title": _described(_STRING, "The learning in a few words."),
            "learning": _described(_STRING, "The fact, why it matters, and the consequence."),
            "evidence": _described(_STRING, "Files and lines, for example `src/a.py:3-9`."),
            "confidence": _described({"type": "number"}, "0 to 1."),
        },
        ("role", "title", "learning"),
        reads_only=False,
        is_idempotent=False,
    ),
)
"""Every tool, always in this order, so that clients can cache the list."""


class Arguments:
    """The arguments of a call. Values of a wrong type raise `InvalidArgumentError`, unknown names are ignored."""

    def __init__(self, values: Mapping[str, Any] | None) -> None:
        self._values = values or {}

    def text(self, name: str, default: str = "") -> str:
        """Return a text; the default if it is absent."""
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise InvalidArgumentError(f"{name} must be a string.")
        return value

    def required_text(self, name: str) -> str:
        """Return a text that is not blank."""
        value = self.text(name)
        if not value.strip():
            raise InvalidArgumentError(f"{name} must be a non-empty string.")
        return value

    def number(self, name: str, default: int, *, low: int, high: int) -> int:
        """Return a whole number: the default if it is absent or below `low`, and `high` if it is above that."""
        value = self._values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidArgumentError(f"{name} must be a whole number.")
        return default if value < low else min(value, high)

    def fraction(self, name: str) -> float | None:
        """Return a number from 0 to 1; None if it is absent."""
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise InvalidArgumentError(f"{name} must be a number from 0 to 1.")
        return float(value)

    def choice(self, name: str, values: tuple[str, ...], default: str = "") -> str:
        """Return one of these values in lower case; the default if it is absent or empty."""
        value = self.text(name).strip().lower()
        if value and value not in values:
            raise InvalidArgumentError(f"{name} must be one of: {', '.join(values)}.")
        return value or default

    def texts(self, name: str, limit: int) -> tuple[str, ...]:
        """Return a list of texts, each once, cut at the limit."""
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InvalidArgumentError(f"{name} must be a list of strings.")
        return tuple(dict.fromkeys(value))[:limit]

    def required_texts(self, name: str, limit: int) -> tuple[str, ...]:
        """Return a list of texts that is not empty."""
        found = self.texts(name, limit)
        if not found:
            raise InvalidArgumentError(f"{name} is required and must be a list with at least one id.")
        return found

    def numbers(self, name: str) -> tuple[float, ...] | None:
        """Return a list of numbers; None if it is absent."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or any(isinstance(n, bool) or not isinstance(n, int | float) for n in value):
            raise InvalidArgumentError(f"{name} must be a list of numbers.")
        return tuple(float(number) for number in value)

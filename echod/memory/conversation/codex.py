"""Read the records of Codex's rollouts (`~/.codex/sessions/**/rollout-*.jsonl`).

A line is `{"timestamp", "type", "payload"}`. The conversation is in the response items, together with instructions and
context that the program injected. Events repeat it for the program's own screen and are skipped. In older rollouts
the response items have no envelope.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from echod.lazy import lazy_pattern
from echod.memory.conversation.host import content_items, tool_call, tool_output
from echod.memory.conversation.model import (
    ConversationItem,
    RecordFacts,
    RecordReading,
    Skipped,
    Speaker,
    TranscriptMessage,
    Utterance,
    parse_timestamp,
    record_key,
    word_of,
)

KNOWN_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})

_INJECTED = lazy_pattern(
    r"\s*(?:<(?:user_instructions|environment_context|permissions instructions|turn_aborted|user_shell_command|skill"
    r"|INSTRUCTIONS|subagent_notification)\b|# AGENTS\.md instructions)"
)
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_OLD_TYPES = frozenset({"message", "reasoning", *_CALLS, *_OUTPUTS})


def is_record(value: object) -> bool:
    """Return whether a parsed line is a record of such a rollout."""
    if not isinstance(value, Mapping):
        return False
    kind = word_of(value.get("type"))
    if kind in KNOWN_TYPES and isinstance(value.get("payload"), Mapping):
        return True
    is_first = "id" in value and "timestamp" in value and "instructions" in value
    return is_first or (kind in _OLD_TYPES and "message" not in value)


def record_facts(record: Mapping[str, object]) -> RecordFacts:
    """Return the facts about the session that a record contains."""
    payload = record.get("payload")
    at = parse_timestamp(record.get("timestamp"))
    if record.get("type") == "session_meta" and isinstance(payload, Mapping):
        session, cwd = payload.get("id"), payload.get("cwd")
    elif "instructions" in record and "id" in record:
        session, cwd = record.get("id"), record.get("cwd")
    else:
        session, cwd = "", ""
    return RecordFacts(str(session) if isinstance(session, str) else "", cwd if isinstance(cwd, str) else "", at)


def read_record(record: Mapping[str, object]) -> RecordReading:
    """Return what a record adds to the conversation."""
    payload = record.get("payload")
    item: Mapping[str, object] = payload if isinstance(payload, Mapping) else record
    if word_of(record.get("type")) not in ("response_item", *_OLD_TYPES):
        return Skipped.OTHER
    speaker, items = _read_item(item)
    if not items:
        return Skipped.INJECTED if item.get("type") == "message" else Skipped.OTHER
    typed = any(isinstance(one, Utterance) for one in items)
    content = {name: item[name] for name in item if name != "status"}
    key = record_key(json.dumps([record.get("timestamp"), content], sort_keys=True, default=str))
    return TranscriptMessage(key, "", parse_timestamp(record.get("timestamp")), speaker, items, counts=typed)


def _read_item(item: Mapping[str, object]) -> tuple[Speaker, tuple[ConversationItem, ...]]:
    kind, role = word_of(item.get("type")), word_of(item.get("role"))
    if kind == "message" and role in (Speaker.USER, Speaker.ASSISTANT):
        speaker = Speaker(str(role))
        found = content_items(item.get("content"), speaker)
        return speaker, tuple(
            one
            for one in found
            if not (speaker is Speaker.USER and isinstance(one, Utterance) and _INJECTED.match(one.text))
        )
    if kind in _CALLS:
        return Speaker.ASSISTANT, (tool_call(item.get("name") or kind, _arguments(item)),)
    if kind in _OUTPUTS:
        output = item.get("output")
        text = output.get("content") if isinstance(output, Mapping) else _output_of(output)
        failed = isinstance(output, Mapping) and output.get("success") is False
        return Speaker.ASSISTANT, (tool_output(text, is_error=failed),)
    return Speaker.ASSISTANT, ()


def _output_of(output: object) -> object:
    """Return the text in an output that is JSON in a string, as older versions wrote it; else the output."""
    if isinstance(output, str) and output.startswith("{"):
        try:
            inner = json.loads(output)
        except (ValueError, RecursionError):
            return output
        if isinstance(inner, dict) and isinstance(inner.get("output"), str):
            return inner["output"]
    return output


def _arguments(item: Mapping[str, object]) -> Mapping[str, object]:
    raw = item.get("arguments") if item.get("arguments") is not None else item.get("action", item.get("input"))
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):
            raw = {"command": raw}
    fields = dict(raw) if isinstance(raw, Mapping) else {}
    command = fields.get("command", fields.get("cmd"))
    if isinstance(command, list):
        command = " ".join(map(str, command[-1:] if command[:2] in (["bash", "-lc"], ["zsh", "-lc"]) else command))
    return {**fields, "command": command} if isinstance(command, str) else fields

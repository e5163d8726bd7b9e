"""Read the message list of a host: `{"role": ..., "content": text or blocks}`, and the inputs of tools in general.

A list, or an object with `messages` and perhaps `session_id`, `started` and `ended` (also `started_at`, `ended_at`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from echod.memory.conversation.model import (
    MAX_TOOL_OUTPUT_CHARACTERS,
    ConversationItem,
    NotATranscriptError,
    Speaker,
    ToolCall,
    ToolOutput,
    TranscriptMessage,
    Utterance,
    clean_text,
    one_line,
    parse_timestamp,
    record_key,
    shorten,
    word_of,
)

MAX_COMMAND_CHARACTERS = 80
PATH_KEYS = ("file_path", "path", "notebook_path")

_MAX_TARGET_CHARACTERS = 200
_MAX_OUTPUT_CHARACTERS = 10 * MAX_TOOL_OUTPUT_CHARACTERS
"""Far more than is ever shown, so that cleaning and redacting cost the same for every output."""

_REFUSAL_FEEDBACK = "the user said:"


class HostSession(NamedTuple):
    """A message list of a host. `started` and `ended` are Unix seconds, or None."""

    session_id: str
    started: float | None
    ended: float | None
    messages: tuple[TranscriptMessage, ...]


def parse_host_session(value: object) -> HostSession:
    """Return the session in a parsed JSON document.

    Raises:
        NotATranscriptError: it has no list of messages.
    """
    fields = value if isinstance(value, Mapping) else {"messages": value}
    messages = fields.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        raise NotATranscriptError("it has no list of messages")
    return HostSession(
        session_id=_text(fields, "session_id", "sessionId", "id"),
        started=parse_timestamp(_first(fields, "started", "started_at")),
        ended=parse_timestamp(_first(fields, "ended", "ended_at")),
        messages=tuple(_host_messages(messages)),
    )


def _first(fields: Mapping[str, object], *names: str) -> object:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _text(fields: Mapping[str, object], *names: str) -> str:
    value = _first(fields, *names)
    return one_line(str(value)) if isinstance(value, str | int) else ""


def _host_messages(messages: Iterable[Mapping[str, object]]) -> Iterator[TranscriptMessage]:
    for number, message in enumerate(messages):
        role = word_of(message.get("role"))
        if role not in (Speaker.USER, Speaker.ASSISTANT):
            continue
        speaker = Speaker(str(role))
        items = tuple(content_items(message.get("content"), speaker))
        key = record_key(f"{number} {json.dumps(message, sort_keys=True, default=str)}")
        at = parse_timestamp(_first(message, "timestamp", "at"))
        yield TranscriptMessage(key, "", at, speaker, items)


def content_items(content: object, speaker: Speaker) -> Iterator[ConversationItem]:
    """Yield the items of a message's content, which is a text or a list of blocks. Unknown blocks add nothing."""
    if isinstance(content, str):
        if content.strip():
            yield Utterance(speaker, clean_text(content))
        return
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            yield from content_items(block, speaker)
        elif isinstance(block, Mapping):
            yield from block_items(block, speaker)


def block_items(block: Mapping[str, object], speaker: Speaker) -> Iterator[ConversationItem]:
    """Yield the item of one block, if it is one of the conversation."""
    match block.get("type"):
        case "text" | "input_text" | "output_text":
            text = block.get("text")
            if isinstance(text, str) and text.strip():
                yield Utterance(speaker, clean_text(text))
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            yield tool_call(block.get("name"), block.get("input"))
        case "tool_result" | "mcp_tool_result":
            yield tool_output(block.get("content"), is_error=block.get("is_error") is True)
        case "image" | "document":
            yield Utterance(speaker, f"[{block['type']}]", typed=False)
        case _:
            return


def tool_call(name: object, arguments: object) -> ToolCall:
    """Return the use of a tool. Its target is a path, else a command, a pattern, a query or an address."""
    tool = one_line(name) if isinstance(name, str) and name.strip() else "unknown"
    fields: Mapping[str, object] = arguments if isinstance(arguments, Mapping) else {}
    for key in PATH_KEYS:
        if isinstance(path := fields.get(key), str) and path:
            return ToolCall(tool, one_line(path), one_line(path))
    texts = {key: one_line(value) for key, value in fields.items() if isinstance(value, str) and value.strip()}
    if "command" in texts:
        return ToolCall(tool, texts["command"][:MAX_COMMAND_CHARACTERS])
    for key, prefix in (("pattern", "pattern: "), ("query", "query: "), ("url", ""), ("description", "")):
        if key in texts:
            return ToolCall(tool, prefix + shorten(texts[key], _MAX_TARGET_CHARACTERS))
    return ToolCall(tool, f"{tool}(\u2026)")


def tool_output(content: object, *, is_error: bool) -> ToolOutput:
    """Return the output of a tool, whose content is a text, a list of blocks, or any other value."""
    if isinstance(content, str):
        text = content
    elif isinstance(content, list):
        text = "\n".join(filter(None, map(_output_text, content)))
    else:
        text = "" if content is None else json.dumps(content, ensure_ascii=False, default=str)
    # The user's own words in a refusal are as good as a prompt.
    keep_whole = is_error and _REFUSAL_FEEDBACK in text
    return ToolOutput(clean_text(text if keep_whole else text[:_MAX_OUTPUT_CHARACTERS]), is_error, keep_whole)


def _output_text(block: object) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        return ""
    if isinstance(text := block.get("text"), str):
        return text
    kind = block.get("type")
    if kind == "tool_reference":
        return str(block.get("tool_name", ""))
    return f"[{kind}]" if isinstance(kind, str) else ""

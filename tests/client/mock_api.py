"""A stand-in for the model behind Claude Code: it answers requests on the loopback interface from a script.

A script is a list of turns. A turn is a text, or a tool call with its input. After the last turn every request is
answered with a short text. The requests are kept, so that a test can see what reached the model.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

_END_TEXT = "Done."


class ToolCall(NamedTuple):
    """A call of a tool that the model wants."""

    name: str
    arguments: dict[str, Any]


Turn = str | ToolCall


class MockApi:
    """The state of the stand-in. `requests` are the bodies that the client sent to the model, oldest first."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = list(turns)
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    def answer(self, request: dict[str, Any]) -> Turn:
        """Return the next turn of the script for a request of the main conversation."""
        with self._lock:
            self.requests.append(request)
            # Requests for titles and summaries have no tools, and are not a turn of the conversation.
            return self._turns.pop(0) if request.get("tools") and self._turns else _END_TEXT

    def sent_text(self) -> str:
        """Return everything that reached the model, as one text."""
        return json.dumps(self.requests, ensure_ascii=False)


@contextmanager
def running_mock_api(turns: Sequence[Turn]) -> Iterator[MockApi]:
    """Serve the script on a free port of the loopback interface."""
    api = MockApi(turns)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._send(b"", "text/plain")

        def do_GET(self) -> None:
            self._send(b"{}", "application/json")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            if "count_tokens" in self.path:
                self._send(b'{"input_tokens": 10}', "application/json")
            elif "/v1/messages" not in self.path:
                self._send(b"{}", "application/json")
            elif body.get("stream"):
                self._send(_event_stream(api.answer(body)), "text/event-stream")
            else:
                self._send(json.dumps(_message(api.answer(body))).encode(), "application/json")

        def _send(self, data: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _message(turn: Turn) -> dict[str, Any]:
    return {
        "id": "msg_mock",
        "type": "message",
        "role": "assistant",
        "model": "mock",
        "content": [_block(turn, complete=True)],
        "stop_reason": _stop_reason(turn),
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }


def _event_stream(turn: Turn) -> bytes:
    start = {**_message(turn), "content": [], "stop_reason": None}
    if isinstance(turn, ToolCall):
        delta = {"type": "input_json_delta", "partial_json": json.dumps(turn.arguments)}
    else:
        delta = {"type": "text_delta", "text": turn}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": _block(turn, complete=False)},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": _stop_reason(turn), "stop_sequence": None},
            "usage": {"output_tokens": 10},
        },
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def _block(turn: Turn, *, complete: bool) -> dict[str, Any]:
    if isinstance(turn, ToolCall):
        arguments = turn.arguments if complete else {}
        return {"type": "tool_use", "id": f"toolu_{id(turn):x}", "name": turn.name, "input": arguments}
    return {"type": "text", "text": turn if complete else ""}


def _stop_reason(turn: Turn) -> str:
    return "tool_use" if isinstance(turn, ToolCall) else "end_turn"

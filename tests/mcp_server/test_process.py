"""The real process: what it prints, both eras of the protocol, and that it ends with its client in every way."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, StdioServerParameters

from echod.mcp_server.schemas import TOOLS
from tests.mcp_server.conftest import Desk
from tests.support import until

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "echod", "mcp"]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
}


def start(desk: Desk, environ: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(COMMAND, cwd=desk.project, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def close(process: subprocess.Popen[bytes]) -> None:
    """Close the client's end of the streams."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def ask(process: subprocess.Popen[bytes], *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Send messages and return the answers to those with an id. Every line must be a message."""
    assert process.stdin is not None
    assert process.stdout is not None
    answers = []
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        if "id" in message:
            answers.append(json.loads(process.stdout.readline()))
    return answers


def connect(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Initialize a connection and return the server's answer."""
    answer = ask(process, INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"})[0]
    result: dict[str, Any] = answer["result"]
    return result


def test_every_line_is_a_message_and_the_end_of_input_ends_it(stocked: Desk, environ: dict[str, str]) -> None:
    process = start(stocked, environ)
    information = connect(process)
    listed, found = ask(
        process,
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call",
         "params": {"name": "echo_search", "arguments": {"query": "herontok"}}},
    )  # fmt: skip

    assert information["serverInfo"]["name"] == "echod"
    assert "tools" in information["capabilities"]
    assert len(listed["result"]["tools"]) == 9
    assert json.loads(found["result"]["content"][0]["text"])["entries"][0]["tags"] == "Pattern: Bulleted heron"
    close(process)
    assert process.wait(10) == 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_speaks_with_it_in_both_eras(stocked: Desk, environ: dict[str, str], mode: str) -> None:
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=environ, cwd=stocked.project)

    async def work() -> tuple[str, int]:
        async with Client(parameters, mode=mode) as client:
            result = await client.call_tool("echo_search", {"query": "herontok"})
            resources = await client.list_resources()
            return result.content[0].text, len(resources.resources)  # type: ignore[union-attr]

    text, resources = asyncio.run(work())

    assert json.loads(text)["entries"][0]["tags"] == "Pattern: Bulleted heron"
    assert resources > 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_it(stocked: Desk, environ: dict[str, str], number: signal.Signals) -> None:
    process = start(stocked, environ)
    connect(process)

    process.send_signal(number)

    assert process.wait(10) == -number
    close(process)


CLIENT = """
import os, subprocess, sys, time
read, write = os.pipe()
os.set_inheritable(read, True)
server = subprocess.Popen(sys.argv[2:], stdin=read, stdout=subprocess.DEVNULL)
holder = subprocess.Popen(["sleep", "60"], pass_fds=[write])
with open(sys.argv[1] + ".part", "w") as file:
    file.write(f"{server.pid} {holder.pid}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(60)
"""


@pytest.mark.parametrize("wrapper", [[], ["sh", "-c", '"$@"; true', "echod mcp"]], ids=["direct", "wrapper"])
def test_it_ends_when_its_client_is_killed_and_another_process_keeps_the_pipe_open(
    stocked: Desk, environ: dict[str, str], tmp_path: Path, wrapper: list[str]
) -> None:
    pids = tmp_path / "pids"
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(pids), *wrapper, *COMMAND], cwd=stocked.project, env=environ
    )
    until(pids.exists, "the client's server")
    server, holder = (psutil.Process(int(pid)) for pid in pids.read_text().split())
    try:
        if wrapper:
            until(server.children, "the server below its wrapper")
        process = server.children()[0] if wrapper else server
        until(lambda: process.num_threads() > 1, "the server's threads")

        client.kill()
        client.wait()

        until(lambda: not is_running(process), "the end of the server")
    finally:
        for left in (holder, server, *(server.children(recursive=True) if is_running(server) else ())):
            if is_running(left):
                left.kill()
        client.kill()


def is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def end_input(process: subprocess.Popen[bytes]) -> None:
    close(process)


def end_output(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    process.stdout.close()
    close(process)


def end_by(number: signal.Signals) -> Callable[[subprocess.Popen[bytes]], None]:
    return lambda process: process.send_signal(number)


ENDS: list[Callable[[subprocess.Popen[bytes]], None]] = [
    end_input, end_output, *map(end_by, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)),
]  # fmt: skip
WRAPPERS: list[list[str]] = [[], ["sh", "-c", '"$@"; true', "echod mcp"]]
ROUNDS = int(os.environ.get("MCP_SESSION_ROUNDS", "2"))
"""How often sessions end in each of the eight ways; 13 rounds are more than a hundred sessions."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(ROUNDS))
def test_sessions_ended_in_every_way_leave_no_process_behind(
    stocked: Desk, environ: dict[str, str], tmp_path: Path, number: int
) -> None:
    started = [start(stocked, environ) for _ in ENDS]
    clients = [
        subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(tmp_path / f"pids{kind}"), *wrapper, *COMMAND],
            cwd=stocked.project, env=environ,
        )
        for kind, wrapper in enumerate(WRAPPERS)
    ]  # fmt: skip
    servers: list[psutil.Process] = []
    holders: list[psutil.Process] = []
    for kind, wrapper in enumerate(WRAPPERS):
        pids = tmp_path / f"pids{kind}"
        until(pids.exists, "the client's server")
        server, holder = (psutil.Process(int(pid)) for pid in pids.read_text().split())
        holders.append(holder)
        if wrapper:
            until(server.children, "the server below its wrapper")
        servers += [server, *server.children()]
    until(lambda: all(server.num_threads() > 1 for server in servers if not server.children()), "the servers' threads")
    for process, end in zip(started, ENDS, strict=True):
        if number % 2 == 0:  # else some end before they have answered at all
            connect(process)
        servers.append(psutil.Process(process.pid))
        end(process)
    for client in clients:
        client.kill()
        client.wait()
    try:
        for process in started:
            process.wait(240)  # a busy machine starts them slowly
            close(process)
        until(lambda: not any(map(is_running, servers)), "the end of every server")
    finally:
        for left in (*servers, *holders):
            if is_running(left):
                left.kill()


INSPECTOR = os.environ.get("MCP_INSPECTOR_BINARY")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(INSPECTOR is None, reason="MCP_INSPECTOR_BINARY does not name the inspector of the protocol")
def test_the_inspector_understands_every_answer(stocked: Desk, environ: dict[str, str]) -> None:
    own = [word for name in ("ECHOD_STATE_DIR", "ECHOD_RUNTIME_DIR", "CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR")
           for word in ("-e", f"{name}={environ[name]}")]  # fmt: skip

    def inspect(*words: str) -> dict[str, Any]:
        done = subprocess.run(
            [str(INSPECTOR), "--cli", *own, *COMMAND, "--method", *words],
            cwd=stocked.project, env=environ, capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    tools = inspect("tools/list")["tools"]
    found = inspect("tools/call", "--tool-name", "echo_search", "--tool-arg", "query=herontok", "--tool-arg", "limit=1")
    wrong = inspect("tools/call", "--tool-name", "echo_search", "--tool-arg", "query= ")
    resources = inspect("resources/list")["resources"]

    assert [tool["name"] for tool in tools] == [tool.name for tool in TOOLS]
    assert json.loads(found["content"][0]["text"])["entries"][0]["tags"] == "Pattern: Bulleted heron"
    assert wrong["isError"] is True
    assert resources[0]["uri"] == "echo://memory/conf-alpha"


def test_without_the_extra_a_sentence_names_it(environ: dict[str, str], tmp_path: Path) -> None:
    blocked = tmp_path / "sitecustomize.py"
    blocked.write_text(
        "import importlib.util\nreal = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'mcp' else real(name, *rest)\n"
    )
    done = subprocess.run(
        COMMAND, env={**environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 1
    assert "uv tool install --force '.[mcp]'" in done.stderr
    assert os.linesep.join(done.stderr.splitlines()[:1]).startswith("echod: ")

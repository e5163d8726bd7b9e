"""How each program stores, finds and adds what agents learnt, by its own documentation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import echod
from echod.projects.registry import ProjectRegistry
from tests.bench.household import BenchHome, make_bench_home
from tests.bench.peers.install import Installed
from tests.bench.workspace import Workspace
from tests.support import Daemon, running_daemon

Documents = Sequence[Mapping[str, Any]]
"""What is searched: mappings with the keys id, title, body, date and layer."""

_ECHOD = str(Path(sys.executable).with_name("echod"))
_PER_ROLE = 200
_CALL_SECONDS = 120.0


class PeerError(Exception):
    """A program failed at its work. The text is what it said."""


class ToolServer:
    """A server of tools (MCP) that runs as a process, spoken to as an agent's host does."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], directory: Path) -> None:
        self.process = subprocess.Popen(
            command,
            env=dict(environ),
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._number = 0
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._ask("initialize", client)
        self._send({"method": "notifications/initialized"})

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool and return its JSON.

        Raises:
            PeerError: the tool failed, or the server ended.
        """
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        text = "".join(part.get("text", "") for part in result["content"])
        if result.get("isError"):
            raise PeerError(text[:200])
        try:
            return json.loads(text)
        except ValueError:
            return text

    def _ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            try:
                line = self._lines.get(timeout=_CALL_SECONDS)
            except Empty:
                raise PeerError(f"no answer within {_CALL_SECONDS:g} s") from None
            if not line:
                raise PeerError("the server ended")
            answer = json.loads(line)
            if answer.get("id") == self._number and "method" not in answer:
                if "error" in answer:
                    raise PeerError(str(answer["error"].get("message"))[:200])
                return answer["result"]

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise PeerError("the server ended") from error

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")


class Program(ABC):
    """A program for the memory of agents, with a home directory of its own."""

    name: str
    version: str
    search_tool: str

    def __init__(self, home: Path) -> None:
        self.home = home

    @property
    def environ(self) -> dict[str, str]:
        """The environment of its processes."""
        return {**os.environ, "HOME": str(self.home)}

    @property
    @abstractmethod
    def directory(self) -> Path:
        """The directory in which agents work."""

    @property
    @abstractmethod
    def command(self) -> Sequence[str]:
        """The server that an agent's host starts."""

    @abstractmethod
    def write(self, documents: Documents) -> None:
        """Put documents where the program expects them, without indexing."""

    @abstractmethod
    def index(self) -> None:
        """Make what was written searchable."""

    @abstractmethod
    def query(self, words: str) -> dict[str, Any]:
        """The arguments of a search."""

    @abstractmethod
    def found(self, answer: Any) -> Sequence[str]:
        """The ids of the documents in an answer, best first."""

    @abstractmethod
    def add(self, writer: Writer, title: str, text: str) -> None:
        """Add an entry. When this returns, the program has acknowledged it."""

    @abstractmethod
    def stored(self) -> str:
        """All text that is stored now."""

    def search_command(self, words: str) -> Sequence[str] | None:
        """A search as a command, or None."""
        del words
        return None

    def hook_command(self) -> Sequence[str] | None:
        """What a host runs at the start of a session, or None."""
        return None

    @contextmanager
    def service(self) -> Iterator[Daemon | None]:
        """Run the service that belongs to the program; None without one."""
        yield None

    def start(self) -> ToolServer:
        """Start a server."""
        return ToolServer(self.command, self.environ, self.directory)

    def run(self, *command: str | Path) -> str:
        """Run a command of the program that must succeed."""
        done = subprocess.run(
            command, env=self.environ, cwd=self.directory, capture_output=True, text=True, check=False, timeout=600
        )
        if done.returncode != 0:
            raise PeerError((done.stderr or done.stdout)[-200:])
        return done.stdout


class Writer:
    """One of several agents that add entries at once; can be killed, in the middle of a write as well."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None
        self.killed = False
        self._server: ToolServer | None = None

    @property
    def server(self) -> ToolServer:
        """The writer's own server, started when it is first used."""
        if self._server is None:
            self._server = self.program.start()
            self.process = self._server.process
        return self._server

    def kill(self) -> None:
        """Kill whatever process of this writer runs, with SIGKILL."""
        self.killed = True
        if self.process is not None and self.process.poll() is None:
            self.process.kill()


class Echod(Program):
    """echod: Markdown in the project, a service, a server of tools."""

    name, version, search_tool = "echod", echod.__version__, "echo_search"

    def __init__(self, space: Workspace) -> None:
        self._home: BenchHome = make_bench_home(space, 0, {"ECHOD_MEMORY_LINE_LIMIT": "100000"})
        super().__init__(self._home.root)
        self._project = space.directory("project")
        (self._project / ".rune/echoes/reviewer").mkdir(parents=True)
        ProjectRegistry(self._home.state / "projects").add(self._project)
        self._places: dict[str, tuple[list[int], list[str]]] = {}

    @property
    def environ(self) -> dict[str, str]:
        """That of a user's machine."""
        return self._home.environ

    @property
    def directory(self) -> Path:
        """The project."""
        return self._project

    @property
    def command(self) -> Sequence[str]:
        """The server of tools."""
        return (_ECHOD, "mcp")

    def write(self, documents: Documents) -> None:
        """Write memory files of several roles."""
        for start in range(0, len(documents), _PER_ROLE):
            role, text = f"role{start // _PER_ROLE}", "# Memory\n"
            lines, ids = [], []
            for document in documents[start : start + _PER_ROLE]:
                body = re.sub(r"^#", r"\\#", document["body"], flags=re.MULTILINE)
                text += "\n"
                lines.append(text.count("\n") + 1)
                ids.append(document["id"])
                text += f"## Inscribed \u2014 {document['title']} ({document['date'][:10]})\n\n**Source**: `bench`\n\n{body}\n"
            directory = self._project / ".rune/echoes" / role
            directory.mkdir()
            (directory / "MEMORY.md").write_text(text)
            self._places[role] = (lines, ids)

    def index(self) -> None:
        """Search once; the first search builds the index."""
        self.run(_ECHOD, "search", "first", str(self._project))

    def query(self, words: str) -> dict[str, Any]:
        """Return the arguments of `echo_search`."""
        return {"query": words}

    def found(self, answer: Any) -> Sequence[str]:
        """Return the documents at the places that were found."""
        found = []
        for entry in answer["entries"]:
            lines, ids = self._places.get(entry["role"], ([], []))
            if lines:
                found.append(ids[max(0, bisect_right(lines, entry["line_number"]) - 1)])
        return found

    def add(self, writer: Writer, title: str, text: str) -> None:
        """Add a note by the command."""
        command = (_ECHOD, "remember", "--title", title, text)
        process = subprocess.Popen(
            command, env=self.environ, cwd=self._project, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        writer.process = process
        _, said = process.communicate()
        if process.returncode != 0:
            raise PeerError(said.decode()[-200:])

    def stored(self) -> str:
        """Return all memory files."""
        return "\n".join(file.read_text() for file in sorted(self._project.glob(".rune/echoes/*/MEMORY.md")))

    def search_command(self, words: str) -> Sequence[str]:
        """Return `echod search`."""
        return (_ECHOD, "search", *words.split(), str(self._project))

    def hook_command(self) -> Sequence[str]:
        """Return the hook of the plugin."""
        return (_ECHOD, "hook", "session-start")

    @contextmanager
    def service(self) -> Iterator[Daemon | None]:
        """Run the service."""
        with running_daemon(self._home) as running:
            yield running
            running.stop()


class BasicMemory(Program):
    """basic-memory: Markdown notes, an index beside them, a server of tools. No model, since none can be fetched."""

    search_tool = "search_notes"

    def __init__(self, installed: Installed, space: Workspace) -> None:
        super().__init__(space.directory("home"))
        self.name, self.version, self._program = installed.name, installed.version, str(installed.program)
        self._notes = space.directory("notes")
        self._ids: dict[str, str] = {}

    @property
    def environ(self) -> dict[str, str]:
        """Semantic search off and no look for updates, both by its settings."""
        return {
            **super().environ,
            "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false",
            "BASIC_MEMORY_AUTO_UPDATE": "false",
        }

    @property
    def directory(self) -> Path:
        """The notes."""
        return self._notes

    @property
    def command(self) -> Sequence[str]:
        """The server of tools."""
        return (self._program, "mcp")

    def write(self, documents: Documents) -> None:
        """Write a note for each document."""
        for number, document in enumerate(documents):
            file = f"n{number:05}.md"
            title = json.dumps(document["title"], ensure_ascii=False)
            (self._notes / file).write_text(f"---\ntitle: {title}\ntype: note\n---\n\n{document['body']}\n")
            self._ids[file] = document["id"]

    def index(self) -> None:
        """Register the directory, which indexes it."""
        self.run(self._program, "project", "add", "bench", self._notes, "--default")

    def query(self, words: str) -> dict[str, Any]:
        """Return the arguments of `search_notes`."""
        return {"query": words, "output_format": "json"}

    def found(self, answer: Any) -> Sequence[str]:
        """Return the documents of the files that were found."""
        results = answer["results"] if isinstance(answer, dict) else ()
        return list(dict.fromkeys(self._ids[one["file_path"]] for one in results if one["file_path"] in self._ids))

    def add(self, writer: Writer, title: str, text: str) -> None:
        """Write a note by the tool."""
        answer = writer.server.call("write_note", {"title": title, "content": text, "directory": "added"})
        if "Created note" not in str(answer):
            raise PeerError(str(answer)[:200])

    def stored(self) -> str:
        """Return all notes."""
        return "\n".join(file.read_text() for file in sorted(self._notes.rglob("*.md")))

    def search_command(self, words: str) -> Sequence[str]:
        """Return its search command."""
        return (self._program, "tool", "search-notes", words)

    def hook_command(self) -> Sequence[str]:
        """Return its hook."""
        return (self._program, "hook", "session-start")


class MemoryServer(Program):
    """The memory server of the protocol's authors: a graph in one file of JSON lines."""

    search_tool = "search_nodes"

    def __init__(self, installed: Installed, space: Workspace) -> None:
        super().__init__(space.directory("home"))
        self.name, self.version, self._program = "memory server", installed.version, str(installed.program)
        self._file = self.home / "memory.jsonl"
        self._documents: Documents = ()
        self._ids: dict[str, str] = {}

    @property
    def environ(self) -> dict[str, str]:
        """The file is named by a variable."""
        return {**super().environ, "MEMORY_FILE_PATH": str(self._file)}

    @property
    def directory(self) -> Path:
        """The home: it knows no project."""
        return self.home

    @property
    def command(self) -> Sequence[str]:
        """The server of tools."""
        return (self._program,)

    def write(self, documents: Documents) -> None:
        """Note the documents: only its tools write the file."""
        self._documents = documents

    def index(self) -> None:
        """Create an entity for each document, in one call."""
        entities = []
        for document in self._documents:
            name = document["title"] if document["title"] not in self._ids else f"{document['title']} {document['id']}"
            self._ids[name] = document["id"]
            entities.append({"name": name, "entityType": "lesson", "observations": [document["body"]]})
        server = self.start()
        server.call("create_entities", {"entities": entities})
        server.process.kill()
        server.process.wait()

    def query(self, words: str) -> dict[str, Any]:
        """Return the arguments of `search_nodes`."""
        return {"query": words}

    def found(self, answer: Any) -> Sequence[str]:
        """Return the documents of the entities."""
        return [self._ids[entity["name"]] for entity in answer["entities"] if entity["name"] in self._ids]

    def add(self, writer: Writer, title: str, text: str) -> None:
        """Create an entity."""
        writer.server.call(
            "create_entities", {"entities": [{"name": title, "entityType": "lesson", "observations": [text]}]}
        )

    def stored(self) -> str:
        """Return the file."""
        return self._file.read_text()

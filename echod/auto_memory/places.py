"""Find the directories of auto memory and of subagent memory, and read them as the host does. Read only.

    {home}/projects/{slug}/memory/            auto memory of a project, shared by its worktrees
    the setting autoMemoryDirectory           another directory instead
    {home}/agent-memory/{agent}/              memory of a subagent with `memory: user`
    {project}/.claude/agent-memory/{agent}/   with `memory: project`
    {project}/.claude/agent-memory-local/{agent}/  with `memory: local`

The setting is looked up in all scopes. As measured with Claude Code 2.1.332, the first of these that has an absolute
path or one from ~ on decides: managed settings, the project's local ones, the project's, the user's.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from echod.auto_memory.changes import MAX_FILE_BYTES
from echod.errors import os_reason
from echod.files import read_regular
from echod.memory.auto_memory.checks import MemoryFinding
from echod.memory.auto_memory.notes import INDEX, MemoryDirectory, NoteFile
from echod.paths import expand_home
from echod.projects.discovery import main_worktree_path, repository_root
from echod.sessions.transcripts import project_slug

MAX_FILES: Final = 5_000
_SETTING: Final = "autoMemoryDirectory"
_MAX_DEPTH: Final = 4
AGENT_DIRECTORIES: Final = ("agent-memory", "agent-memory-local")
"""The directories in `.claude` of a project that have the memory of its agents."""

_WRITING_TOOLS: Final = frozenset({"Write", "Edit"})
_MEMORY_SCOPES: Final = {"user": "agent-memory", "project": "agent-memory", "local": "agent-memory-local"}
_MANAGED: Final = Path(
    "/Library/Application Support/ClaudeCode/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/claude-code/managed-settings.json"
)


class MemoryPlace(NamedTuple):
    """A directory of auto memory or of an agent's memory. `source` is a sentence about how it was found."""

    path: Path
    source: str
    agent: str | None = None


class FoundPlaces(NamedTuple):
    """The directories, and what is wrong about where they are: each finding with the path of its file."""

    places: tuple[MemoryPlace, ...]
    findings: tuple[tuple[Path, MemoryFinding], ...] = ()


class _Setting(NamedTuple):
    """A value of `autoMemoryDirectory`, and the settings file with it."""

    file: Path
    scope: str
    value: str

    @property
    def usable(self) -> bool:
        return expand_home(self.value).is_absolute()


def memory_project(start: Path) -> Path:
    """Return the directory whose auto memory a session in `start` uses: the root of the main working tree."""
    main = main_worktree_path(start)
    return repository_root(main) or main


def default_directory(home: Path, project: Path) -> Path:
    """Return the directory of a project's auto memory if no setting names another one."""
    return home / "projects" / project_slug(project) / "memory"


def find_places(home: Path, projects: Iterable[Path], *, only: Path | None, managed: Path = _MANAGED) -> FoundPlaces:
    """Return the directories of one project (`only`), or of all: every one below `home`, and those of `projects`.

    `home` is Claude Code's own directory.
    """
    selected = (only,) if only is not None else tuple(dict.fromkeys(projects))
    places: dict[Path, MemoryPlace] = {}
    findings: list[tuple[Path, MemoryFinding]] = []
    for project in selected:
        place, found = _project_place(home, project, managed)
        findings += found
        places.setdefault(place.path, place)
        for agent in _agent_places(project / ".claude", AGENT_DIRECTORIES):
            places.setdefault(agent.path, agent)
        findings += check_agents((project / ".claude/agents", home / "agents"), project / ".claude", home)
    if only is None:
        findings += check_agents((home / "agents",), None, home)
        for directory in _directories(home / "projects"):
            path = directory / "memory"
            places.setdefault(path, MemoryPlace(path, "the directory of a project"))
        for agent in _agent_places(home, ("agent-memory",)):
            places.setdefault(agent.path, agent)
    existing = tuple(place for place in places.values() if place.path.is_dir())
    return FoundPlaces(existing, tuple(dict.fromkeys(findings)))


def _project_place(home: Path, project: Path, managed: Path) -> tuple[MemoryPlace, list[tuple[Path, MemoryFinding]]]:
    settings = [
        _Setting(file, scope, value)
        for scope, file in (
            ("managed", managed),
            ("local", project / ".claude/settings.local.json"),
            ("project", project / ".claude/settings.json"),
            ("user", home / "settings.json"),
        )
        if isinstance(value := _read_settings(file).get(_SETTING), str) and value
    ]
    findings = []
    for setting in settings:
        if not setting.usable:
            text = f"{_SETTING} is {setting.value!r}, which the host ignores, because it is not absolute."
            fix = "Write the path from / or ~ on."
            findings.append((setting.file, MemoryFinding("auto-directory-ignored", setting.file.name, None, text, fix)))
    usable = [setting for setting in settings if setting.usable]
    for setting in usable[1:]:
        text = f"{_SETTING} has no effect here: the {usable[0].scope} settings decide, in {usable[0].file}."
        findings.append(
            (setting.file, MemoryFinding("auto-directory-overridden", setting.file.name, None, text, "Remove it."))
        )
    if not usable:
        return MemoryPlace(default_directory(home, project), f"the default directory of {project}"), findings
    winner = usable[0]
    if winner.scope == "project":
        text = f"The project's settings send auto memory to {winner.value}, so all who can change them can redirect it."
        fix = "Move the setting to .claude/settings.local.json or to your own settings."
        findings.append((winner.file, MemoryFinding("auto-directory-project", winner.file.name, None, text, fix)))
    return MemoryPlace(expand_home(winner.value), f"chosen by the {winner.scope} settings, {winner.file}"), findings


def _read_settings(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(read_regular(file, MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def is_disabled(home: Path, environ: Mapping[str, str]) -> str | None:
    """Return what turns auto memory off for the user, as half a sentence; None if nothing does."""
    if environ.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "") not in ("", "0", "false"):
        return "the variable CLAUDE_CODE_DISABLE_AUTO_MEMORY"
    disabled = _read_settings(home / "settings.json").get("autoMemoryEnabled") is False
    return f"autoMemoryEnabled in {home / 'settings.json'}" if disabled else None


def _agent_places(base: Path, names: Iterable[str]) -> Iterator[MemoryPlace]:
    for name in names:
        for directory in _directories(base / name):
            yield MemoryPlace(directory, f"the memory of the subagent {directory.name}", directory.name)


def _directories(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def check_agents(definitions: Iterable[Path], project: Path | None, home: Path) -> Iterator[tuple[Path, MemoryFinding]]:
    """Yield what is wrong with agents that have a memory. `project` is the project's `.claude`, `home` the user's."""
    for file in (file for directory in definitions for file in sorted(directory.glob("**/*.md"))):
        try:
            agent = NoteFile(file.name, read_regular(file, MAX_FILE_BYTES), 0.0)
        except OSError:
            continue
        scope = agent.value("memory")
        if not scope:
            continue
        line = next((field.line for field in agent.written_fields if field.name == "memory"), 1)
        if scope not in _MEMORY_SCOPES:
            text = f"memory: {scope!r} is no scope, so the agent has no memory."
            yield file, MemoryFinding("auto-agent-scope", file.name, line, text, "Use user, project or local.")
            continue
        tools, denied = _tool_names(agent, "tools"), _tool_names(agent, "disallowedTools") or frozenset()
        writing = _WRITING_TOOLS if tools is None or "*" in tools else tools & _WRITING_TOOLS
        if not writing - denied or "*" in denied:
            base = home if scope == "user" or project is None else project
            text = f"The agent has a memory in {base / _MEMORY_SCOPES[scope] / agent.title}, and no tool to write it."
            fix = "Add Write and Edit to its tools, or remove the line memory:."
            yield file, MemoryFinding("auto-agent-unwritable", file.name, line, text, fix)


def _tool_names(agent: NoteFile, name: str) -> frozenset[str] | None:
    """Return the tools that a definition lists, without their arguments; None if it has no such list."""
    value = (agent.fields or {}).get(name)
    if value is None:
        return None
    words = value if isinstance(value, list) else str(value).split(",")
    return frozenset(str(word).partition("(")[0].strip() for word in words)


def read_directory(path: Path) -> MemoryDirectory:
    """Read a directory of memory. Hidden files and directories with an index of their own are passed over.

    Raises:
        OSError: the directory cannot be listed, which does not mean that it is empty.
    """
    index: NoteFile | None = None
    notes: list[NoteFile] = []
    others: list[str] = []
    unreadable: list[tuple[str, str]] = []
    for name, status in iter_files(path):
        if not stat.S_ISREG(status.st_mode):
            unreadable.append((name, "it is not a regular file (a symbolic link?)"))
            continue
        if not name.endswith(".md"):
            others.append(name)
            continue
        try:
            note = NoteFile(name, read_regular(path / name, MAX_FILE_BYTES, follow_symlinks=False), status.st_mtime)
        except OSError as error:
            unreadable.append((name, os_reason(error)))
            continue
        if name == INDEX:
            index = note
        else:
            notes.append(note)
    return MemoryDirectory(index, tuple(notes), tuple(others), tuple(unreadable), _missing_paths(notes))


def _missing_paths(notes: Iterable[NoteFile]) -> frozenset[str]:
    """Return the paths in the notes that do not exist. If the directory above is missing too, it may be elsewhere."""
    named = dict.fromkeys(path for note in notes for _, path in note.named_paths())
    return frozenset(path for path in islice(named, MAX_FILES) if _is_missing(expand_home(path)))


def _is_missing(path: Path) -> bool:
    try:
        return not os.path.lexists(path) and path.parent.is_dir()
    except (OSError, ValueError):
        return False


def iter_files(path: Path) -> list[tuple[str, os.stat_result]]:
    """Return the files of a memory, in order of their names relative to it, at most `MAX_FILES`.

    Raises:
        OSError: the directory cannot be listed.
    """
    return sorted(_walk(path, "", 0), key=lambda item: item[0])[:MAX_FILES]


def _walk(path: Path, prefix: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(path) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    if depth and any(entry.name == INDEX for entry in entries):
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < _MAX_DEPTH:
                yield from _walk(path / entry.name, f"{prefix}{entry.name}/", depth + 1)
            continue
        try:
            yield f"{prefix}{entry.name}", entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # deleted just now

"""Keep a summary of each project's memory ready for the hook that starts a session, if the user enabled that.

The hook has only milliseconds, so it prints a file (`echod.hooks.summary`). This module writes that file when the
memory changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from echod.files import FileVersion, read_regular, regular_file_version, write_runtime_file
from echod.hooks.summary import SUMMARY_DIRECTORY, summary_name
from echod.isolation import isolated
from echod.log import get_logger
from echod.memory.model import MAX_FILE_BYTES
from echod.memory.session_summary import summarize_memories
from echod.paths import PRIVATE_DIR_MODE
from echod.store import layout
from echod.store.layout import Role, Store

log = get_logger(__name__)


class SessionSummaries:
    """The summaries in the state directory. Unless `enabled`, those from earlier are removed. Owned by one thread."""

    def __init__(self, state: Path, *, enabled: bool) -> None:
        self._directory = state / SUMMARY_DIRECTORY
        self._enabled = enabled
        self._versions: dict[Path, dict[Role, FileVersion]] = {}

    def update(self, stores: Iterable[Store]) -> None:
        """Write the summaries of the projects of these stores again, where a memory file has changed."""
        if not self._enabled:
            return
        for project in dict.fromkeys(store.project for store in stores):
            with isolated(str(project)):
                self._update_project(project)

    def remove_stale(self, projects: Iterable[Path]) -> None:
        """Remove the summaries of all projects except these."""
        current_names = {summary_name(str(project)) for project in projects} if self._enabled else set()
        try:
            for file in self._directory.iterdir():
                if file.name not in current_names:
                    file.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("stale_summaries_not_removed", error=error.strerror)

    def _update_project(self, project: Path) -> None:
        name = summary_name(str(project))
        roles = [role for store in layout.find_stores(project) for role in layout.find_roles(store)]
        found = {role: regular_file_version(role.memory, MAX_FILE_BYTES) for role in roles}
        versions = {role: version for role, version in found.items() if version is not None}
        if name is None or self._versions.get(project) == versions:
            return
        text = summarize_memories([(role.name, read_regular(role.memory, MAX_FILE_BYTES)) for role in versions])
        file = self._directory / name
        if text:
            self._directory.mkdir(mode=PRIVATE_DIR_MODE, exist_ok=True)
            output = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
            write_runtime_file(file, json.dumps(output, ensure_ascii=False))
        else:
            file.unlink(missing_ok=True)
        self._versions[project] = versions

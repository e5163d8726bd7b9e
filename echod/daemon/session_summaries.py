"""Keeps a summary of each project's memory ready for the hook that starts a session; only where the person wants it.

The hook has milliseconds, so it prints a file (see `echod.hooks.summary`); this writes it when the memory changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from echod.files import leave, read_plain
from echod.hooks.summary import DIRECTORY, name_for
from echod.log import get_logger
from echod.memory.model import SIZE_LIMIT
from echod.memory.session_summary import summarise
from echod.paths import PRIVATE_DIR
from echod.store import layout
from echod.store.layout import Role, Store

log = get_logger(__name__)

_Stamp = tuple[tuple[str, int, int, int], ...]


class Summaries:
    """The summaries below the state directory; owned by one thread.

    Args:
        state: the state directory.
        wanted: whether there shall be any; if not, those of an earlier time are removed.
    """

    def __init__(self, state: Path, *, wanted: bool) -> None:
        self._directory = state / DIRECTORY
        self._wanted = wanted
        self._stamps: dict[Path, _Stamp] = {}

    def renew(self, stores: Iterable[Store]) -> None:
        """Write the summaries of the projects of these stores again, where a memory file has changed."""
        if not self._wanted:
            return
        for project in dict.fromkeys(store.project for store in stores):
            try:
                self._renew(project)
            except OSError as error:
                log.warning("summary_not_kept", project=str(project), error=error.strerror)

    def tidy(self, projects: Iterable[Path]) -> None:
        """Remove the summaries of all but these projects."""
        kept = {name_for(str(project)) for project in projects} if self._wanted else set()
        try:
            for file in self._directory.iterdir():
                if file.name not in kept:
                    file.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("summaries_not_tidied", error=error.strerror)

    def _renew(self, project: Path) -> None:
        name = name_for(str(project))
        roles = [role for store in layout.stores_of(project) for role in layout.roles_of(store)]
        stamp = tuple(found for role in roles if (found := _stamp(role)) is not None)
        if name is None or self._stamps.get(project) == stamp:
            return
        memories = [(role.name, read_plain(role.memory, SIZE_LIMIT)) for role in roles if _stamp(role) is not None]
        text = summarise(memories)
        file = self._directory / name
        if text:
            self._directory.mkdir(mode=PRIVATE_DIR, exist_ok=True)
            said = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
            leave(file, json.dumps(said, ensure_ascii=False))
        else:
            file.unlink(missing_ok=True)
        self._stamps[project] = stamp


def _stamp(role: Role) -> tuple[str, int, int, int] | None:
    """Which content a role's memory file has; None where there is none that is read."""
    if role.memory.is_symlink() or not role.memory.is_file():
        return None
    status = role.memory.stat()
    found = (str(role.memory), status.st_ino, status.st_size, status.st_mtime_ns)
    return found if status.st_size <= SIZE_LIMIT else None

"""Which projects have their conversations archived, and where: nothing before the user asks for it.

The user switches it on for all registered projects (`sessions.enabled`) or for one (`echod init --sessions`). A project
may only opt out, or ask for a directory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from echod.errors import ConfigurationError
from echod.paths import Paths
from echod.projects.registry import LineFile
from echod.projects.settings import ProjectSettings
from echod.sessions.roots import SessionRoot, project_root_for
from echod.settings.values import SessionSettings


class SessionChoice(NamedTuple):
    """Whether the conversations of a project are archived. `reason` is why not, as half a sentence."""

    enabled: bool
    reason: str = ""


class SessionProjects:
    """The choice of each project, and its directory of archives. Nothing is cached."""

    def __init__(
        self, paths: Paths, settings: SessionSettings, project_settings: Callable[[Path], ProjectSettings]
    ) -> None:
        self._settings = settings
        self._project_settings = project_settings
        self._file = LineFile(paths.session_projects)
        self._base = _base_directory(paths, settings)

    def choice(self, project: Path) -> SessionChoice:
        """Return whether the conversations of a project are archived."""
        if not self._settings.enabled and str(project) not in self._file.read():
            return SessionChoice(
                enabled=False,
                reason=f"it is switched off; switch it on with: echod init --sessions {project}",
            )
        if not self._project_settings(project).sessions:
            return SessionChoice(enabled=False, reason="the project's own settings contain sessions: false")
        return SessionChoice(enabled=True)

    def enabled(self, projects: Iterable[Path]) -> tuple[Path, ...]:
        """Return those of these projects whose conversations are archived."""
        chosen = set() if self._settings.enabled else set(self._file.read())
        if not self._settings.enabled and not chosen:
            return ()
        return tuple(
            project
            for project in projects
            if (self._settings.enabled or str(project) in chosen) and self._project_settings(project).sessions
        )

    def root(self, project: Path) -> SessionRoot:
        """Return the directory of a project's archives, which need not exist."""
        return project_root_for(self._base, project, in_project=self._project_settings(project).sessions_in_project)

    def roots(self, project: Path) -> tuple[SessionRoot, ...]:
        """Return every directory that a project's archives may be in."""
        return tuple(project_root_for(self._base, project, in_project=below) for below in (False, True))

    def switch_on(self, project: Path) -> bool:
        """Archive the conversations of a project from now on. Returns false if that was so already."""
        with self._file.edit() as lines:
            if str(project) in lines:
                return False
            lines.append(str(project))
            return True

    def switch_off(self, project: Path) -> bool:
        """Stop archiving the conversations of a project. Returns false if it was not switched on."""
        with self._file.edit() as lines:
            if str(project) not in lines:
                return False
            lines.remove(str(project))
            return True


def _base_directory(paths: Paths, settings: SessionSettings) -> Path:
    if not settings.root:
        return paths.sessions
    base = Path(settings.root).expanduser()
    if not base.is_absolute():
        raise ConfigurationError(f"sessions.root must be an absolute path, not {settings.root!r}; change or remove it.")
    return base

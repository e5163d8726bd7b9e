"""The conversations in the status: what waits to be archived, what the host deletes soon, and a MEMORY.md that is full.

Costs nothing unless the user has switched archiving on for a project.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from echod.app.context import ReadContext
from echod.clock import local_date
from echod.contract.status import SessionsInfo, Severity, StatusWarning
from echod.errors import EchodError
from echod.memory.conversation.distill import analyse_memory, pressure_of
from echod.sessions.roots import CURATED, EXPIRY_WARNING_DAYS, SessionError, SessionRoot

REFRESH_SECONDS: Final = 60.0
"""The transcripts of a busy project change all the time, and this is no list of them."""


class SessionStatus:
    """The conversations of all projects. Looks at the disk at most once a minute. Used by one thread."""

    def __init__(self, read_context: ReadContext) -> None:
        self._read_context = read_context
        self._looked_at: float | None = None
        self._projects: tuple[Path, ...] = ()
        self.infos: tuple[SessionsInfo, ...] = ()
        self._problems: tuple[str, ...] = ()

    def refresh(self, projects: Iterable[Path], now: float) -> None:
        """Look again at the conversations of these projects, unless that was done a moment ago."""
        selected = tuple(projects)
        is_fresh = self._looked_at is not None and 0 <= now - self._looked_at < REFRESH_SECONDS
        if is_fresh and selected == self._projects:
            return
        self._looked_at, self._projects = now, selected
        problems: list[str] = []
        try:
            enabled = self._read_context.session_projects.enabled(selected)
        except EchodError as error:
            self.infos, self._problems = (), (str(error),)
            return
        self.infos = tuple(self._inspect(project, now, problems) for project in enabled)
        self._problems = tuple(problems)

    def _inspect(self, project: Path, now: float, problems: list[str]) -> SessionsInfo:
        context = self._read_context
        root, host = context.session_projects.root(project), None
        archives, share = 0, 0.0
        try:
            host = context.host_state(project, now)
            archives = len(root.archives())
            share = _memory_share(root, now)
        except SessionError as error:
            problems.append(str(error))
        return SessionsInfo(
            project=str(project),
            root=str(root.entity),
            archives=archives,
            waiting=0 if host is None else len(host.waiting),
            expiring=0 if host is None else host.expiring(now),
            host_days=context.host_days,
            memory_percent=int(share * 100),
            pressure=pressure_of(share),
        )

    def warnings(self, now: float) -> Iterator[StatusWarning]:
        """Yield what needs the user."""
        for problem in self._problems:
            yield StatusWarning("sessions-unreadable", Severity.WARNING, now, problem, "")
        for info in self.infos:
            at = shlex.quote(info.project)
            if info.expiring:
                are = "session is" if info.expiring == 1 else "sessions are"
                text = (
                    f"{info.expiring} {are} not archived and within {EXPIRY_WARNING_DAYS} days of deletion in "
                    f"{info.project}: Claude Code keeps transcripts for {info.host_days} days."
                )
                fix = f"Archive now: cd {at} && echod sessions archive"
                yield StatusWarning("sessions-expiring", Severity.WARNING, now, text, fix)
            if info.pressure != "none":
                severity = Severity.NOTICE if info.pressure == "notice" else Severity.WARNING
                text = (
                    f"{info.root}/memory/MEMORY.md is {info.memory_percent} % full. The host loads no more than that."
                )
                fix = f"Show what can be moved or removed: cd {at} && echod sessions distill"
                yield StatusWarning("sessions-memory-full", severity, now, text, fix)


def _memory_share(root: SessionRoot, now: float) -> float:
    return analyse_memory(root.read_text(CURATED), local_date(now)).share

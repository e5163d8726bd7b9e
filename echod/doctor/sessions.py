"""Check the archives of conversations: who may read them, the size of MEMORY.md, the host's purge, the user's command.

There is no result where no project archives conversations.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from echod.contract.commands import Check
from echod.doctor.context import DoctorContext, command_line, note, passed, problem
from echod.errors import EchodError
from echod.paths import claude_home
from echod.projects.settings import read_project_settings
from echod.sessions.projects import SessionProjects
from echod.sessions.roots import SessionError, SessionRoot
from echod.sessions.transcripts import host_retention_days

_OTHERS_MASK = 0o077
_MIN_HOST_DAYS = 7


def check_sessions(context: DoctorContext, projects: Iterable[Path]) -> Iterator[Check]:
    """Check the conversations of these projects."""
    try:
        sessions = SessionProjects(
            context.paths, context.settings.sessions, lambda project: read_project_settings(project).settings
        )
        enabled = sessions.enabled(projects)
    except EchodError as error:
        yield problem("sessions", str(error), "Correct it. Until then no conversation is archived.")
        return
    for project in enabled:
        yield from _check_root(project, sessions.root(project))
    if not enabled:
        return
    days = host_retention_days(claude_home(context.environ))
    if days < _MIN_HOST_DAYS:
        text = f"Claude Code deletes transcripts after {days} days (cleanupPeriodDays)."
        yield note("sessions-host", text, "Keep the service running, so that nothing is deleted before it is archived.")
    command = context.settings.sessions.summary_command
    if command and shutil.which(command[0], path=context.environ.get("PATH", "")) is None:
        text = f"The command for summaries, {command[0]}, is not found. Summaries are extracted instead."
        yield problem("sessions-summaries", text, "Correct sessions.summary_command in the settings.")


def _check_root(project: Path, root: SessionRoot) -> Iterator[Check]:
    if not root.exists:
        text = f"Conversations of {project} are archived, but {root.memory} does not exist yet."
        yield note("sessions-root", text, "It is made with the first archive.", project)
        return
    try:
        root.require()
        number = len(root.archives())
        mode = stat.S_IMODE(root.memory.stat().st_mode)
    except (SessionError, OSError) as error:
        yield problem("sessions-root", str(error), "Check the directory.", root.memory)
        return
    if mode & _OTHERS_MASK:
        fix = command_line("chmod", "700", root.memory)
        yield problem(
            "sessions-private", "Other users can read the archived conversations.", f"Run: {fix}", root.memory
        )
        return
    config = root.config()
    if config.problem:
        yield problem("sessions-config", f"{config.problem}.", f"{config.entries} summaries are kept.", root.memory)
    yield passed("sessions-root", f"Conversations are archived: {number} so far.", root.memory)

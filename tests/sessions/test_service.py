"""The real service archives sessions that end while it runs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.sessions.generator import TranscriptMaker
from tests.support import Home, running_daemon, until


@pytest.mark.slow
def test_the_service_archives_a_session_that_ends(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    project = home.root / "project"
    project.mkdir(parents=True)
    home.run("init", project, "--sessions", "--roles", "reviewer")
    maker = TranscriptMaker(1, str(project.resolve()))
    maker.prompt()
    maker.answer()
    path = maker.made.write(home.root / "claude/projects/-slug")
    archive = home.state / "data/sessions"
    with running_daemon(home) as daemon:
        event = json.dumps({"session_id": maker.made.session, "cwd": str(project), "transcript_path": str(path)})
        hook = home.echod("hook", "session-end", before=("sh", "-c", f"printf '%s' '{event}' | exec \"$@\"", "sh"))
        assert (hook.returncode, hook.stdout) == (0, "")

        until(lambda: list(archive.glob("*/memory/conversations/conversation-001.md")), "the archive")

        maker.prompt()
        maker.made.write(path.parent)
        old = time.time() - 3_600
        os.utime(path, (old, old))
        home.run("run", "--once", project)
        (file,) = archive.glob("*/memory/conversations/*.md")
        assert maker.made.prompts[1] in file.read_text()
        assert daemon.process.poll() is None

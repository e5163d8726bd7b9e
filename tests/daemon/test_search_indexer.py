"""The service keeps the search index up to date."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from tests.search.conftest import entry
from tests.support import NO_PRUNING, Home, finding_text, make_project, running_daemon, until


def titles(home: Home) -> set[str]:
    """Return the titles in the index, as another program reads it."""
    try:
        with sqlite3.connect(f"file:{home.state / 'search.db'}?mode=ro", uri=True) as connection:
            rows = connection.execute("SELECT title FROM document").fetchall()
    except sqlite3.Error:
        return set()
    finally:
        connection.close()
    return {title for (title,) in rows}


def test_the_service_indexes_what_is_there_what_is_written_and_what_it_commits(tmp_path: Path) -> None:
    root = tmp_path / "home"
    root.mkdir()
    home = Home(root, NO_PRUNING)
    project = make_project(tmp_path / "project")
    memory = project / ".rune/echoes/reviewer/MEMORY.md"
    memory.write_text(entry("Present", "from the beginning"))
    home.run("add", project)

    with running_daemon(home):
        until(lambda: "Present" in titles(home), "the entry that was there")
        memory.write_text(memory.read_text() + entry("Written", "by an agent"))
        until(lambda: "Written" in titles(home), "the entry that an agent wrote")
        (project / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Committed"))
        until(lambda: "Pattern: Committed" in titles(home), "the entry that the service committed")
        shutil.rmtree(project)
        until(lambda: not titles(home), "the end of a project that is gone", 60)

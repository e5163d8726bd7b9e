"""The service keeps the search index up to date."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from echod.daemon.upkeep import SearchIndexer
from echod.search.finder import DocumentFinder
from echod.search.sources import MemorySource
from echod.store.layout import find_stores
from tests.search.conftest import entry
from tests.support import NO_PRUNING, Home, finding_text, make_project, running_daemon, until


def titles(home: Home) -> set[str]:
    return documents(home.state / "search.db")


def documents(index: Path) -> set[str]:
    """Return the titles in the index, as another program reads it."""
    try:
        with sqlite3.connect(f"file:{index}?mode=ro", uri=True) as connection:
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


def test_the_index_is_closed_without_work_and_opened_again_for_more(tmp_path: Path) -> None:
    memory = make_project(tmp_path / "project") / ".rune/echoes/reviewer/MEMORY.md"
    memory.write_text(entry("First", "text"))
    (store,) = find_stores(tmp_path / "project")
    index = tmp_path / "search.db"
    log = tmp_path / "search.db-wal"  # exists as long as a connection is open

    with SearchIndexer(
        DocumentFinder(index), sources_of=lambda found: [MemorySource(found)], shared_sources=list, close_seconds=0.2
    ) as indexer:
        indexer.request([store])
        until(lambda: index.exists() and index.stat().st_size > 0 and not log.exists(), "the end of the connection")
        assert "First" in documents(index)
        memory.write_text(memory.read_text() + entry("Second", "text"))
        indexer.request([store])
        until(lambda: "Second" in documents(index), "the entry that was written later")

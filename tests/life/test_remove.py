"""A removed project is not maintained, and a purged one is forgotten. Its memory stays in both cases."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from echod.store.layout import MEMORY
from tests.support import Home, finding_text, make_project, running_daemon, until

COPY = "../.echod/.MEMORY.md.echod-*"


def make_maintained_project(home: Home, root: Path) -> Path:
    """Create a registered project with consolidated findings. Return its role."""
    make_project(root)
    role = root / ".rune/echoes/reviewer"
    (role / MEMORY).write_text("# Reviewer Memory\n")
    (role / "ward-findings.md").write_text(finding_text("Timeouts are missing"))
    home.run("add", root)
    assert "1 added" in home.run("run", "--once", root)
    return role


def file_contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def spool_event(home: Home, directory: Path, name: str) -> None:
    """Write an event to the spool as a hook does."""
    spool = home.state / "spool"
    text = json.dumps({"cwd": str(directory), "hook_event_name": "TaskCompleted"})
    (spool / f"{time.time_ns():020d}-{len(text):07x}-{os.getpid()}.{name}.json").write_text(text)


def test_queued_jobs_are_not_run_any_more(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    home.run("add", root)
    home.run("pause", root)
    home.run("run", "--once", root)
    assert home.json("jobs")["jobs"][0]["state"] == "deferred"

    said = home.run("remove", root / ".rune/echoes")

    assert "not maintained any more" in " ".join(said.split())
    assert home.json("projects")["projects"] == []
    (job,) = home.json("jobs")["jobs"]
    assert job["state"] == "done"
    assert "not maintained" in job["result"]


def test_a_project_of_the_settings_is_reported_to_stay(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "src" / "p")
    home.run("add", root)

    result = home.echod("remove", root, ECHOD_PROJECTS=json.dumps([str(tmp_path / "src/*")]))

    assert "matches it" in " ".join(result.stdout.split())


def test_a_purge_lists_the_data_to_delete_and_asks(home: Home, tmp_path: Path) -> None:
    root = tmp_path / "p"
    make_maintained_project(home, root)
    spool_event(home, root / "sub", "stop")
    before, rows = file_contents(tmp_path / "p"), home.json("jobs")

    plan = home.run("remove", root, "--purge", "--dry-run")
    refused = home.echod("remove", root, "--purge")

    assert "1 change can no longer be listed or undone" in plan
    assert "1 unread hook event" in plan
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert home.json("jobs") == rows
    assert file_contents(root) == before
    assert len(home.json("projects")["projects"]) == 1


def test_a_purge_keeps_the_memory_and_deletes_all_of_echods_data(home: Home, tmp_path: Path) -> None:
    root, other = tmp_path / "p", tmp_path / "other"
    role = make_maintained_project(home, root)
    make_maintained_project(home, other)
    spool_event(home, root, "stop")
    memory = (role / MEMORY).read_bytes()
    assert list(role.glob(COPY)), "the replaced file is still followed"

    home.run("remove", root, "--purge", "--yes")

    assert (role / MEMORY).read_bytes() == memory
    assert [path.name for path in role.rglob(".*")] == []
    mine = str(root).encode()
    left = [name for name, data in file_contents(home.state).items() if mine in data and not name.startswith("log/")]
    assert [name for name in left if not name.startswith("echod.db")] == []
    assert {job["store"] for job in home.json("jobs")["jobs"]} == {str(other / ".rune/echoes")}
    assert {job["store"] for job in home.json("log")["jobs"]} == {str(other / ".rune/echoes")}
    assert list((home.state / "spool").glob("*.json")) == []
    again = home.echod("remove", root, "--purge", "--yes")
    assert again.returncode == 0
    assert "is not registered, and echod has no data about it" in " ".join(again.stdout.split())


def test_a_removed_project_contains_no_file_of_echods_own(home: Home, tmp_path: Path) -> None:
    role = make_maintained_project(home, tmp_path / "p")
    assert list(role.glob(COPY))

    home.run("remove", tmp_path / "p")

    assert not (role / "../.echod").exists()
    assert "Timeouts are missing" in (role / MEMORY).read_text()
    assert len(home.json("log")["jobs"]) == 1


def test_removing_names_a_replaced_file_that_is_still_open(home: Home, tmp_path: Path) -> None:
    role = make_maintained_project(home, tmp_path / "p")
    (replaced,) = role.glob(COPY)

    with replaced.open("ab"):
        result = home.echod("remove", tmp_path / "p")

    assert result.returncode == 0
    assert ".echod-" in result.stderr
    assert replaced.exists()


def test_a_program_that_may_still_write_keeps_a_project_from_being_forgotten(home: Home, tmp_path: Path) -> None:
    root = tmp_path / "p"
    role = make_maintained_project(home, root)
    (replaced,) = role.glob(COPY)

    with replaced.open("ab"):
        refused = home.echod("remove", root, "--purge", "--yes")

    assert refused.returncode == 1
    assert "still open in another program" in refused.stderr
    assert len(home.json("projects")["projects"]) == 1
    assert len(home.json("log")["jobs"]) == 1
    assert "its data is deleted" in home.run("remove", root, "--purge", "--yes")


def test_a_running_service_starts_from_scratch_with_a_purged_project(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    home.run("add", root)
    with running_daemon(home):
        for _ in range(2):
            (role / MEMORY).write_text("# Reviewer Memory\n")
            (role / "ward-findings.md").write_text(finding_text("Timeouts are missing"))
            home.run("add", root)
            until(lambda: "Timeouts are missing" in (role / MEMORY).read_text(), "the finding to be folded in")
            until(lambda: len(home.json("log")["jobs"]) == 1, "the change to be listed")
            home.run("remove", root, "--purge", "--yes")
            assert home.json("log")["jobs"] == []


def test_a_project_that_is_not_registered_needs_no_removal(home: Home, tmp_path: Path) -> None:
    assert "is not registered" in " ".join(home.run("remove", make_project(tmp_path / "p")).split())


def test_a_path_that_was_never_known_is_refused(home: Home, tmp_path: Path) -> None:
    # A directory that exists is as the user wants it. A path to nothing is probably mistyped.
    result = home.echod("remove", tmp_path / "p")

    assert result.returncode == 2
    assert "is not registered" in " ".join((result.stdout + result.stderr).split())

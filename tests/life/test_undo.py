"""`echod undo`, `echod log`, `echod review`: the user undoes a job, and it stays undone."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import Home, finding_text, make_project, running_daemon, until

pytestmark = pytest.mark.slow

TIMEOUTS = finding_text("Timeouts are missing")
CENTS = finding_text("Money is in cents")
EARLIER = "# Reviewer Memory\n\n" + finding_text("Names are plural")


def visible_files(root: Path) -> dict[str, bytes]:
    """Return the files that agents see: everything but archives and hidden files."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*.md"))
        if "archive" not in path.parts and not path.name.startswith(".")
    }


def role_directory(root: Path) -> Path:
    return root / ".rune/echoes/reviewer"


@pytest.fixture
def root(home: Home, tmp_path: Path) -> Path:
    """Create a project with a memory, and with findings that job 1 consolidated."""
    made = make_project(tmp_path / "p")
    (role_directory(made) / "MEMORY.md").write_text(EARLIER)
    (role_directory(made) / "ward-findings.md").write_text(TIMEOUTS)
    home.run("run", "--once", made)
    return made


def test_undo_restores_the_exact_bytes(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (role_directory(root) / "MEMORY.md").write_bytes(EARLIER.replace("\n", "\r\n").encode())
    (role_directory(root) / "ward-findings.md").write_text(TIMEOUTS)
    before = visible_files(root)
    home.run("run", "--once", root)
    assert visible_files(root) != before

    said = home.run("undo", 1, "--yes")

    assert visible_files(root) == before
    assert "ward-findings.md" in said
    assert "Timeouts are missing" in said


def test_undo_of_the_first_consolidation_removes_the_memory_file(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (role_directory(root) / "ward-findings.md").write_text(TIMEOUTS)
    before = visible_files(root)
    home.run("run", "--once", root)

    home.run("undo", 1, "--yes")
    home.run("run", "--once", root)

    assert visible_files(root) == before


def test_undone_findings_are_not_consolidated_again_and_wait_for_the_user(home: Home, root: Path) -> None:
    home.run("undo", 1, "--yes")
    before = visible_files(root)

    for _ in range(2):
        said = home.run("run", "--once", root)

        assert visible_files(root) == before
        assert "for you reviewer" in said
        assert "ward-findings.md" in said
        assert "Nothing is left" not in said
    home.run("add", root)
    (waiting,) = [w for w in home.json("status")["warnings"] if w["code"] == "findings-restored"]
    assert waiting["fix"].endswith("echod undo 2")
    (item,) = home.json("review", root)["items"]
    assert (item["kind"], item["role"]) == ("undone", "reviewer")


def test_findings_that_changed_since_are_consolidated(home: Home, root: Path) -> None:
    home.run("undo", 1, "--yes")
    with (role_directory(root) / "ward-findings.md").open("a") as file:
        file.write("\n" + CENTS)

    home.run("run", "--once", root)

    memory = (role_directory(root) / "MEMORY.md").read_text()
    assert "Timeouts are missing" in memory
    assert "Money is in cents" in memory
    assert not (role_directory(root) / "ward-findings.md").exists()


def test_other_findings_are_consolidated_and_the_restored_ones_stay(home: Home, root: Path) -> None:
    home.run("undo", 1, "--yes")
    (role_directory(root) / "seer-findings.md").write_text(CENTS)

    home.run("run", "--once", root)

    memory = (role_directory(root) / "MEMORY.md").read_text()
    assert "Money is in cents" in memory
    assert "Timeouts are missing" not in memory
    assert [path.name for path in role_directory(root).glob("*-findings.md")] == ["ward-findings.md"]


def test_an_undo_is_undone_by_its_number(home: Home, root: Path) -> None:
    after = visible_files(root)
    home.run("undo", 1, "--yes")

    home.run("undo", 2, "--yes")

    assert visible_files(root) == after
    assert "Nothing is left to do" in home.run("run", "--once", root)
    assert home.json("review", root)["items"] == []


def test_later_writes_of_other_programs_stay(home: Home, root: Path) -> None:
    with (role_directory(root) / "MEMORY.md").open("a") as file:
        file.write("\n" + CENTS)

    said = home.run("undo", "--last", root, "--yes")

    memory = (role_directory(root) / "MEMORY.md").read_text()
    assert "Money is in cents" in memory
    assert "Names are plural" in memory
    assert "Timeouts are missing" not in memory
    assert "Changes by other programs stay" in said
    assert "Timeouts are missing" in (next((role_directory(root) / "archive/findings").iterdir())).read_text()


def test_dry_run_lists_the_restored_files_and_changes_nothing(home: Home, root: Path) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    jobs = home.json("jobs")

    said = home.run("undo", 1, "--dry-run")

    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    assert home.json("jobs") == jobs
    assert "restore the file   reviewer/ward-findings.md" in said
    assert "remove the entry   Timeouts are missing" in said
    assert "Names are plural" not in said


def test_without_a_terminal_a_question_is_a_refusal(home: Home, root: Path) -> None:
    before = visible_files(root)

    result = home.echod("undo", 1)

    assert result.returncode == 2
    assert "--yes" in result.stderr
    assert visible_files(root) == before


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 1)])
def test_at_a_terminal_the_user_is_asked(home: Home, root: Path, answer: str, code: int) -> None:
    before = visible_files(root)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "echod", "undo", "1"],
        env=home.environ,
        cwd=home.root,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        close_fds=True,
    ) as process:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        assert process.wait(30) == code
    os.close(ours)

    assert (visible_files(root) == before) == (code != 0)


def test_last_is_the_newest_job_that_was_not_undone_and_is_no_undo(home: Home, root: Path) -> None:
    first = visible_files(root)
    (role_directory(root) / "seer-findings.md").write_text(CENTS)
    second = visible_files(root)
    home.run("run", "--once", root)
    assert visible_files(root) not in (first, second)

    home.run("undo", "--last", root, "--yes")
    assert visible_files(root) == second
    home.run("undo", "--last", root, "--yes")

    assert (role_directory(root) / "MEMORY.md").read_text() == EARLIER
    result = home.echod("undo", "--last", root, "--yes")
    assert result.returncode == 2
    assert "echod log" in result.stderr


def test_last_is_limited_to_the_named_project(home: Home, root: Path, tmp_path: Path) -> None:
    other = make_project(tmp_path / "q")
    (role_directory(other) / "seer-findings.md").write_text(CENTS)
    home.run("run", "--once", other)
    there = visible_files(other)

    home.run("undo", "--last", root, "--yes")

    assert visible_files(other) == there
    assert (role_directory(root) / "MEMORY.md").read_text() == EARLIER


def test_an_unknown_job_is_refused_in_a_sentence(home: Home, root: Path) -> None:
    result = home.echod("undo", 99, "--yes")

    assert result.returncode == 1
    assert "Job 99" in result.stderr
    assert home.echod("undo", "ward").returncode == 2


def test_a_job_of_another_project_is_not_undone_where_a_project_is_named(
    home: Home, root: Path, tmp_path: Path
) -> None:
    other = make_project(tmp_path / "q")

    result = home.echod("undo", 1, other, "--yes")

    assert result.returncode == 2
    assert "Job 1" in result.stderr


def test_a_job_is_undone_only_once(home: Home, root: Path) -> None:
    home.run("undo", 1, "--yes")

    result = home.echod("undo", 1, "--yes")

    assert result.returncode == 0
    assert "by job 2" in " ".join((result.stdout + result.stderr).split())


def test_a_running_workflow_stops_undo_unless_forced(home: Home, root: Path) -> None:
    home.run("workflow", "begin", "refactoring", "--project", root)
    before = visible_files(root)

    result = home.echod("undo", 1, "--yes")

    assert result.returncode == 1
    assert "refactoring" in result.stderr.replace("\n", " ")
    assert "--force" in result.stderr
    assert visible_files(root) == before
    assert len(home.json("jobs")["jobs"]) == 1
    home.run("undo", 1, "--yes", "--force")
    assert (role_directory(root) / "MEMORY.md").read_text() == EARLIER


def test_a_recent_write_does_not_stop_undo(home: Home, root: Path) -> None:
    (role_directory(root) / "MEMORY.md").touch()

    result = home.echod("undo", 1, "--yes", ECHOD_QUIET_SECONDS="600")

    assert result.returncode == 0, result.stderr
    assert (role_directory(root) / "MEMORY.md").read_text() == EARLIER


def test_in_report_mode_nothing_is_undone(home: Home, root: Path) -> None:
    before = visible_files(root)

    result = home.echod("undo", 1, "--yes", ECHOD_MODE="report")

    assert result.returncode == 1
    assert "report" in result.stderr
    assert visible_files(root) == before


def test_a_memory_that_cannot_be_read_is_not_undone(home: Home, root: Path) -> None:
    memory = role_directory(root) / "MEMORY.md"
    memory.write_bytes(memory.read_bytes() + b"\xff\n")
    before = visible_files(root)

    result = home.echod("undo", 1, "--yes")

    assert result.returncode == 1
    assert "cannot be read as memory" in " ".join(result.stderr.split())
    assert visible_files(root) == before


def test_a_running_service_continues_and_does_not_repeat_an_undone_job(home: Home, root: Path) -> None:
    home.run("add", root)
    with running_daemon(home) as running:
        (role_directory(root) / "seer-findings.md").write_text(CENTS)
        until(
            lambda: "Money is in cents" in (role_directory(root) / "MEMORY.md").read_text(), "the second consolidation"
        )
        until(lambda: home.json("jobs")["jobs"][0]["state"] == "done", "its end")

        home.run("undo", 1, "--yes")

        def told() -> bool:
            return "findings-restored" in {warning["code"] for warning in home.json("status")["warnings"]}

        until(told, "the service to say what waits")
        until(lambda: home.json("status")["queue"]["queued"] == 0, "the queue to be empty")
        memory = (role_directory(root) / "MEMORY.md").read_text()
        assert "Timeouts are missing" not in memory
        assert "Money is in cents" in memory
        assert (role_directory(root) / "ward-findings.md").read_text() == TIMEOUTS
        assert running.stop() == 0


def test_the_log_lists_jobs_and_undos(home: Home, root: Path) -> None:
    home.run("undo", 1, "--yes")

    told = home.json("log", root)

    assert told["schema"] == 1
    assert [(row["job"], row["kind"], row["undone_by"]) for row in told["jobs"]] == [
        (2, "undo", None),
        (1, "consolidate", 2),
    ]
    assert all(row["store"] == str(root / ".rune/echoes") and row["role"] == "reviewer" for row in told["jobs"])
    assert told["jobs"][1]["summary"] == "1 added"
    assert [row["job"] for row in home.json("log", root, "--limit", 1)["jobs"]] == [2]
    assert "undone by job 2" in home.run("log", root)
    jobs = home.json("jobs")["jobs"]
    assert [(job["job"], job["kind"], job["state"]) for job in jobs] == [
        (2, "undo", "done"),
        (1, "consolidate", "done"),
    ]


def test_the_log_of_one_project_is_not_that_of_another(home: Home, root: Path, tmp_path: Path) -> None:
    other = make_project(tmp_path / "q")

    assert home.json("log", other)["jobs"] == []
    assert [row["job"] for row in home.json("log")["jobs"]] == [1]
    assert str(root) in home.json("log")["jobs"][0]["store"]


def test_log_and_review_of_nothing_create_nothing(home: Home) -> None:
    assert "not changed anything" in home.run("log")
    assert "no review items" in home.run("review")
    assert not home.state.exists() or not any(path.suffix == ".db" for path in home.state.rglob("*"))


def test_review_lists_the_notices_of_the_engine(home: Home, root: Path) -> None:
    (role_directory(root) / "MEMORY.md").write_text("")
    os.utime(
        role_directory(root) / "MEMORY.md", (1_795_000_000, 1_795_000_000)
    )  # not just now, which could be another program
    (role_directory(root) / "seer-findings.md").write_text(CENTS)
    home.run("run", "--once", root)

    items = home.json("review", root)["items"]

    assert [(item["kind"], item["role"]) for item in items] == [("emptied", "reviewer")]
    assert any("Timeouts are missing" in title for title in items[0]["titles"])
    assert "Timeouts are missing" in home.run("review", root)
    home.run("add", root)
    assert home.json("status")["stores"][0]["review"] == 1


def test_a_job_that_is_undone_already_needs_no_undo(home: Home, root: Path) -> None:
    home.run("run", "--once", root)
    job = home.json("log", root)["jobs"][0]["job"]
    home.run("undo", job, root, "--yes")

    assert "was undone already" in home.run("undo", job, root, "--yes")

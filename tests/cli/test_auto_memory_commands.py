"""`echod doctor --auto-memory` and `echod restore --auto-memory`: reading changes nothing, and changes have an undo."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from echod.sessions.transcripts import project_slug
from tests.support import Home, finding_text, make_project, running_daemon, until

FRONT = "---\nname: {0}\ndescription: The {0} of the build and how it fails\nmetadata:\n  type: project\n---\nBody of {0}.\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, {"ECHOD_AUTO_MEMORY__COPIES": "true"})


@pytest.fixture
def memory(home: Home) -> Path:
    """The auto memory of a project, with a dead pointer, a misnamed one and a file without one."""
    project = home.root / "p"
    (project / ".git").mkdir(parents=True)
    path = home.root / "claude/projects" / project_slug(project) / "memory"
    path.mkdir(parents=True)
    for name in ("cache", "linker", "runner"):
        (path / f"{name}.md").write_text(FRONT.format(name))
    (path / "MEMORY.md").write_text(
        "# Memory\n\n- [Cache](Cache.md) hook\n- [Gone](gone.md) was here\n- [R](runner.md)\n"
    )
    return path


def contents(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.rglob("*")}


def test_every_finding_has_its_line_and_its_fix_and_nothing_is_changed(home: Home, memory: Path) -> None:
    before = contents(memory)
    report = home.json("doctor", "--auto-memory", home.root / "p")
    screen = home.echod("doctor", "--auto-memory", "p")

    problems = [check for check in report["checks"] if check["result"] == "problem"]
    assert [(check["code"], check["line"]) for check in problems] == [
        ("auto-pointer-dead", 3),
        ("auto-pointer-dead", 4),
        ("auto-pointer-missing", None),
    ]
    assert all(check["fix"] and check["path"].startswith(str(memory)) for check in problems)
    assert (screen.returncode, report["healthy"]) == (1, False)
    assert 'line 4: "Gone" names gone.md, which does not exist.' in screen.stdout
    assert [line for line in screen.stdout.splitlines() if len(line) > 80 and not line.startswith("~/")] == []
    assert contents(memory) == before


@pytest.mark.slow
def test_a_repair_is_a_job_with_an_undo(home: Home, memory: Path) -> None:
    before = (memory / "MEMORY.md").read_text()
    refused = home.echod("doctor", "--auto-memory", "p", "--fix")
    done = home.echod("doctor", "--auto-memory", "p", "--fix", "--yes")

    assert (refused.returncode, "Confirm with --yes" in refused.stderr) == (2, True)
    assert done.returncode == 0, done.stdout
    assert (memory / "MEMORY.md").read_text() == (
        "# Memory\n\n- [Cache](cache.md) hook\n- [R](runner.md)\n"
        "- [linker](linker.md) \u2014 The linker of the build and how it fails\n"
    )
    job = home.json("log")["jobs"][0]
    assert (job["kind"], job["store"]) == ("repair", str(memory))
    assert home.json("jobs")["jobs"][0]["kind"] == "auto-memory"

    home.run("undo", job["job"], "--yes")

    assert (memory / "MEMORY.md").read_text() == before
    assert home.echod("undo", job["job"], "--yes").returncode == 1


@pytest.mark.slow
def test_the_log_of_a_job_shows_the_lines_that_it_changed(home: Home, memory: Path) -> None:
    home.echod("doctor", "--auto-memory", "p", "--fix", "--yes")
    job = home.json("log")["jobs"][0]["job"]

    screen = home.run("log", job)
    (entry,) = home.json("log", job)["entries"]

    assert "MEMORY.md 5 -> 5 lines" in screen
    assert {"- - [Gone](gone.md) was here", "+ - [Cache](cache.md) hook"} <= set(entry["lines"])
    assert (entry["action"], entry["file"]) == ("changed", "MEMORY.md")
    assert f"Undo: echod undo {job}" in screen


@pytest.mark.slow
def test_last_is_the_newest_change_of_a_project_whatever_it_changed(home: Home, memory: Path) -> None:
    """The memory of the project, its auto memory, and again its memory: each undo takes the newest that is left."""
    role = make_project(home.root / "p", "reviewer") / ".rune/echoes/reviewer"
    (role / "MEMORY.md").write_text(f"# Reviewer Memory\n\n{finding_text('First')}\n{finding_text('Second')}")
    before = {file: file.read_bytes() for file in (role / "MEMORY.md", memory / "MEMORY.md")}
    first, second = (entry["id"] for entry in home.json("show", "p")["entries"])
    home.run("forget", first, "p", "--yes")
    home.echod("doctor", "--auto-memory", "p", "--fix", "--yes")
    home.run("forget", second, "p", "--yes")
    other = make_project(home.root / "q", "reviewer")

    assert home.echod("undo", "--last", "--yes", cwd=other).returncode == 2
    assert home.echod("undo", "--last", "--yes").returncode == 2  # in no project, so none is guessed
    undone = [home.run("undo", "--last", "p", "--yes") for _ in range(3)]

    assert [text.splitlines()[0].split()[2] for text in undone] == ["forget", "repair", "forget"], undone
    assert {file: file.read_bytes() for file in before} == before
    assert home.echod("undo", "--last", "p", "--yes").returncode == 2


def test_last_undoes_auto_memory_of_a_directory_without_a_memory_of_this_format(home: Home, memory: Path) -> None:
    before = (memory / "MEMORY.md").read_bytes()
    home.echod("doctor", "--auto-memory", "p", "--fix", "--yes")

    assert home.echod("undo", "--last", "--yes", cwd=home.root / "p").returncode == 0

    assert (memory / "MEMORY.md").read_bytes() == before


def test_many_findings_of_a_kind_are_counted_and_listed_on_request(home: Home, memory: Path) -> None:
    for number in range(40):
        (memory / f"fact-{number}.md").write_text(FRONT.format(f"fact-{number}"))

    screen = home.echod("doctor", "--auto-memory", "p").stdout
    full = home.echod("doctor", "--auto-memory", "p", "-v").stdout
    missing = [check for check in home.json("doctor", "--auto-memory", "p")["checks"] if "pointer-mis" in check["code"]]

    assert (screen.count("No line of the index names"), full.count("No line of the index names")) == (8, len(missing))
    assert f"{len(missing) - 8} auto-pointer-missing" in screen
    assert "-v or --json" in screen
    assert "more finding" not in full
    assert [line for line in screen.splitlines() if len(line) > 80 and not line.startswith("~/")] == []


def test_a_new_order_alone_keeps_the_time_of_the_file(home: Home, memory: Path) -> None:
    lines = []
    for number in range(210):
        file = memory / f"fact-{number}.md"
        file.write_text(FRONT.format(f"fact-{number}"))
        os.utime(file, (1_790_000_000 + number,) * 2)
        lines.append(f"- [Fact {number}](fact-{number}.md)\n")
    for name in ("cache", "linker", "runner"):
        (memory / f"{name}.md").unlink()
    index = memory / "MEMORY.md"
    index.write_text("".join(lines))
    os.utime(index, (1_780_000_000,) * 2)

    home.echod("doctor", "--auto-memory", "p", "--fix", "--yes")

    assert index.read_text().startswith("- [Fact 209](fact-209.md)\n")
    assert (sorted(index.read_text().splitlines(keepends=True)), index.stat().st_mtime) == (
        sorted(lines),
        1_780_000_000,
    )


def test_report_mode_repairs_nothing(home: Home, memory: Path) -> None:
    before = contents(memory)
    done = home.echod("doctor", "--auto-memory", "p", "--fix", "--yes", ECHOD_MODE="report")

    assert (done.returncode, "report" in done.stderr) == (1, True)
    assert contents(memory) == before


@pytest.mark.slow
def test_a_purge_is_noticed_and_undone_from_the_copy(home: Home, memory: Path) -> None:
    home.run("init", "p", "--roles", "reviewer")
    home.run("add", "p")
    home.run("run", "--once")
    before = contents(memory)
    shutil.rmtree(memory)

    report = home.json("doctor", "--auto-memory", "p")
    planned = home.run("restore", "--auto-memory", "--dry-run")
    home.run("restore", "--auto-memory", "p", "--yes")

    assert [check["code"] for check in report["checks"] if check["result"] == "problem"] == ["auto-lost"]
    assert ("> copy 1" in planned, "restore  MEMORY.md" in planned) == (True, True)
    assert contents(memory) == before
    assert "No file that a copy has is gone" in home.run("restore", "--auto-memory", "p")

    (memory / "cache.md").write_text("reset by the host")
    (memory / "new.md").write_text("new")
    home.run("restore", "--auto-memory", "p", "--copy", 1, "--yes")

    assert (memory / "cache.md").read_text() == FRONT.format("cache")
    assert (memory / "new.md").exists()
    home.run("undo", home.json("log")["jobs"][0]["job"], "--yes")
    assert (memory / "cache.md").read_text() == "reset by the host"


@pytest.mark.slow
def test_the_service_copies_at_its_start_and_after_each_interval(home: Home, memory: Path) -> None:
    service = Home(home.root, {**home.settings, "ECHOD_RECONCILE_MINUTES": "0.005"})
    copies = home.state / "auto-memory/copies"

    with running_daemon(service) as daemon:
        until(lambda: len(list(copies.glob("*/0*.json"))) == 1, "the copy at the start")
        (memory / "cache.md").write_text(FRONT.format("cache") + "A new sentence.\n")
        until(lambda: len(list(copies.glob("*/0*.json"))) == 2, "the copy after a change")
        shutil.rmtree(memory)
        assert daemon.process.poll() is None

    home.run("restore", "--auto-memory", "p", "--yes")
    assert (memory / "cache.md").read_text().endswith("A new sentence.\n")


@pytest.mark.slow
def test_no_copy_is_made_unless_the_user_wants_it(home: Home, memory: Path) -> None:
    home.run("init", "p", "--roles", "reviewer")
    home.run("add", "p")
    assert home.echod("run", "--once", ECHOD_AUTO_MEMORY__COPIES="false").returncode == 0

    assert not (home.state / "auto-memory").exists()
    assert "auto_memory.copies = true" in home.echod("restore", "--auto-memory").stderr


def test_a_home_without_auto_memory_is_healthy(home: Home) -> None:
    report = home.json("doctor", "--auto-memory")

    assert (report["healthy"], [check["code"] for check in report["checks"]]) == (True, ["auto-none"])


def test_a_memory_that_is_switched_off_is_noted(home: Home) -> None:
    (home.root / "claude").mkdir()
    (home.root / "claude/settings.json").write_text('{"autoMemoryEnabled": false}')

    report = home.json("doctor", "--auto-memory")

    assert [(check["code"], check["result"]) for check in report["checks"]] == [("auto-disabled", "note")]
    assert "autoMemoryEnabled" in report["checks"][0]["text"]


def test_a_secret_is_not_shown_in_json_either(home: Home, memory: Path) -> None:
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
    (memory / "cache.md").write_text(FRONT.format("cache") + f"[[{secret}]]\n")

    done = home.echod("doctor", "--auto-memory", "p", "--json")

    assert secret not in done.stdout
    assert any(check["code"] == "auto-secret" for check in json.loads(done.stdout)["checks"])

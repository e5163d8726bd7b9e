"""Each error of the user or the machine is one clear sentence, and nothing is changed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.life.files import MEMORY_HEADER, crowded_memory, learning_text
from tests.support import Home, finding_text, make_project

pytestmark = pytest.mark.slow


def test_a_directory_without_a_memory_is_refused_with_the_fix(home: Home, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()

    result = home.echod("add", tmp_path / "bare")

    assert result.returncode == 2
    assert "has no memory" in result.stderr
    assert "echod init" in result.stderr
    assert not home.state.exists()


def test_a_path_that_does_not_exist_is_refused(home: Home, tmp_path: Path) -> None:
    result = home.echod("run", "--once", tmp_path / "nowhere")

    assert result.returncode == 2
    assert "does not exist" in result.stderr


def test_any_directory_in_a_project_means_the_project(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")

    home.run("add", root / ".rune/echoes/reviewer")

    assert home.json("projects")["projects"] == [
        {"path": str(root), "registered": True, "missing": False, "paused": False}
    ]


def test_the_global_store_is_not_a_project(home: Home) -> None:
    (home.root / ".claude/echoes/global").mkdir(parents=True)

    result = home.echod("add", home.root, CLAUDE_CONFIG_DIR=str(home.root / ".claude"))

    assert result.returncode == 2
    assert "has no memory" in result.stderr


@pytest.mark.parametrize("command", [("run",), ("run", "--once"), ("add", "."), ("gate",)])
def test_a_broken_configuration_ends_every_command_with_78_and_names_the_line(
    home: Home, tmp_path: Path, command: tuple[str, ...]
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("# mine\nquiet_secnds = 3\n")
    root = make_project(home.root / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))

    result = home.echod("--config", config, *command, cwd=root)

    assert result.returncode == 78
    assert f"{config}:2: there is no setting quiet_secnds; did you mean quiet_seconds" in result.stderr
    assert not (root / ".rune/echoes/reviewer/MEMORY.md").exists()


def test_an_unknown_variable_is_a_warning_only(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")

    result = home.echod("run", "--once", root, ECHOD_QUIET_SECNDS="3")

    assert result.returncode == 0
    assert "ECHOD_QUIET_SECNDS is not a setting" in result.stderr


def test_status_without_a_daemon_reports_it_with_the_fix(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    home.run("add", root)

    result = home.echod("status")

    assert result.returncode == 3
    assert "echod is not running" in result.stdout
    assert "echod service install" in result.stdout
    assert "1 findings file waiting" in " ".join(result.stdout.split())
    assert max(map(len, result.stdout.splitlines())) <= 80 or str(tmp_path) in result.stdout


def test_status_creates_nothing(home: Home) -> None:
    home.echod("status")
    home.echod("jobs")
    home.echod("projects")

    assert not home.state.exists()


def test_a_directory_without_permission_is_a_sentence_and_the_rest_continues(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p", "reviewer", "workers")
    for role in ("reviewer", "workers"):
        (root / f".rune/echoes/{role}/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    (root / ".rune/echoes/reviewer").chmod(0)

    done = home.echod("run", "--once", root, before=_unprivileged())
    status = home.echod("status", "--json", before=_unprivileged())

    (root / ".rune/echoes/reviewer").chmod(0o700)
    assert "permission denied" in done.stdout
    assert (root / ".rune/echoes/workers/MEMORY.md").exists()
    assert (root / ".rune/echoes/reviewer/ward-findings.md").exists()
    assert status.returncode == 3


def _unprivileged() -> tuple[str, ...]:
    """Root may read everything; without these capabilities it may not."""
    if os.getuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is needed to be less than root")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@pytest.mark.parametrize(
    ("name", "said"), [("archive", "not a directory is in the way"), ("MEMORY.md", "symbolic link")]
)
def test_a_symlink_in_a_role_is_refused_and_nothing_is_written_through_it(
    home: Home, tmp_path: Path, name: str, said: str
) -> None:
    root = make_project(tmp_path / "p")
    outside = tmp_path / "outside"
    if name == "archive":
        outside.mkdir()
    else:
        outside.write_text("# Mine\n")
    (root / f".rune/echoes/reviewer/{name}").symlink_to(outside)
    findings = root / ".rune/echoes/reviewer/ward-findings.md"
    findings.write_text(finding_text("Timeouts are missing"))

    result = home.echod("run", "--once", root)

    assert result.returncode == 1
    assert said in " ".join(result.stdout.split())
    assert findings.exists()
    assert not list(outside.iterdir()) if name == "archive" else outside.read_text() == "# Mine\n"


def test_findings_that_cannot_be_read_go_to_quarantine_with_the_reason(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    (role / "ward-findings.md").write_bytes(b"### bad \xff bytes\n")
    (role / "seer-findings.md").write_text(finding_text("Timeouts are missing"))

    home.run("run", "--once", root)

    kept = sorted(path.name for path in (role / "quarantine").iterdir())
    assert kept[-1] == "REASONS.md"
    assert kept[0].endswith("-ward-findings.md")
    assert (role / "quarantine" / kept[0]).read_bytes() == b"### bad \xff bytes\n"
    assert "UTF-8" in (role / "quarantine/REASONS.md").read_text()
    assert "Timeouts are missing" in (role / "MEMORY.md").read_text()
    home.run("add", root)
    assert home.json("status")["stores"][0]["quarantined"] == 1


@pytest.mark.parametrize("command", [("add",), ("run",), ("run", "--once"), ("pause",)], ids=" ".join)
@pytest.mark.parametrize("place", ["a file", "proc"])
def test_a_state_directory_that_cannot_be_created_is_a_sentence(
    home: Home, tmp_path: Path, command: tuple[str, ...], place: str
) -> None:
    root = make_project(tmp_path / "p")
    (tmp_path / "file").write_text("")
    state = str(tmp_path / "file") if place == "a file" else "/proc/echod"
    path = () if command == ("run",) else (root,)

    result = home.echod(*command, *path, ECHOD_STATE_DIR=state)

    assert result.returncode == 1
    assert "cannot be made" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 101], ids=["empty", "blank", "line-break", "long"])
def test_a_workflow_needs_a_name_that_can_be_shown(home: Home, tmp_path: Path, name: str) -> None:
    root = make_project(tmp_path / "p")

    result = home.echod("workflow", "begin", name, "--project", root)

    assert result.returncode == 2
    assert "name" in result.stderr


def test_once_retries_a_failed_job_whose_cause_was_fixed(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    archive = root / ".rune/echoes/reviewer/archive"
    archive.write_text("in the way")
    (archive.parent / "ward-findings.md").write_text(finding_text("Timeouts are missing"))
    assert home.echod("run", "--once", root).returncode == 1

    archive.unlink()

    assert "1 added" in home.run("run", "--once", root)


@dataclass(frozen=True)
class ErrorCase:
    """An error: how it is caused, the typed command, and the expected message."""

    name: str
    arrange: Callable[[Home, Path], Mapping[str, str] | None]
    arguments: tuple[str, ...]
    code: int
    expected: tuple[str, ...]


def _no_setup(home: Home, root: Path) -> None:
    del home, root


def _register_project(home: Home, root: Path) -> None:
    home.run("add", root)


def _write_many_entries(home: Home, root: Path) -> None:
    """Return more entries than there are first digits of an id."""
    text = "\n".join(finding_text(f"Learning {number}") for number in range(17))
    (root / ".rune/echoes/reviewer/MEMORY.md").write_text(f"# Reviewer Memory\n\n{text}")


def _make_two_stores(home: Home, root: Path) -> None:
    make_project(root, store=".claude/echoes")
    home.run("add", root)


def _newer_database(home: Home, root: Path) -> None:
    home.run("run", "--once", root)
    with contextlib.closing(sqlite3.connect(home.state / "echod.db")) as link:
        link.execute("PRAGMA user_version = 99")


def _unknown_database(home: Home, root: Path) -> None:
    home.run("run", "--once", root)
    with contextlib.closing(sqlite3.connect(home.state / "echod.db")) as link:
        link.execute("PRAGMA user_version = -1")


def _make_unreadable(below: str) -> Callable[[Home, Path], None]:
    def arrange(home: Home, root: Path) -> None:
        home.run("run", "--once", root)
        home.run("add", root)
        (home.state / below).chmod(0)

    return arrange


def _write_settings(text: str) -> Callable[[Home, Path], Mapping[str, str]]:
    def arrange(home: Home, root: Path) -> Mapping[str, str]:
        file = home.root / "config.toml"
        file.write_text(text)
        return {"ECHOD_CONFIG": str(file)}

    return arrange


UNKNOWN = ("has an unknown schema (-1", "move that file away")
NEWER = ("was written by a newer echod (schema 99", "Update echod")

ERROR_CASES = (
    ErrorCase("no-project", _no_setup, ("gate", "{bare}"), 2, ("has no memory", "echod init {bare}")),
    ErrorCase("no-store", _no_setup, ("remember", "x", "--project", "{bare}"), 2, ("has no memory", "echod init")),
    ErrorCase("not-running", _register_project, ("status",), 3, ("not running", "echod service install, or echod run")),
    ErrorCase("no-service", _no_setup, ("service", "restart"), 1, ("echod service install",)),
    ErrorCase("nothing-recorded", _no_setup, ("jobs",), 0, ("There are no jobs yet.",)),
    ErrorCase("database-unreadable", _make_unreadable("echod.db"), ("jobs",), 1, ("cannot be opened", "permissions")),
    ErrorCase(
        "list-unreadable",
        _make_unreadable("projects"),
        ("projects",),
        1,
        ("permission denied", "check its permissions"),
    ),
    ErrorCase("no-entry", _no_setup, ("explain", "zzz", "{root}"), 2, ("begins with 'zzz'", "echod show")),
    ErrorCase(
        "two-stores", _make_two_stores, ("status",), 3, ("two memory directories. Each is maintained on its own",)
    ),
    ErrorCase("no-job", _no_setup, ("jobs", "retry", "4"), 2, ("no job 4", "echod jobs")),
    ErrorCase(
        "typo", _write_settings("quiet_secnds = 3"), ("status",), 78, (":1: there is no setting", "quiet_seconds?")
    ),
    ErrorCase(
        "typo-in-table",
        _write_settings("[polcy]\nx = 3"),
        ("jobs", "retry", "1"),
        78,
        (":1:", "did you mean [policy]?"),
    ),
    ErrorCase("newer-jobs", _newer_database, ("jobs",), 1, NEWER),
    ErrorCase("newer-status", _newer_database, ("status",), 3, NEWER),
    ErrorCase("newer-run", _newer_database, ("run", "--once", "{root}"), 1, NEWER),
    ErrorCase("unknown-jobs", _unknown_database, ("jobs",), 1, UNKNOWN),
    ErrorCase("unknown-run", _unknown_database, ("run", "--once", "{root}"), 1, UNKNOWN),
    ErrorCase("unknown-command", _no_setup, ("statsu",), 2, ("There is no command `echod statsu`", "status")),
    ErrorCase("no-question", _write_many_entries, ("reset", "{root}"), 2, ("no terminal to ask at", "--yes")),
)


@pytest.mark.parametrize("case", ERROR_CASES, ids=lambda case: case.name)
def test_an_error_is_reported_with_the_fix(home: Home, tmp_path: Path, case: ErrorCase) -> None:
    root = make_project(tmp_path / "p")
    (tmp_path / "bare").mkdir()
    names = {"root": root, "bare": tmp_path / "bare"}
    changed = case.arrange(home, root) or {}

    result = home.echod(
        *(word.format(**names) for word in case.arguments),
        before=_unprivileged(),
        cwd=None,
        **{"COLUMNS": "80", **changed},
    )

    told = " ".join(f"{result.stdout} {result.stderr}".split())
    assert result.returncode == case.code, told
    assert [words for words in case.expected if words.format(**names) not in told] == [], told
    assert "Traceback" not in told
    assert "bug" not in told


def test_an_ambiguous_id_is_refused_with_all_candidates(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    _write_many_entries(home, root)
    begin: dict[str, list[str]] = {}
    for entry in home.json("show", root)["entries"]:
        begin.setdefault(entry["id"][0], []).append(entry["id"])
    first, ids = max(begin.items(), key=lambda found: len(found[1]))

    result = home.echod("explain", first, root)

    assert result.returncode == 2
    assert [one for one in ids if one not in result.stderr] == []


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mount a file system for the test, which is skipped where that is not allowed."""
    places: list[Path] = []

    def mount(*words: str) -> Path:
        place = tmp_path / f"mount-{len(places)}"
        place.mkdir()
        if os.getuid() != 0 or subprocess.run(["mount", *words, place], capture_output=True).returncode != 0:
            pytest.skip("file systems cannot be mounted here")
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize(
    ("words", "code"), [(("add", "{root}"), 1), (("run", "--once", "{root}"), 1), (("status",), 3), (("jobs",), 0)]
)
def test_a_full_disk_is_a_sentence_and_not_a_traceback(
    home: Home, tmp_path: Path, mounted: Callable[..., Path], words: tuple[str, ...], code: int
) -> None:
    root = make_project(tmp_path / "p")
    full = mounted("-t", "tmpfs", "-o", "size=64k", "tmpfs")
    with contextlib.suppress(OSError), (full / "fill").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass

    result = home.echod(*(word.format(root=root) for word in words), ECHOD_STATE_DIR=str(full / "state"))

    assert result.returncode == code
    assert "Traceback" not in result.stdout + result.stderr
    if code == 1:
        assert "disk is full" in result.stderr or "no space left" in result.stderr.lower()


def test_a_full_disk_under_a_memory_changes_nothing(home: Home, tmp_path: Path, mounted: Callable[..., Path]) -> None:
    root = make_project(mounted("-t", "tmpfs", "-o", "size=128k", "tmpfs") / "p")
    role = root / ".rune/echoes/reviewer"
    memory = f"# Reviewer Memory\n\n{finding_text('Retries are endless')}"
    (role / "MEMORY.md").write_text(memory)
    (role / "ward-findings.md").write_text(finding_text("Timeouts are missing"))
    fill = root / "fill"
    with contextlib.suppress(OSError), fill.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass

    full = home.echod("run", "--once", root)

    assert full.returncode == 1
    assert "the disk is full; free some space" in " ".join(full.stdout.split())
    assert (role / "MEMORY.md").read_text() == memory
    assert (role / "ward-findings.md").read_text() == finding_text("Timeouts are missing")
    fill.unlink()
    assert "1 added" in home.run("run", "--once", root)


@pytest.mark.parametrize(
    ("words", "code"),
    [(("status",), 3), (("gate", "{root}"), 0), (("show", "{root}"), 0), (("add", "{root}"), 1), (("run",), 1)],
)
def test_with_a_read_only_home_reading_works_and_writing_is_refused(
    home: Home, mounted: Callable[..., Path], words: tuple[str, ...], code: int
) -> None:
    place = mounted("-t", "tmpfs", "tmpfs")
    root = make_project(place / "p")
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)

    result = home.echod(
        *(word.format(root=root) for word in words),
        ECHOD_STATE_DIR=str(place / "state"),
        ECHOD_RUNTIME_DIR=str(place / "run"),
    )

    assert result.returncode == code
    assert "Traceback" not in result.stdout + result.stderr
    if code == 1:
        assert "read-only file system" in result.stderr
        assert "ECHOD_STATE_DIR" in result.stderr


def _read_only_memory(root: Path, role: str) -> Path:
    file = make_project(root, role) / ".rune/echoes" / role / "MEMORY.md"
    file.write_text(crowded_memory())
    file.chmod(0o444)
    return file


def test_every_role_is_attempted_after_one_that_is_refused(home: Home, tmp_path: Path) -> None:
    root = tmp_path / "p"
    for role in ("first", "third"):
        _read_only_memory(root, role)
    second = make_project(root, "second") / ".rune/echoes/second/MEMORY.md"
    second.write_text(crowded_memory())

    result = home.echod("prune", root, "--yes")

    assert result.returncode == 1
    assert len(second.read_text().splitlines()) <= 150
    assert [line.split(":")[1].strip() for line in result.stderr.splitlines()[:2]] == ["first", "third"]
    assert result.stderr.count("chmod u+w") == 2
    assert result.stderr.endswith("2 of 3 changes failed, for the reasons above.\n")


@pytest.mark.parametrize("command", [("prune", "--dry-run"), ("add",)], ids=" ".join)
def test_a_preview_announces_a_file_that_will_be_refused(home: Home, tmp_path: Path, command: tuple[str, ...]) -> None:
    file = _read_only_memory(tmp_path / "p", "reviewer")

    said = " ".join(home.run(*command, tmp_path / "p").split())

    assert f"{file} is read-only; echod does not change it. Make it writable (chmod u+w)" in said


def test_a_dry_run_of_compress_and_consolidate_announces_it_too(home: Home, tmp_path: Path) -> None:
    role = _read_only_memory(tmp_path / "p", "reviewer").parent
    (role / "knowledge.md").write_text(MEMORY_HEADER + "".join(learning_text(f"topic {n}") for n in range(60)))
    (role / "knowledge.md").chmod(0o444)
    (role / "ward-findings.md").write_text(finding_text("ordering"))

    for command in ("compress", "consolidate"):
        said = " ".join(home.run(command, "--dry-run", tmp_path / "p").split())
        assert "it would be refused: " in said
        assert "is read-only" in said

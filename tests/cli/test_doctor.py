"""`echod doctor`: every problem is found and has a fix, and checking changes nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from echod import __version__, paths
from echod.contract.commands import Check, CheckResult
from echod.doctor import DoctorContext, machine, run_checks
from echod.doctor.projects import gitignore_line
from echod.memory import MAX_FILE_BYTES
from echod.projects.registry import ProjectRegistry
from echod.runtime.system import read_mounts
from echod.settings.schema import Settings
from echod.store.layout import find_stores
from tests.support import Home, finding_text, make_project, running_daemon


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root)


@pytest.fixture
def case(home: Home) -> DoctorContext:
    environ = {**home.environ, "XDG_CONFIG_HOME": str(home.root / "config"), "PATH": str(home.root / "bin")}
    own = paths.paths_from_environment(environ)
    own.create_directories()
    return DoctorContext(
        paths=own._replace(config_file=home.root / "config.toml"),
        settings=Settings(),
        environ=environ,
        platform="linux",
        python=home.root / "bin/python",
        version=__version__,
        uid=os.getuid(),
        now=1_795_000_000.0,
        monotonic=100.0,
        mounts=read_mounts(),
    )


def check_codes(case: DoctorContext, result: CheckResult, only: Path | None = None) -> set[str]:
    return {check.code for check in run_checks(case, only).checks if check.result is result}


def only_check(case: DoctorContext, code: str) -> Check:
    found = [check for check in run_checks(case, None).checks if check.code == code]
    assert len(found) == 1, found
    return found[0]


def register_project(case: DoctorContext, root: Path, *roles: str) -> Path:
    made = make_project(root, *roles)
    ProjectRegistry(case.paths.projects).add(made)
    return made


def read_files(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_with_a_running_service_and_a_valid_project_there_are_no_problems(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    home.run("add", root)
    with running_daemon(home):
        result = home.echod("doctor", "--json")
    report: dict[str, Any] = json.loads(result.stdout)

    assert result.returncode == 0, result.stdout
    assert report["healthy"] is True
    assert report["schema"] == 1
    checks_by_code = {check["code"]: check for check in report["checks"]}
    assert checks_by_code["daemon"]["text"].startswith("The daemon is running as process")
    assert checks_by_code["store"] == {
        "code": "store",
        "result": "ok",
        "text": "All roles can be read and written: reviewer.",
        "fix": "",
        "path": str(root / ".rune/echoes"),
        "line": None,
    }


def test_without_a_daemon_it_exits_with_1_and_shows_how_to_start_one(home: Home) -> None:
    result = home.echod("doctor")

    assert result.returncode == 1
    assert "The daemon is not running." in result.stdout
    assert "echod service install, or echod run" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80 or str(home.root) in result.stdout


def test_it_creates_nothing_in_an_empty_home(home: Home) -> None:
    home.echod("doctor", "--json")

    assert not home.state.exists()


def test_invalid_settings_are_reported_as_a_check_and_do_not_end_it(home: Home, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("quiet_secnds = 3\n")

    result = home.echod("--config", config, "doctor", "--json")

    assert result.returncode == 1
    wrong = [check for check in json.loads(result.stdout)["checks"] if check["code"] == "settings"]
    assert wrong[0]["result"] == "problem"
    assert f"{config}:1" in wrong[0]["text"]


def test_nothing_in_a_project_changes_and_no_probe_stays(case: DoctorContext, tmp_path: Path) -> None:
    root = register_project(case, tmp_path / "p", "reviewer", "workers")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    before, state = read_files(root), set(case.paths.state.rglob("*"))

    run_checks(case, None)

    assert read_files(root) == before
    assert set(case.paths.state.rglob("*")) == state


def _make_state_readable_to_others(case: DoctorContext) -> None:
    case.paths.state.chmod(0o755)


def _replace_runtime_directory(case: DoctorContext) -> None:
    for below in sorted(case.paths.runtime.rglob("*"), reverse=True):
        below.rmdir()
    case.paths.runtime.rmdir()
    case.paths.runtime.write_text("")


def _corrupt_database(case: DoctorContext) -> None:
    case.paths.database.write_bytes(b"no database " * 1000)


def _write_invalid_project(case: DoctorContext) -> None:
    case.paths.projects.write_text("relative/path\n")


@pytest.mark.parametrize(
    ("harm", "code", "fix"),
    [
        (_make_state_readable_to_others, "state-directory", "chmod 700"),
        (_replace_runtime_directory, "runtime-directory", "ECHOD_RUNTIME_DIR"),
        (_corrupt_database, "database", "echod service install, or echod run"),
        (_write_invalid_project, "projects", ""),
    ],
)
def test_problems_of_its_own_files_are_reported_with_their_fixes(
    case: DoctorContext, harm: Callable[[DoctorContext], None], code: str, fix: str
) -> None:
    harm(case)

    check = only_check(case, code)

    assert check.result is CheckResult.PROBLEM
    assert fix in check.fix


def test_a_state_directory_on_a_network_file_system_is_a_problem(case: DoctorContext) -> None:
    remote = replace(case, mounts="36 25 0:32 / / rw - nfs4 server:/home rw\n")

    check = only_check(remote, "state-directory")

    assert check.result is CheckResult.PROBLEM
    assert "nfs4" in check.text


def test_a_memory_on_a_network_file_system_is_a_note_and_not_a_problem(case: DoctorContext, tmp_path: Path) -> None:
    register_project(case, tmp_path / "p")
    remote = replace(case, mounts="36 25 0:32 / / rw - fuse.sshfs host:/ rw\n")

    check = only_check(remote, "file-system")

    assert check.result is CheckResult.NOTE
    assert "once a minute" in check.text


def test_the_file_system_is_probed_in_the_state_directory(case: DoctorContext, tmp_path: Path) -> None:
    register_project(case, tmp_path / "p")

    check = only_check(case, "file-system")

    assert "Exchange, leases and links work" in check.text or "lacks" in check.text


def test_another_echod_on_the_path_is_a_problem(case: DoctorContext, tmp_path: Path) -> None:
    for place in (tmp_path / "other", case.python.parent):
        place.mkdir(parents=True)
        (place / "echod").write_text("#!/bin/sh\n")
        (place / "echod").chmod(0o755)
    environ = {**case.environ, "PATH": str(tmp_path / "other")}

    check = only_check(replace(case, environ=environ), "command")

    assert check.result is CheckResult.PROBLEM
    assert check.path == str(tmp_path / "other/echod")


def test_a_service_file_of_another_installation_is_a_problem(case: DoctorContext, home: Home) -> None:
    unit = home.root / "config/systemd/user/echod.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("# Managed by echod\n[Service]\nExecStart=/elsewhere/echod run\n")

    assert "service-outdated" in check_codes(case, CheckResult.PROBLEM)


def test_deleted_projects_and_projects_without_memory_are_distinguished(case: DoctorContext, tmp_path: Path) -> None:
    missing_root = register_project(case, tmp_path / "gone")
    for below in sorted(missing_root.rglob("*"), reverse=True):
        below.rmdir()
    missing_root.rmdir()
    (tmp_path / "bare").mkdir()
    ProjectRegistry(case.paths.projects).add(tmp_path / "bare")

    assert f"echod remove {missing_root}" in only_check(case, "project-missing").fix
    assert only_check(case, "project-without-store").path == str(tmp_path / "bare")


def test_two_memories_in_one_project_are_worth_a_note(case: DoctorContext, tmp_path: Path) -> None:
    root = register_project(case, tmp_path / "p")
    make_project(root, store=".claude/echoes")

    assert only_check(case, "two-stores").result is CheckResult.NOTE


def test_markers_are_shown_with_their_contents(case: DoctorContext, tmp_path: Path) -> None:
    root = register_project(case, tmp_path / "p")
    (root / "tmp").mkdir()
    state = {"status": "active", "owner_pid": str(os.getpid())}
    (root / "tmp/.rune-review-abc.json").write_text(json.dumps(state))
    os.utime(root / "tmp/.rune-review-abc.json", (case.now, case.now))

    assert ".rune-review-abc.json" in only_check(case, "markers").text


@pytest.mark.parametrize(
    ("settings", "ignored", "code"),
    [
        ("true", ".rune/echoes/\n", "git-ignores"),
        ("true", "/.rune\n", "git-ignores"),
        ("false", "build/\n", "git-tracks"),
        ("true", "build/\n", None),
        ("false", ".rune/echoes/\n", None),
    ],
)
def test_gitignore_is_compared_with_the_projects_settings(
    case: DoctorContext, tmp_path: Path, settings: str, ignored: str, code: str | None
) -> None:
    root = register_project(case, tmp_path / "p")
    (root / ".git").mkdir()
    (root / ".gitignore").write_text(ignored)
    (root / ".rune/talisman.yml").write_text(f"echoes:\n  version_controlled: {settings}\n")

    found = check_codes(case, CheckResult.PROBLEM) & {"git-ignores", "git-tracks"}

    assert found == ({code} if code else set())


def test_a_gitignore_that_is_a_link_or_missing_names_nothing(tmp_path: Path) -> None:
    (store,) = find_stores(make_project(tmp_path / "p"))
    assert gitignore_line(store) is None

    (tmp_path / "other").write_text(".rune/\n")
    (store.project / ".gitignore").symlink_to(tmp_path / "other")

    assert gitignore_line(store) is None


def test_a_linked_memory_and_a_role_writable_by_others_are_reported(case: DoctorContext, tmp_path: Path) -> None:
    root = register_project(case, tmp_path / "p", "reviewer", "workers")
    (tmp_path / "outside.md").write_text("# Mine\n")
    (root / ".rune/echoes/reviewer/MEMORY.md").symlink_to(tmp_path / "outside.md")
    (root / ".rune/echoes/workers").chmod(0o777)

    assert only_check(case, "memory-not-regular-file").path == str(root / ".rune/echoes/reviewer/MEMORY.md")
    assert only_check(case, "store-writable-by-others").fix == f"chmod go-w {root / '.rune/echoes/workers'}"


@pytest.mark.parametrize("name", ["MEMORY.md", "knowledge.md"])
@pytest.mark.parametrize("data", [b"# Mine\n\xff", b"x" * (MAX_FILE_BYTES + 1)], ids=["no text", "too large"])
def test_an_unreadable_file_is_reported(case: DoctorContext, tmp_path: Path, name: str, data: bytes) -> None:
    root = register_project(case, tmp_path / "p")
    file = root / ".rune/echoes/reviewer" / name
    file.write_bytes(data)

    check = only_check(case, "memory-unreadable")

    assert (check.result, check.path) == (CheckResult.PROBLEM, str(file))
    assert "does not use this file" in check.text


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_memory_of_another_user_is_reported_with_the_rights_of_root(case: DoctorContext, tmp_path: Path) -> None:
    root = register_project(case, tmp_path / "p")
    memory = root / ".rune/echoes/reviewer/MEMORY.md"
    memory.write_text("# Reviewer Memory\n")
    os.chown(memory, 65_533, 65_533)

    check = only_check(replace(case, uid=12_345), "memory-owner")

    assert check.result is CheckResult.PROBLEM
    assert "chown 12345" in check.fix


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
@pytest.mark.parametrize(("limit", "result"), [(10, "problem"), (40, "note"), (100_000, "ok")])
def test_the_kernels_limit_is_compared_with_what_must_be_watched(
    case: DoctorContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, result: str
) -> None:
    register_project(case, tmp_path / "p", "reviewer", "workers", "planner")
    (tmp_path / "max_user_watches").write_text(f"{limit}\n")
    monkeypatch.setattr(machine, "_INOTIFY", tmp_path)

    assert only_check(case, "inotify-watches").result.value == result


def test_one_project_can_be_checked_even_if_it_is_not_registered(case: DoctorContext, tmp_path: Path) -> None:
    other = register_project(case, tmp_path / "other")
    root = make_project(tmp_path / "p")

    report = run_checks(case, root)

    assert "project-unregistered" in {check.code for check in report.checks}
    assert not [check for check in report.checks if check.path and check.path.startswith(str(other))]


def test_every_code_is_documented(case: DoctorContext, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/json.md").read_text()
    root = register_project(case, tmp_path / "p")
    (root / ".rune/echoes/reviewer").chmod(0o777)

    undocumented = {check.code for check in run_checks(case, None).checks if f"`{check.code}`" not in page}

    assert undocumented == set()


def test_leftovers_beside_a_memory_are_found_and_deleted_when_asked(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    (role / "MEMORY.md").write_text("# Reviewer\n\n" + finding_text("Timeouts"))
    known, unknown = role / ".MEMORY.md.echod-0a1b2c-000007-0", role / ".a-findings.md.echod-0a1b2c-000008-0"
    known.write_text("# Reviewer\n\n" + finding_text("Timeouts"))
    unknown.write_text(finding_text("Nowhere else"))
    (role / ".MEMORY.md.swp").write_text("an editor's")
    home.run("add", root)

    report = home.json("doctor", root)
    refused = home.echod("doctor", root, "--fix")
    fixed = home.echod("doctor", root, "--fix", "--yes")

    found = [check for check in report["checks"] if check["code"] == "leftovers"]
    assert [check["result"] for check in found] == ["problem", "problem"]
    assert (refused.returncode, known.exists()) == (2, False)
    assert "1 file deleted" in fixed.stdout
    assert unknown.exists()
    assert (role / ".MEMORY.md.swp").exists()

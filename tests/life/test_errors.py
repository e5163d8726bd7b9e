"""What a person does wrong, or the machine, is one clear sentence, and nothing is touched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support import Home, finding, project


def test_a_directory_without_a_memory_is_refused_with_what_to_do(home: Home, tmp_path: Path) -> None:
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
    root = project(tmp_path / "p")

    home.done("add", root / ".rune/echoes/reviewer")

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
    root = project(home.root)
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding("Timeouts are missing"))

    result = home.echod("--config", config, *command)

    assert result.returncode == 78
    assert f"{config}:2: there is no setting quiet_secnds; did you mean quiet_seconds" in result.stderr
    assert not (root / ".rune/echoes/reviewer/MEMORY.md").exists()


def test_an_unknown_variable_is_a_warning_only(home: Home, tmp_path: Path) -> None:
    root = project(tmp_path / "p")

    result = home.echod("run", "--once", root, ECHOD_QUIET_SECNDS="3")

    assert result.returncode == 0
    assert "ECHOD_QUIET_SECNDS is not a setting" in result.stderr


def test_status_without_a_daemon_says_so_and_what_to_do(home: Home, tmp_path: Path) -> None:
    root = project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding("Timeouts are missing"))
    home.done("add", root)

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


def test_a_directory_without_permission_is_a_sentence_and_the_rest_goes_on(home: Home, tmp_path: Path) -> None:
    root = project(tmp_path / "p", "reviewer", "workers")
    for role in ("reviewer", "workers"):
        (root / f".rune/echoes/{role}/ward-findings.md").write_text(finding("Timeouts are missing"))
    (root / ".rune/echoes/reviewer").chmod(0)

    done = home.echod("run", "--once", root, before=_as_an_ordinary_user())
    status = home.echod("status", "--json", before=_as_an_ordinary_user())

    (root / ".rune/echoes/reviewer").chmod(0o700)
    assert "permission denied" in done.stdout
    assert (root / ".rune/echoes/workers/MEMORY.md").exists()
    assert (root / ".rune/echoes/reviewer/ward-findings.md").exists()
    assert status.returncode == 3


def _as_an_ordinary_user() -> tuple[str, ...]:
    """Root may read everything; without these capabilities it may not."""
    if os.getuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is needed to be less than root")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@pytest.mark.parametrize(
    ("name", "said"), [("archive", "not a directory stands in the way"), ("MEMORY.md", "symbolic link")]
)
def test_a_symlink_in_a_role_is_refused_and_nothing_is_written_through_it(
    home: Home, tmp_path: Path, name: str, said: str
) -> None:
    root = project(tmp_path / "p")
    outside = tmp_path / "outside"
    if name == "archive":
        outside.mkdir()
    else:
        outside.write_text("# Mine\n")
    (root / f".rune/echoes/reviewer/{name}").symlink_to(outside)
    findings = root / ".rune/echoes/reviewer/ward-findings.md"
    findings.write_text(finding("Timeouts are missing"))

    result = home.echod("run", "--once", root)

    assert result.returncode == 1
    assert said in " ".join(result.stdout.split())
    assert findings.exists()
    assert not list(outside.iterdir()) if name == "archive" else outside.read_text() == "# Mine\n"


def test_findings_that_cannot_be_read_go_to_quarantine_with_the_reason(home: Home, tmp_path: Path) -> None:
    root = project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    (role / "ward-findings.md").write_bytes(b"### bad \xff bytes\n")
    (role / "seer-findings.md").write_text(finding("Timeouts are missing"))

    home.done("run", "--once", root)

    kept = sorted(path.name for path in (role / "quarantine").iterdir())
    assert kept[-1] == "REASONS.md"
    assert kept[0].endswith("-ward-findings.md")
    assert (role / "quarantine" / kept[0]).read_bytes() == b"### bad \xff bytes\n"
    assert "UTF-8" in (role / "quarantine/REASONS.md").read_text()
    assert "Timeouts are missing" in (role / "MEMORY.md").read_text()
    home.done("add", root)
    assert home.json("status")["stores"][0]["quarantined"] == 1


@pytest.mark.parametrize("command", [("add",), ("run",), ("run", "--once"), ("pause",)], ids=" ".join)
@pytest.mark.parametrize("place", ["a file", "proc"])
def test_a_state_directory_that_cannot_be_made_is_a_sentence(
    home: Home, tmp_path: Path, command: tuple[str, ...], place: str
) -> None:
    root = project(tmp_path / "p")
    (tmp_path / "file").write_text("")
    state = str(tmp_path / "file") if place == "a file" else "/proc/echod"
    path = () if command == ("run",) else (root,)

    result = home.echod(*command, *path, ECHOD_STATE_DIR=state)

    assert result.returncode == 1
    assert "cannot be made" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 101], ids=["empty", "blank", "line-break", "long"])
def test_a_workflow_needs_a_name_that_can_be_shown(home: Home, tmp_path: Path, name: str) -> None:
    root = project(tmp_path / "p")

    result = home.echod("workflow", "begin", name, "--project", root)

    assert result.returncode == 2
    assert "name" in result.stderr


def test_once_tries_again_what_failed_before_and_was_mended(home: Home, tmp_path: Path) -> None:
    root = project(tmp_path / "p")
    archive = root / ".rune/echoes/reviewer/archive"
    archive.write_text("in the way")
    (archive.parent / "ward-findings.md").write_text(finding("Timeouts are missing"))
    assert home.echod("run", "--once", root).returncode == 1

    archive.unlink()

    assert "1 added" in home.done("run", "--once", root)

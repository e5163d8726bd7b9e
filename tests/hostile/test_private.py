"""echod's own files are readable by no other user, and its logs contain neither memories nor the environment."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from echod.files import insecure_file_warnings
from tests.hostile.conftest import Target
from tests.support import finding_text, running_daemon, until

LEARNING = "Quokkas must be fed at noon."
OLD_LEARNING = "Wombats sleep in the old vault."
IN_ENVIRONMENT = "platypus-in-the-environment"


def readable_by_others(root: Path) -> list[str]:
    """Return every path below (and at) `root` that other users could read."""
    return [
        f"{path} {stat.S_IMODE(path.lstat().st_mode):o}"
        for path in (root, *root.rglob("*"))
        if path.lstat().st_mode & 0o077 and not path.is_symlink()
    ]


@pytest.fixture(autouse=True)
def _open_umask() -> object:
    before = os.umask(0o002)
    yield
    os.umask(before)


@pytest.mark.slow
def test_state_is_readable_by_no_other_user(target: Target) -> None:
    target.findings()
    with running_daemon(target.home):
        target.home.run("add", target.root)
        until(lambda: "Timeouts are missing" in target.memory.read_text(), "the consolidation")
    target.home.run("run", "--once", target.root)

    assert not readable_by_others(target.home.state)
    assert not readable_by_others(target.home.root / "run")


@pytest.mark.slow
def test_a_full_run_logs_no_memory_and_no_environment(target: Target) -> None:
    target.memory.write_text(finding_text("Wombats", OLD_LEARNING))
    target.findings("ward", finding_text("Quokkas", LEARNING))
    (target.role / "bad-findings.md").write_bytes(b"\xff\xfe " + LEARNING.encode())
    environ = {"ECHOD_LOG_LEVEL": "debug", "SOME_TOKEN": IN_ENVIRONMENT}
    home = type(target.home)(target.home.root, environ)
    with running_daemon(home) as running:
        home.run("add", target.root)
        until(lambda: LEARNING in target.memory.read_text(), "the consolidation")
        until(lambda: not list(target.role.glob("*-findings.md")), "the end of the findings")
        home.echod("status")
        running.stop()
    target.findings("seer", finding_text("Numbats", "Numbats eat termites only. " + LEARNING))
    home.run("run", "--once", target.root)
    logged = (home.root / "service.log").read_text()
    logged += "".join(path.read_text() for path in (home.state / "log").glob("*") if path.is_file())

    assert "job_finished" in logged
    for text in (LEARNING, OLD_LEARNING, "Quokkas", "Wombats", "Numbats", IN_ENVIRONMENT):
        assert text not in logged


def test_a_world_writable_settings_file_is_reported(target: Target) -> None:
    file = target.home.root / "settings.toml"
    file.write_text("max_attempts = 3\n")
    file.chmod(0o666)

    result = target.home.echod("--config", file, "gate", target.root)

    assert result.returncode == 0
    assert "can be changed by every user" in result.stderr
    file.chmod(0o644)
    assert target.home.echod("--config", file, "gate", target.root).stderr == ""


def test_a_settings_file_of_another_user_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("max_attempts = 3\n")
    if os.geteuid() == 0:
        os.chown(file, 12345, -1)  # all users trust root's files
    owner = file.stat().st_uid

    (output,) = insecure_file_warnings(file, uid=owner + 1)

    assert "belongs to another user" in output
    assert insecure_file_warnings(file, uid=owner) == ()


@pytest.mark.slow
def test_a_settings_file_in_a_world_writable_directory_is_reported(target: Target) -> None:
    place = target.home.root / "config"
    place.mkdir()
    file = place / "settings.toml"
    file.write_text("max_attempts = 3\n")
    file.chmod(0o644)
    place.chmod(0o777)

    for words in (["gate", target.root], ["status"], ["projects"], ["config", "check"]):
        assert "can be replaced by every user" in target.home.echod("--config", file, *words).stderr
    place.chmod(0o1777)  # like /tmp: no user can rename files of another user
    assert target.home.echod("--config", file, "gate", target.root).stderr == ""


def test_a_settings_file_in_a_directory_of_another_user_is_reported(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give a directory away")
    place = tmp_path / "theirs"
    place.mkdir()
    file = place / "settings.toml"
    file.write_text("max_attempts = 3\n")
    os.chown(place, 12345, -1)

    (output,) = insecure_file_warnings(file, uid=0)

    assert "can replace settings.toml" in output

"""Sessions and machines on which something is missing: a right answer, or one sentence, and never a bug report."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from echod import paths
from echod.cli.output import short_path
from echod.errors import ConfigurationError
from echod.paths import expand_home, home_directory, paths_from_environment
from echod.projects.discovery import ProjectLocator
from echod.service.paths import state_of_service
from tests.support import Home, make_project, running_daemon

BUG = "this is a bug in echod"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as a user id that has no account, and without HOME."""

    def no_account(uid: int) -> object:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", no_account)
    monkeypatch.delenv("HOME", raising=False)


@pytest.mark.usefixtures("nobody")
def test_without_a_home_directory_the_sentence_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Set HOME"):
        paths_from_environment({})
    with pytest.raises(ConfigurationError, match="Set HOME"):
        paths_from_environment({"HOME": "relative"})

    assert short_path(str(tmp_path)) == str(tmp_path)
    assert expand_home("~/x") == Path("~/x")
    assert ProjectLocator.from_environment({"CLAUDE_CONFIG_DIR": str(tmp_path)}).home is None


@pytest.mark.usefixtures("nobody")
def test_a_user_id_without_a_name_is_enough(tmp_path: Path) -> None:
    found = paths_from_environment({"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""})

    assert found.state.is_relative_to(tmp_path)
    assert found.config_file.is_relative_to(tmp_path)


def test_without_home_the_account_decides() -> None:
    assert home_directory({}) == Path(pwd.getpwuid(os.getuid()).pw_dir)


def test_a_home_directory_of_everything_shortens_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")

    assert short_path("/tmp/x") == "/tmp/x"


@pytest.mark.parametrize("theirs", ["owner", "missing", "file"])
def test_a_runtime_directory_that_is_not_ours_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: str
) -> None:
    monkeypatch.setattr(paths, "RUN_USER", tmp_path / "none")
    session = tmp_path / "session"
    if theirs == "file":
        session.write_text("")
    elif theirs == "owner":
        if os.getuid() != 0:
            pytest.skip("only root can give a directory to another user")
        session.mkdir()
        os.chown(session, 12345, 12345)

    found = paths_from_environment({"XDG_RUNTIME_DIR": str(session), "ECHOD_STATE_DIR": str(tmp_path / "state")})

    assert found.runtime == tmp_path / "state/run"


def test_a_deleted_directory_is_no_obstacle_to_what_needs_none(home: Home, tmp_path: Path) -> None:
    project = make_project(tmp_path / "p")
    gone = tmp_path / "gone"
    script = "import os, sys; os.rmdir(os.getcwd()); sys.argv[0] = 'echod'; from echod.cli.main import main; main()"

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        gone.mkdir()
        command = [sys.executable, "-c", script, *map(str, words)]
        return subprocess.run(command, cwd=gone, env=home.environ, capture_output=True, text=True, timeout=60)

    assert run("status").returncode == 3
    assert run("show", project).returncode == 0
    for words in (("gate",), ("show", "x/y"), ("add", "p"), ("undo", "--last"), ("init",)):
        refused = run(*words)
        assert refused.returncode in (1, 2), (words, refused)
        assert BUG not in refused.stderr
    assert "does not exist any more" in run("add", "p").stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["status --json", "help prune", "--help", "projects"])
def test_output_to_a_full_device_is_one_sentence(home: Home, words: str) -> None:
    command = [sys.executable, "-m", "echod", *words.split()]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, env=home.environ, cwd=home.root, stdout=full, stderr=subprocess.PIPE, text=True)

    assert done.returncode == 1
    assert done.stderr.splitlines() == ["echod: The output cannot be written: no space left on device."]


def test_closed_streams_are_no_obstacle(home: Home) -> None:
    command = f"exec {sys.executable} -m echod status >&- 2>&- <&-"

    done = subprocess.run(["/bin/sh", "-c", command], env=home.environ, cwd=home.root, capture_output=True)

    assert done.returncode == 3


def test_an_unknown_user_in_a_path_is_a_path_that_does_not_exist(home: Home) -> None:
    done = home.echod("add", "~no-such-user/x")

    assert done.returncode == 2
    assert BUG not in done.stderr


def test_a_session_with_another_environment_sees_the_running_service(home: Home, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    with running_daemon(home):
        seen = home.echod("status", ECHOD_RUNTIME_DIR=str(other))

    assert seen.returncode == 0, seen.stdout
    assert "is healthy" in seen.stdout
    assert list(other.iterdir()) == []


def test_settings_that_became_invalid_are_a_warning_while_the_service_runs(home: Home) -> None:
    config = home.root / "config.toml"
    config.write_text("quiet_seconds = 0\n")
    named = Home(home.root, {"ECHOD_CONFIG": str(config)})
    with running_daemon(named):
        assert named.echod("status").returncode == 0
        config.write_text("quiet_secnds = 0\n")
        degraded = named.echod("status")
        missing = home.echod("--config", home.root / "nope.toml", "status")

    assert degraded.returncode == 1
    assert "settings-invalid" in degraded.stdout
    assert "config check" in degraded.stdout
    assert (missing.returncode, "nope.toml" in missing.stderr) == (78, True)


def test_a_service_with_another_state_directory_is_named(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "ECHOD_STATE_DIR": str(tmp_path / "mine")}
    unit = tmp_path / ".config/systemd/user/echod.service"
    unit.parent.mkdir(parents=True)

    assert state_of_service("linux", environ) is None
    unit.write_text(f'Environment="ECHOD_STATE_DIR={tmp_path}/theirs"\nExecStart="echod" "run"\n')
    assert state_of_service("linux", environ) == tmp_path / "theirs"
    unit.write_text(f'Environment="ECHOD_STATE_DIR={tmp_path}/mine"\n')
    assert state_of_service("linux", environ) is None

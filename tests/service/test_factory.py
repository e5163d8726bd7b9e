from __future__ import annotations

from pathlib import Path

import pytest

from echod.paths import Paths
from echod.runtime.heartbeat import DaemonState, Liveness
from echod.service.base import CommandRunner, ServiceConfig, ServiceError
from echod.service.factory import create_service
from echod.service.launchd import LaunchdService
from echod.service.paths import recovery_hint, start_hint
from echod.service.systemd import SystemdService


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "state", tmp_path / "run", tmp_path / "config.toml")


@pytest.mark.parametrize(
    ("environ", "below"),
    [
        pytest.param({}, "home/.config", id="the usual place"),
        pytest.param(
            {"XDG_CONFIG_HOME": "relative"}, "home/.config", id="a relative one is ignored, as the standard says"
        ),
        pytest.param({"XDG_CONFIG_HOME": "/etc/mine"}, "/etc/mine", id="where the variable says"),
    ],
)
def test_on_linux_the_unit_is_in_systemds_directory(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], below: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "")  # and no systemctl is asked

    service = create_service("linux", paths, "0.1.0", {**environ, "HOME": str(tmp_path / "home")})

    assert isinstance(service, SystemdService)
    state = service.read_state(ServiceConfig(("/bin/echod", "run"), ()))
    assert state.file == tmp_path / below / "systemd" / "user" / "echod.service"
    assert (state.installed, state.active) == (False, None)
    assert state.detail == "systemctl is not installed here."


def test_on_macos_it_is_a_launchd_agent(paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")

    service = create_service("darwin", paths, "0.1.0", {"HOME": str(tmp_path)})

    assert isinstance(service, LaunchdService)
    state = service.read_state(ServiceConfig(("/bin/echod", "run"), ()))
    assert state.file == tmp_path / "Library" / "LaunchAgents" / "local.echod.plist"
    assert state.active is None


def test_elsewhere_the_error_contains_the_command_to_run(paths: Paths) -> None:
    with pytest.raises(ServiceError, match="echod run"):
        create_service("win32", paths, "0.1.0", {})


def test_a_command_that_does_not_end_is_an_error() -> None:
    with pytest.raises(ServiceError, match="did not end within"):
        CommandRunner("sleep", timeout_seconds=0.05).run("60")


def test_a_failed_command_has_its_last_line() -> None:
    answer = CommandRunner("sh", "-c").run("echo one; echo first >&2; echo second >&2; exit 3")

    assert (answer.code, answer.error_line) == (3, "second")
    assert CommandRunner("sh", "-c").run("exit 4").error_line == "it ended with code 4"


@pytest.mark.parametrize(
    ("platform", "file"),
    [("linux", "home/.config/systemd/user/echod.service"), ("darwin", "home/Library/LaunchAgents/local.echod.plist")],
)
def test_a_service_is_started_only_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, file: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert start_hint(platform, {"HOME": str(tmp_path / "home")}) == "echod service install, or echod run"

    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).touch()

    assert start_hint(platform, {"HOME": str(tmp_path / "home")}) == "echod service start, or echod run"


def test_without_a_service_manager_the_hint_is_echod_run() -> None:
    assert start_hint("win32", {}) == "echod run"


@pytest.mark.parametrize(
    ("state", "without", "installed"),
    [
        (
            DaemonState.STOPPED,
            "Start it with: echod service install, or echod run",
            "Start it with: echod service start,",
        ),
        (
            DaemonState.HUNG,
            "No service is installed. Restart the daemon the way it was started: kill 42,",
            "echod service restart",
        ),
        (
            DaemonState.UPGRADED,
            "No service is installed. Restart the daemon the way it was started: kill 42,",
            "echod service restart",
        ),
        (DaemonState.SUSPENDED, "Resume it with: kill -CONT 42", "Resume it with: kill -CONT 42"),
        (DaemonState.STARTING, "Try again in a moment.", "Try again in a moment."),
        (DaemonState.RUNNING, "", ""),
    ],
)
def test_a_hint_names_the_service_only_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: DaemonState, without: str, installed: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    liveness = Liveness(state, "It is as it is.", None, 42)
    unit = tmp_path / ".config/systemd/user/echod.service"

    assert recovery_hint(liveness, "linux", {"HOME": str(tmp_path)}).startswith(without)

    unit.parent.mkdir(parents=True)
    unit.touch()
    assert installed in recovery_hint(liveness, "linux", {"HOME": str(tmp_path)})

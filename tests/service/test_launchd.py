from __future__ import annotations

import plistlib
from pathlib import Path

import pytest

from echod.errors import ExitCode
from echod.runtime.heartbeat import DaemonState, Liveness
from echod.service.base import ForeignFileError, ServiceConfig, ServiceError
from echod.service.launchd import BOOTSTRAP_ATTEMPTS, LaunchdService
from echod.service.paths import LAUNCHD_LABEL, PLIST_NAME
from tests.service.fakes import FakeSupervisor
from tests.support import Home


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    return tmp_path / "Library" / "LaunchAgents"


@pytest.fixture
def service(supervisor: FakeSupervisor, agents: Path, tmp_path: Path) -> LaunchdService:
    return LaunchdService(
        agent_directory=agents,
        launchctl=supervisor.tool,
        uid=501,
        log_file=tmp_path / "state" / "log" / "echod.log",
        probe=supervisor.probe,
        clock=supervisor.clock,
    )


def test_install_writes_and_bootstraps_into_the_users_session(
    service: LaunchdService, supervisor: FakeSupervisor, agents: Path, service_config: ServiceConfig, tmp_path: Path
) -> None:
    service.install(service_config, force=False)

    assert supervisor.changing_calls() == [f"bootstrap gui/501 {agents / PLIST_NAME}"]
    agent = plistlib.loads((agents / PLIST_NAME).read_bytes())
    assert agent["ProgramArguments"] == ["/opt/echod/bin/echod", "run"]
    assert (tmp_path / "state" / "log").is_dir()


def test_installing_again_does_nothing(
    service: LaunchdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    supervisor.calls()

    messages = service.install(service_config, force=False)

    assert supervisor.changing_calls() == []
    assert "nothing to do" in messages[0]


def test_a_changed_agent_replaces_the_loaded_one(
    service: LaunchdService, supervisor: FakeSupervisor, agents: Path, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    supervisor.calls()

    service.install(ServiceConfig(("/new/echod", "run"), ()), force=False)

    assert supervisor.changing_calls() == [
        f"bootout gui/501/{LAUNCHD_LABEL}",
        f"bootstrap gui/501 {agents / PLIST_NAME}",
    ]


def test_an_agent_that_is_still_ending_is_retried(
    service: LaunchdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    supervisor.fail_next("bootstrap", 5, 5)

    service.install(service_config, force=False)

    assert len(supervisor.changing_calls()) == 3


def test_without_a_graphical_session_that_is_explained_in_the_end(
    service: LaunchdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    supervisor.fail_next("bootstrap", *[5] * BOOTSTRAP_ATTEMPTS)

    with pytest.raises(ServiceError, match="graphical login"):
        service.install(service_config, force=False)


def test_any_other_failure_is_reported_at_once(
    service: LaunchdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    supervisor.fail_next("bootstrap", 1)

    with pytest.raises(ServiceError, match="made to fail"):
        service.install(service_config, force=False)

    assert len(supervisor.changing_calls()) == 1


def test_loaded_is_not_enough_if_it_does_not_answer(
    supervisor: FakeSupervisor, agents: Path, service_config: ServiceConfig, tmp_path: Path
) -> None:
    silent = LaunchdService(
        agent_directory=agents,
        launchctl=supervisor.tool,
        uid=501,
        log_file=tmp_path / "log" / "echod.log",
        probe=lambda: Liveness(DaemonState.STOPPED, "The daemon is not running.", None),
        clock=supervisor.clock,
    )

    with pytest.raises(ServiceError, match=r"does not answer\. The daemon is not running"):
        silent.install(service_config, force=False)


def test_a_foreign_file_is_kept_unless_forced(
    service: LaunchdService, supervisor: FakeSupervisor, agents: Path, service_config: ServiceConfig
) -> None:
    agents.mkdir(parents=True)
    (agents / PLIST_NAME).write_text("<plist/>")

    with pytest.raises(ForeignFileError):
        service.install(service_config, force=False)
    with pytest.raises(ForeignFileError):
        service.uninstall(force=False)
    assert (agents / PLIST_NAME).read_text() == "<plist/>"
    assert supervisor.changing_calls() == []


def test_a_daemon_outside_of_the_service_is_named_and_not_touched(
    service: LaunchdService, supervisor: FakeSupervisor, agents: Path, service_config: ServiceConfig
) -> None:
    supervisor.set_running()

    with pytest.raises(ServiceError, match="process 4711"):
        service.install(service_config, force=False)

    assert not agents.exists()


def test_stop_start_restart_and_uninstall(
    service: LaunchdService, supervisor: FakeSupervisor, agents: Path, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    supervisor.calls()
    target = f"gui/501/{LAUNCHD_LABEL}"

    service.stop()
    assert not supervisor.is_running()
    service.start()
    assert service.start() == ("The service is already running.",)
    service.restart()
    service.uninstall(force=False)

    assert supervisor.changing_calls() == [
        f"kill SIGTERM {target}",
        f"kickstart {target}",
        f"kickstart -k {target}",
        f"bootout {target}",
    ]
    assert list(agents.iterdir()) == []
    assert service.uninstall(force=False) == ("It is not installed.",)


def test_verbs_need_an_installation(service: LaunchdService) -> None:
    for verb in (service.start, service.stop, service.restart):
        with pytest.raises(ServiceError, match="echod service install"):
            verb()


def test_the_state_contains_installed_and_loaded(
    service: LaunchdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    before = service.read_state(service_config)
    service.install(service_config, force=False)
    after = service.read_state(service_config)

    assert (before.installed, before.active) == (False, False)
    assert (after.installed, after.up_to_date, after.active) == (True, True, True)


def test_the_logs_are_in_a_file(service: LaunchdService, tmp_path: Path) -> None:
    assert service.logs_command(lines=5, follow=True) == (
        "tail",
        "-n",
        "5",
        "-F",
        str(tmp_path / "state" / "log" / "echod.log"),
    )


@pytest.mark.parametrize(
    ("broken", "launchd_name", "code"),
    [
        pytest.param({"ECHOD_QUIET_SECONDS": "soon"}, LAUNCHD_LABEL, 0, id="launchd would restart it for ever"),
        pytest.param({"ECHOD_QUIET_SECONDS": "soon"}, "0", ExitCode.CONFIGURATION, id="a terminal on a Mac"),
        pytest.param({"ECHOD_QUIET_SECONDS": "soon"}, "", ExitCode.CONFIGURATION, id="systemd knows the code"),
        pytest.param(
            {"ECHOD_STATE_DIR": "/dev/null/state"}, LAUNCHD_LABEL, ExitCode.FAILED, id="a failure is restarted"
        ),
    ],
)
def test_an_invalid_configuration_is_not_restarted(
    tmp_path: Path, broken: dict[str, str], launchd_name: str, code: int
) -> None:
    result = Home(tmp_path, {"XPC_SERVICE_NAME": launchd_name, **broken}).echod("run")

    assert result.returncode == code, result.stderr


def test_under_launchd_an_invalid_configuration_is_in_the_log(tmp_path: Path) -> None:
    home = Home(tmp_path)

    home.echod("run", XPC_SERVICE_NAME=LAUNCHD_LABEL, ECHOD_QUIET_SECONDS="soon")

    assert "quiet_seconds" in (home.state / "log" / "echod.log").read_text().lower()

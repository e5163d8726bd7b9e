from __future__ import annotations

from pathlib import Path

import pytest

from echod.errors import ConfigurationError
from echod.runtime.heartbeat import DaemonState, Liveness
from echod.service.base import ForeignFileError, ServiceConfig, ServiceError
from echod.service.paths import SYSTEMD_UNIT
from echod.service.systemd import SystemdService
from tests.service.fakes import FakeSupervisor


@pytest.fixture
def units(tmp_path: Path) -> Path:
    return tmp_path / "config" / "systemd" / "user"


@pytest.fixture
def service(supervisor: FakeSupervisor, units: Path) -> SystemdService:
    return SystemdService(
        unit_directory=units,
        systemctl=supervisor.tool,
        loginctl=supervisor.tool,
        probe=supervisor.probe,
        clock=supervisor.clock,
        user="me",
    )


def test_install_writes_enables_and_starts(
    service: SystemdService, supervisor: FakeSupervisor, units: Path, service_config: ServiceConfig
) -> None:
    messages = service.install(service_config, force=False)

    assert supervisor.changing_calls() == [
        "daemon-reload",
        f"enable {SYSTEMD_UNIT}",
        f"reset-failed {SYSTEMD_UNIT}",
        f"restart {SYSTEMD_UNIT}",
    ]
    assert b'ExecStart="/opt/echod/bin/echod" "run"' in (units / SYSTEMD_UNIT).read_bytes()
    assert str(units / SYSTEMD_UNIT) in messages[0]
    assert [path.name for path in units.iterdir()] == [SYSTEMD_UNIT]


def test_installing_again_changes_and_restarts_nothing(
    service: SystemdService, supervisor: FakeSupervisor, units: Path, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    inode = (units / SYSTEMD_UNIT).stat().st_ino
    supervisor.calls()

    messages = service.install(service_config, force=False)

    assert supervisor.changing_calls() == [f"enable {SYSTEMD_UNIT}"]
    assert (units / SYSTEMD_UNIT).stat().st_ino == inode
    assert "nothing to do" in messages[0]


def test_installing_after_a_move_restarts_with_the_new_path(
    service: SystemdService, supervisor: FakeSupervisor, units: Path, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    supervisor.calls()

    service.install(service_config._replace(command=("/new/echod", "run")), force=False)

    assert f"restart {SYSTEMD_UNIT}" in supervisor.changing_calls()
    assert b"/new/echod" in (units / SYSTEMD_UNIT).read_bytes()


def test_installing_after_an_upgrade_restarts_the_old_version(
    service: SystemdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    supervisor.calls()
    supervisor.version = "0.0.9"

    service.install(service_config, force=False)

    assert f"restart {SYSTEMD_UNIT}" in supervisor.changing_calls()


def test_a_foreign_unit_is_kept_unless_forced(
    service: SystemdService, supervisor: FakeSupervisor, units: Path, service_config: ServiceConfig
) -> None:
    units.mkdir(parents=True)
    (units / SYSTEMD_UNIT).write_text("[Service]\nExecStart=/mine\n")

    with pytest.raises(ForeignFileError, match="--force"):
        service.install(service_config, force=False)
    with pytest.raises(ForeignFileError, match="--force"):
        service.uninstall(force=False)
    assert (units / SYSTEMD_UNIT).read_text() == "[Service]\nExecStart=/mine\n"
    assert supervisor.changing_calls() == []

    service.install(service_config, force=True)
    assert b"/opt/echod" in (units / SYSTEMD_UNIT).read_bytes()


def test_where_no_user_manager_answers_nothing_is_written(
    service: SystemdService, supervisor: FakeSupervisor, units: Path, service_config: ServiceConfig
) -> None:
    supervisor.fail_next("show", 1)

    with pytest.raises(ServiceError, match="Log in to a session of your own"):
        service.install(service_config, force=False)

    assert not units.exists()


def test_a_daemon_outside_of_the_service_is_named_and_not_touched(
    service: SystemdService, supervisor: FakeSupervisor, units: Path, service_config: ServiceConfig
) -> None:
    supervisor.set_running(pid=1)

    with pytest.raises(ServiceError, match="process 4711"):
        service.install(service_config, force=False)

    assert not units.exists()


def test_a_unit_that_systemd_does_not_find_is_explained(
    service: SystemdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    supervisor.set_properties(LoadState="not-found")

    with pytest.raises(ServiceError, match="XDG_CONFIG_HOME"):
        service.install(service_config, force=False)


def test_an_invalid_configuration_is_reported_as_such(
    service: SystemdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    supervisor.fail_next("restart", 1)
    supervisor.set_properties(ExecMainStatus="78")

    with pytest.raises(ConfigurationError, match="echod config"):
        service.install(service_config, force=False)


def test_any_other_failure_to_start_leads_to_the_logs(
    service: SystemdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    supervisor.fail_next("restart", 1)

    with pytest.raises(ServiceError, match=r"made to fail.*echod service logs"):
        service.install(service_config, force=False)


def test_started_is_not_enough_if_it_does_not_answer(
    supervisor: FakeSupervisor, units: Path, service_config: ServiceConfig
) -> None:
    silent = SystemdService(
        unit_directory=units,
        systemctl=supervisor.tool,
        loginctl=supervisor.tool,
        probe=lambda: Liveness(DaemonState.STOPPED, "The daemon is not running.", None),
        clock=supervisor.clock,
        user="me",
    )

    with pytest.raises(ServiceError, match=r"does not answer\. The daemon is not running"):
        silent.install(service_config, force=False)


@pytest.mark.parametrize(("linger", "expected"), [("yes", False), ("no", True)])
def test_lingering_is_explained_where_it_is_off_and_never_switched(
    service: SystemdService, supervisor: FakeSupervisor, service_config: ServiceConfig, linger: str, expected: bool
) -> None:
    supervisor.set_properties(Linger=linger)

    sentences = service.install(service_config, force=False)

    assert any("loginctl enable-linger me" in sentence for sentence in sentences) is expected
    assert not any("enable-linger" in call for call in supervisor.calls())


def test_uninstall_leaves_nothing(
    service: SystemdService, supervisor: FakeSupervisor, units: Path, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    (units / "default.target.wants").mkdir()
    (units / "default.target.wants" / SYSTEMD_UNIT).symlink_to(units / SYSTEMD_UNIT)
    supervisor.calls()

    messages = service.uninstall(force=False)

    assert supervisor.changing_calls() == [
        f"disable --now {SYSTEMD_UNIT}",
        "daemon-reload",
        f"reset-failed {SYSTEMD_UNIT}",
    ]
    assert [path for path in units.rglob("*") if not path.is_dir()] == []
    assert messages == ("The service is removed. Memory, settings and state are kept.",)
    assert service.uninstall(force=False) == ("It is not installed.",)


def test_uninstall_works_where_systemd_no_longer_answers(
    service: SystemdService, supervisor: FakeSupervisor, units: Path, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    supervisor.fail_next("disable", 1)

    messages = service.uninstall(force=False)

    assert not (units / SYSTEMD_UNIT).exists()
    assert "could not stop the service" in messages[1]


def test_uninstall_keeps_the_users_drop_ins_and_reports_it(
    service: SystemdService, units: Path, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    (units / f"{SYSTEMD_UNIT}.d").mkdir()
    (units / f"{SYSTEMD_UNIT}.d" / "own.conf").write_text("[Service]\nNice=19\n")

    messages = service.uninstall(force=False)

    assert (units / f"{SYSTEMD_UNIT}.d" / "own.conf").exists()
    assert f"{SYSTEMD_UNIT}.d" in messages[-1]


def test_start_stop_and_restart_need_an_installation(service: SystemdService) -> None:
    for verb in (service.start, service.stop, service.restart):
        with pytest.raises(ServiceError, match="echod service install"):
            verb()


def test_start_of_a_running_service_changes_nothing(
    service: SystemdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    supervisor.calls()

    assert service.start() == ("The service is already running.",)
    assert supervisor.changing_calls() == []


def test_stop_start_and_restart_call_systemd_and_then_probe_the_daemon(
    service: SystemdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    supervisor.calls()

    service.stop()
    assert not supervisor.is_running()
    service.start()
    assert supervisor.is_running()
    service.restart()

    assert [call for call in supervisor.changing_calls() if "reset" not in call] == [
        f"stop {SYSTEMD_UNIT}",
        f"start {SYSTEMD_UNIT}",
        f"restart {SYSTEMD_UNIT}",
    ]


def test_a_daemon_that_outlives_the_stop_is_reported(
    service: SystemdService, supervisor: FakeSupervisor, units: Path, service_config: ServiceConfig
) -> None:
    service.install(service_config, force=False)
    stubborn = SystemdService(
        unit_directory=units,
        systemctl=supervisor.tool,
        loginctl=supervisor.tool,
        probe=lambda: Liveness(DaemonState.RUNNING, "healthy", None),
        clock=supervisor.clock,
        user="me",
    )

    assert "still running" in stubborn.stop()[0]


def test_the_state_contains_installed_up_to_date_and_active(
    service: SystemdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    before = service.read_state(service_config)
    service.install(service_config, force=False)
    supervisor.set_properties(ActiveState="active")
    after = service.read_state(service_config)
    moved = service.read_state(service_config._replace(command=("/new", "run")))

    assert (before.installed, before.up_to_date, before.active) == (False, False, False)
    assert (after.installed, after.up_to_date, after.active) == (True, True, True)
    assert (moved.installed, moved.up_to_date) == (True, False)


def test_the_state_reports_that_no_manager_answers(
    service: SystemdService, supervisor: FakeSupervisor, service_config: ServiceConfig
) -> None:
    supervisor.fail_next("show", 1)

    assert service.read_state(service_config).active is None


def test_the_logs_are_in_the_journal(service: SystemdService) -> None:
    assert service.logs_command(lines=50, follow=False) == (
        "journalctl",
        "--user-unit=echod.service",
        "--lines=50",
        "--no-pager",
    )
    assert "--follow" in service.logs_command(lines=50, follow=True)

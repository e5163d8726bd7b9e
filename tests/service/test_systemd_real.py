"""The service under a real systemd user manager: the same files, the real daemon, real signals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from echod.runtime.heartbeat import HEARTBEAT_SECONDS
from tests.service.systemd_manager import SystemdManager, running_manager, skip_reason
from tests.support import finding_text, until

UNIT = "echod.service"

_REASON = skip_reason()
pytestmark = [
    pytest.mark.skipif(bool(_REASON), reason=f"no systemd user manager can run here: {_REASON}"),
]

_LIVENESS = """
import os, time
from echod import __version__
from echod.runtime.heartbeat import read_liveness
from echod.paths import paths_from_environment
print(read_liveness(paths_from_environment(os.environ), __version__, time.monotonic()).state)
"""


class InstalledService:
    """The commands of a user, run inside the manager's namespaces."""

    def __init__(self, rig: SystemdManager, state: Path, config: Path) -> None:
        self.rig = rig
        self.state = state
        self.config = config

    def run_verb(self, verb: str, *, code: int = 0) -> str:
        return self.echod("service", verb, code=code)

    def echod(self, *arguments: str, code: int = 0) -> str:
        done = self.rig.run(sys.executable, "-m", "echod", *arguments)
        output = done.stdout + done.stderr
        assert done.returncode == code, output + self.rig.log.read_text(errors="replace")
        return " ".join(output.split())

    def customise(self, text: str) -> None:
        """Write the user's drop-in, as `systemctl --user edit` would."""
        drop_in = self.rig.units / f"{UNIT}.d" / "own.conf"
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text(f"[Service]\n{text}\n")

    def liveness(self) -> str:
        return self.rig.run(sys.executable, "-c", _LIVENESS).stdout.strip()

    def show(self, name: str) -> str:
        return self.rig.show(UNIT, name)

    def signal(self, name: str) -> None:
        assert self.rig.systemctl("kill", "--kill-whom=main", f"--signal={name}", UNIT).returncode == 0

    def until(self, name: str, wanted: str) -> None:
        self._until(name, lambda found: found == wanted)

    def until_not(self, name: str, unwanted: str) -> None:
        self._until(name, lambda found: found != unwanted)

    def _until(self, name: str, good: Callable[[str], bool]) -> None:
        until(lambda: good(self.show(name)), f"another {name} than {self.show(name)!r}")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[InstalledService]:
    state, config = tmp_path / "state", tmp_path / "config.toml"
    config.write_text("")
    with running_manager({"ECHOD_STATE_DIR": str(state), "ECHOD_CONFIG": str(config)}) as rig:
        yield InstalledService(rig, state, config)


@pytest.mark.slow
def test_install_starts_answers_and_is_enabled_for_the_next_login(service: InstalledService) -> None:
    output = service.run_verb("install")

    assert "The service is running" in output
    assert (service.show("ActiveState"), service.show("SubState")) == ("active", "running")
    assert service.show("UnitFileState") == "enabled"
    assert service.show("StatusText").startswith("healthy")
    assert service.liveness() == "running"
    first = service.show("MainPID")

    again = service.run_verb("install")

    assert "nothing to do" in again
    assert service.show("MainPID") == first


@pytest.mark.slow
def test_a_reload_is_reported_and_the_same_process_continues(service: InstalledService) -> None:
    service.run_verb("install")
    before = service.show("MainPID")

    assert service.rig.systemctl("reload", UNIT).returncode == 0

    service.until("ActiveState", "active")
    assert service.show("MainPID") == before
    assert service.liveness() == "running"


@pytest.mark.slow
def test_a_killed_daemon_is_restarted_automatically(service: InstalledService) -> None:
    service.customise("RestartSec=100ms")
    service.run_verb("install")

    service.signal("SIGKILL")

    service.until("NRestarts", "1")
    service.until("ActiveState", "active")
    assert service.liveness() == "running"


@pytest.mark.slow
def test_the_watchdog_keeps_a_healthy_daemon_and_replaces_a_hung_one(service: InstalledService) -> None:
    """A suspended daemon looks alive from outside. Only the missing progress shows the problem."""
    service.customise(f"WatchdogSec={2 * HEARTBEAT_SECONDS + 2}\nTimeoutAbortSec=1\nRestartSec=100ms")
    service.run_verb("install")

    first = service.show("WatchdogTimestampMonotonic")
    service.until_not("WatchdogTimestampMonotonic", first)
    assert service.show("NRestarts") == "0"

    service.signal("SIGSTOP")
    assert service.liveness() == "suspended"

    service.until("NRestarts", "1")
    service.until("ActiveState", "active")
    assert service.liveness() == "running"


@pytest.mark.slow
def test_a_job_runs_within_the_units_limits(service: InstalledService, tmp_path: Path) -> None:
    """Leases, exchanges, locks and syncs pass the filter of system calls."""
    service.config.write_text("quiet_seconds = 0\ndebounce_seconds = 0.05\n")
    role = tmp_path / "project" / ".rune" / "echoes" / "reviewer"
    role.mkdir(parents=True)
    service.run_verb("install")
    service.echod("add", str(tmp_path / "project"))

    (role / "ward-findings.md").write_text(finding_text("Retries need a ceiling"))

    until((role / "MEMORY.md").exists, "the memory file")
    assert "Retries need a ceiling" in (role / "MEMORY.md").read_text()
    assert service.liveness() == "running"


@pytest.mark.slow
def test_an_invalid_configuration_is_reported_and_not_restarted(service: InstalledService) -> None:
    service.customise("RestartSec=100ms")
    service.run_verb("install")
    service.config.write_text("no_such_setting = 1\n")

    output = service.run_verb("restart", code=78)

    assert "configuration" in output
    assert (service.show("ActiveState"), service.show("Result")) == ("failed", "exit-code")
    assert service.show("ExecMainStatus") == "78"
    assert service.show("NRestarts") == "0"


@pytest.mark.slow
def test_stop_is_clean_start_works_again_and_uninstall_leaves_nothing(service: InstalledService) -> None:
    service.run_verb("install")

    service.run_verb("stop")
    assert (service.show("ActiveState"), service.show("Result")) == ("inactive", "success")
    assert service.liveness() == "stopped"

    service.run_verb("start")
    assert service.liveness() == "running"

    service.run_verb("uninstall")
    assert [path for path in service.rig.units.rglob("*") if not path.is_dir()] == []
    assert (service.show("LoadState"), service.show("MainPID")) == ("not-found", "0")
    assert service.liveness() == "stopped"
    assert service.state.is_dir()
    assert "not installed" in service.run_verb("uninstall")

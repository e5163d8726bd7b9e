"""Which supervisor this machine has."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Mapping

from echod.paths import Paths
from echod.runtime.heartbeat import Liveness, read_liveness
from echod.service.base import Clock, CommandRunner, Service, ServiceError
from echod.service.launchd import LaunchdService
from echod.service.paths import launchd_agent_directory, systemd_unit_directory
from echod.service.systemd import SystemdService


def create_service(platform: str, paths: Paths, version: str, environ: Mapping[str, str]) -> Service:
    """The service of this user on this machine.

    Args:
        platform: as in `sys.platform`.
        paths: where the daemon's lock and heartbeat are.
        version: our version.
        environ: the environment; `XDG_CONFIG_HOME` says where systemd looks for the user's units.

    Raises:
        ServiceError: there is no supervisor that we know.
    """

    def probe() -> Liveness:
        return read_liveness(paths, version, time.monotonic())

    clock = Clock(time.monotonic, time.sleep)
    if platform == "linux":
        return SystemdService(
            unit_directory=systemd_unit_directory(environ),
            systemctl=CommandRunner("systemctl", "--user", "--no-pager"),
            loginctl=CommandRunner("loginctl"),
            probe=probe,
            clock=clock,
            user=getpass.getuser(),
        )
    if platform == "darwin":
        return LaunchdService(
            agent_directory=launchd_agent_directory(),
            launchctl=CommandRunner("launchctl"),
            uid=os.getuid(),
            log_file=paths.log_file,
            probe=probe,
            clock=clock,
        )
    raise ServiceError("There is no service manager here that echod knows; let your own supervisor run: echod run")

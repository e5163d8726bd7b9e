"""Create the service of this machine's supervisor.

Small because it is the only module that constructs the implementations, which do not import each other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from echod.paths import Paths
from echod.runtime import Liveness, read_liveness
from echod.service.base import Clock, CommandRunner, Service, ServiceError
from echod.service.launchd import LaunchdService
from echod.service.paths import launchd_agent_directory, systemd_unit_directory
from echod.service.systemd import SystemdService


def create_service(platform: str, paths: Paths, version: str, environ: Mapping[str, str]) -> Service:
    """Return the service of this user on this machine. `platform` is as in `sys.platform`.

    Raises:
        ServiceError: the platform has no supported supervisor.
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
            user=str(os.getuid()),  # loginctl takes the number too, and not every user has a name
        )
    if platform == "darwin":
        return LaunchdService(
            agent_directory=launchd_agent_directory(environ),
            launchctl=CommandRunner("launchctl"),
            uid=os.getuid(),
            log_file=paths.log_file,
            probe=probe,
            clock=clock,
        )
    raise ServiceError("echod supports no service manager here. Configure your own supervisor to run: echod run")

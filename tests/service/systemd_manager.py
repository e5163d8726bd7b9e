"""Run a real systemd user manager in its own namespaces, without a trace outside and without survivors at its end.

It sees the same files, but its own /run, process numbers and control groups. Programs are run inside with nsenter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAMS = ("systemctl", "unshare", "nsenter", "setsid")
MANAGERS = ("/lib/systemd/systemd", "/usr/lib/systemd/systemd")
BOOT_SECONDS = 30

# The control group comes first: inside the new namespace it is the root, and systemd moves everything it finds in its
# root. systemd must not be process 1, or it would take itself for the system's manager.
_INNER_SCRIPT = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/groups
mount -t cgroup2 none /run/groups
mkdir "/run/groups/$RIG"
echo 0 > "/run/groups/$RIG/cgroup.procs"
exec unshare --cgroup sh -ec '
  mount -t cgroup2 none /sys/fs/cgroup
  "$MANAGER" --user --log-target=console --log-level=info &
  echo ready
  wait
'
"""

_CLEANUP_SCRIPT = """
set -e
mount -t cgroup2 none /mnt
[ ! -d "/mnt/$RIG" ] || find "/mnt/$RIG" -depth -type d -exec rmdir {} +
"""


class SystemdManager:
    """A running manager, and how to run programs in it."""

    def __init__(self, base: Path, inside: int, environ: dict[str, str]) -> None:
        self.home = base / "home"
        self.runtime = base / "run"
        self.log = base / "manager.log"
        self._inside = inside
        self._environ = environ

    @property
    def units(self) -> Path:
        return self.home / ".config" / "systemd" / "user"

    @property
    def environ(self) -> dict[str, str]:
        """The environment of programs inside."""
        return dict(self._environ)

    @property
    def enter(self) -> tuple[str, ...]:
        """The words before a command that run it inside."""
        return ("nsenter", f"--target={self._inside}", "--mount", "--pid", "--cgroup", f"--wd={self.home}")

    def run(self, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a program inside."""
        return subprocess.run(
            [*self.enter, *command],
            env={**self._environ, **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def systemctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("systemctl", "--user", "--no-pager", *arguments)

    def show(self, unit: str, name: str) -> str:
        return self.systemctl("show", unit, f"--property={name}", "--value").stdout.strip()


def skip_reason() -> str:
    """Return why the manager cannot be started here, or ""."""
    if os.name != "posix" or not Path("/proc/self/ns/cgroup").exists():
        return "no namespaces here"
    if os.geteuid() != 0:
        return "only root can give a manager its own control groups"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing or not _manager():
        return f"not installed: {', '.join(missing) or 'systemd'}"
    probe = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", "mount -t cgroup2 none /mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no namespaces or control groups here: {probe.stderr.strip()}" if probe.returncode else ""


def _manager() -> str:
    return next((path for path in MANAGERS if Path(path).exists()), "")


@contextmanager
def running_manager(environ: dict[str, str]) -> Iterator[SystemdManager]:
    """Run a manager. `environ` is its environment besides the directories."""
    # Not pytest's directory: the path of a socket may have 107 bytes.
    base = Path(tempfile.mkdtemp(prefix="echod-rig-"))
    name = base.name
    try:
        for directory in ("home", "run"):
            (base / directory).mkdir(mode=0o700)
        inner = {
            **environ,
            "HOME": str(base / "home"),
            "XDG_RUNTIME_DIR": str(base / "run"),
            "PATH": os.environ["PATH"],
            "USER": "root",
            "LOGNAME": "root",
        }
        with (base / "manager.log").open("wb") as log:
            outer = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", _INNER_SCRIPT],
                env={**inner, "RIG": name, "MANAGER": _manager()},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            systemd_manager = SystemdManager(base, _find_inner_pid(outer), inner)
            _wait_for_boot(systemd_manager, outer)
            yield systemd_manager
        finally:
            outer.kill()  # and with it process 1 inside, and with that everything
            outer.wait()
            _remove_control_groups(name)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _find_inner_pid(outer: subprocess.Popen[bytes]) -> int:
    children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
    deadline = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < deadline and outer.poll() is None:
        if found := children.read_text().split():
            return int(found[0])
        time.sleep(0.01)
    raise RuntimeError("the namespaces could not be made")


def _wait_for_boot(rig: SystemdManager, outer: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < deadline and outer.poll() is None:
        if rig.systemctl("show", "--property=Version").returncode == 0:
            return
        time.sleep(0.05)
    pytest.fail(f"the user manager did not come up:\n{rig.log.read_text(errors='replace')}")


def _remove_control_groups(name: str) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", _CLEANUP_SCRIPT],
            env={**os.environ, "RIG": name},
            capture_output=True,
            check=False,
        )
        if done.returncode == 0:
            return
        time.sleep(0.05)

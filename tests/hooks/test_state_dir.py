"""Hook and daemon use the same state directory on every platform and in every environment."""

from __future__ import annotations

import os
import pwd

import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from echod.hooks.spool import state_directory
from echod.paths import paths_from_environment

ENVIRONMENTS = {
    "home": {"HOME": "/home/dev"},
    "home with slash": {"HOME": "/home/dev/"},
    "root": {"HOME": "/"},
    "no home": {},
    "empty home": {"HOME": ""},
    "relative home": {"HOME": "dev"},
    "xdg": {"HOME": "/home/dev", "XDG_STATE_HOME": "/var/lib/dev/"},
    "empty xdg": {"HOME": "/home/dev", "XDG_STATE_HOME": ""},
    "relative xdg": {"HOME": "/home/dev", "XDG_STATE_HOME": "state"},
    "xdg with a blank": {"HOME": "/home/dev", "XDG_STATE_HOME": "/var/my state"},
}


@pytest.fixture
def environ(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name in ("HOME", "XDG_STATE_HOME", "ECHOD_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    values: dict[str, str] = request.param
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return values


every_environment = pytest.mark.parametrize("environ", ENVIRONMENTS.values(), ids=list(ENVIRONMENTS), indirect=True)


@every_environment
def test_on_linux_the_directory_is_the_platforms(environ: dict[str, str]) -> None:
    assert os.path.normpath(state_directory(environ, "linux")) == os.path.normpath(Unix("echod").user_state_path)


@every_environment
def test_on_macos_the_directory_is_the_platforms(environ: dict[str, str]) -> None:
    assert os.path.normpath(state_directory(environ, "darwin")) == os.path.normpath(MacOS("echod").user_state_path)


@pytest.mark.parametrize(
    "environ",
    [
        *ENVIRONMENTS.values(),
        {"HOME": "/home/dev", "ECHOD_STATE_DIR": "/srv/echod"},
        {"HOME": "/h", "ECHOD_STATE_DIR": "~/s"},
    ],
    indirect=True,
)
def test_the_daemon_reads_where_the_hook_writes(environ: dict[str, str]) -> None:
    import sys

    assert os.path.normpath(state_directory(environ, sys.platform)) == str(paths_from_environment(environ).state)


def test_a_relative_state_directory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="here"):
        state_directory({"ECHOD_STATE_DIR": "here"}, "linux")


def test_without_a_home_variable_the_users_home_is_used() -> None:
    assert state_directory({}, "linux") == f"{pwd.getpwuid(os.getuid()).pw_dir}/.local/state/echod"

from __future__ import annotations

import os
from pathlib import Path

import pytest

from echod import paths
from echod.errors import ConfigurationError


def test_variables_decide_where_state_runtime_and_settings_are(tmp_path: Path) -> None:
    found = paths.paths_from_environment(
        {
            "ECHOD_STATE_DIR": str(tmp_path / "s"),
            "ECHOD_RUNTIME_DIR": str(tmp_path / "r"),
            "ECHOD_CONFIG": str(tmp_path / "c"),
        }
    )

    assert (found.state, found.runtime, found.config_file) == (tmp_path / "s", tmp_path / "r", tmp_path / "c")


def test_without_a_login_session_the_runtime_directory_is_private_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUN_USER", tmp_path / "absent")

    found = paths.paths_from_environment({"ECHOD_STATE_DIR": str(tmp_path)})

    assert found.runtime == tmp_path / "run"


def test_a_shell_without_the_variable_uses_the_directory_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUN_USER", tmp_path)
    session = tmp_path / str(os.getuid())
    session.mkdir()

    assert paths.paths_from_environment({}).runtime == session / "echod"
    assert paths.paths_from_environment({"XDG_RUNTIME_DIR": str(session)}).runtime == session / "echod"


def test_a_relative_directory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ECHOD_STATE_DIR must be an absolute path"):
        paths.paths_from_environment({"ECHOD_STATE_DIR": "state"})


def test_created_directories_are_private(tmp_path: Path) -> None:
    found = paths.paths_from_environment(
        {"ECHOD_STATE_DIR": str(tmp_path / "s"), "ECHOD_RUNTIME_DIR": str(tmp_path / "r")}
    )

    found.create_directories()

    for directory in (found.state, found.journal, found.spool, found.runtime, found.canary):
        assert directory.stat().st_mode & 0o777 == 0o700

"""The settings as plain values: defaults need no check, and are the same as if they were checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from echod.paths import all_defaults
from echod.settings import loader
from echod.settings.schema import Settings


def test_the_plain_defaults_are_those_that_are_checked(tmp_path: Path) -> None:
    assert loader.load_settings(tmp_path / "none.toml", {}) == Settings()


@pytest.mark.parametrize(
    ("environ", "nothing"),
    [
        pytest.param({}, True, id="no variables"),
        pytest.param({"HOME": "/", "ECHO": "x", "_ECHOD_COMPLETE": "x"}, True, id="foreign variables"),
        pytest.param({"ECHOD_STATE_DIR": "/x", "ECHOD_RUNTIME_DIR": "/y"}, True, id="the directories"),
        pytest.param({"ECHOD_CONFIG": "/x/none.toml"}, False, id="a file that was named must exist"),
        pytest.param({"ECHOD_QUIET_SECONDS": "5"}, False, id="a setting"),
        pytest.param({"ECHOD_GATE__SESSIONS": "0"}, False, id="a nested setting"),
        pytest.param({"ECHOD_QUIET_SECNDS": "5"}, False, id="a misspelt setting"),
    ],
)
def test_variables_that_set_something_are_checked(tmp_path: Path, environ: dict[str, str], nothing: bool) -> None:
    assert all_defaults(tmp_path / "none.toml", environ) is nothing


def test_a_file_is_checked_whatever_is_in_it(tmp_path: Path) -> None:
    empty, dangling = tmp_path / "config.toml", tmp_path / "link.toml"
    empty.touch()
    dangling.symlink_to(tmp_path / "nowhere")

    assert not all_defaults(empty, {})
    assert not all_defaults(dangling, {})


def test_a_project_has_its_own_line_limit_and_the_other_numbers_of_all() -> None:
    numbers = Settings(memory_line_limit=200, knowledge_line_limit=400).policy_settings(500)

    assert (numbers.memory_line_limit, numbers.knowledge_line_limit, numbers.pin_days) == (500, 400, 30)

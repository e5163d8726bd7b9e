"""`echod config`: the effective settings, their sources, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home without the settings of other tests."""
    return _HomeWithoutSettings(tmp_path)


class _HomeWithoutSettings(Home):
    @property
    def environ(self) -> dict[str, str]:
        inherited = {name: value for name, value in super().environ.items() if not name.startswith("ECHOD_")}
        return {**inherited, "ECHOD_STATE_DIR": str(self.state), "ECHOD_RUNTIME_DIR": str(self.root / "run")}


def read_settings(home: Home, *arguments: object, **changed: str) -> dict[str, tuple[object, str, str | None]]:
    done = home.echod(*arguments, "config", "show", "--json", before=(), cwd=None, **changed)
    assert done.returncode == 0, done.stderr
    return {one["key"]: (one["value"], one["source"], one["location"]) for one in json.loads(done.stdout)["settings"]}


def test_each_value_is_shown_with_its_source(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('# mine\nquiet_seconds = 5\nmode = "report"\n[policy]\nnoise_share = 0.3\n')

    found = read_settings(home, "--config", file, ECHOD_QUIET_SECONDS="7", ECHOD_GATE='{"sessions": false}')

    assert found["quiet_seconds"] == (7.0, "variable", "ECHOD_QUIET_SECONDS")
    assert found["gate.sessions"] == (False, "variable", "ECHOD_GATE")
    assert found["mode"] == ("report", "file", f"{file}:3")
    assert found["policy.noise_share"] == (0.3, "file", f"{file}:5")
    assert found["max_attempts"] == (5, "default", None)


def test_without_a_file_every_value_is_a_default_and_nothing_is_created(home: Home) -> None:
    found = read_settings(home)

    assert {source for _, source, _ in found.values()} == {"default"}
    assert not home.state.exists()
    assert "the defaults apply" in home.run("config", "check")


def test_the_list_is_readable_in_eighty_columns(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "a-directory-with-quite-a-long-name" / "and-another-one-below-it" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('projects = ["~/src/*"]\n')

    shown = home.run("--config", file, "config", "show")

    assert max(map(len, shown.splitlines())) <= 80
    assert "config.toml:1" in shown


def test_the_path_is_printed_alone_even_if_the_file_is_invalid(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("this is no TOML")

    assert home.run("--config", file, "config", "path") == f"{file}\n"


def test_valid_settings_are_reported_as_valid(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("quiet_seconds = 5\n")

    output = " ".join(home.run("--config", file, "config", "check").split())

    assert "is valid and sets 1 value." in output


def test_a_wrong_key_is_reported_with_its_line_and_the_likely_key(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("# mine\nmax_attempts = 0\nquiet_secnds = 3\n")

    result = home.echod("--config", file, "config", "check")

    assert result.returncode == 78
    assert result.stdout == ""
    assert f"{file}:2: max_attempts must be at least 1" in result.stderr
    assert f"{file}:3: there is no setting quiet_secnds; did you mean quiet_seconds?" in result.stderr
    assert home.echod("--config", file, "config", "show").returncode == 78


def test_a_variable_that_names_no_setting_is_a_warning_also_below_a_table(home: Home) -> None:
    result = home.echod("config", "check", ECHOD_POLICY__NOISE_SHAR="1")

    assert result.returncode == 0
    assert "did you mean ECHOD_POLICY__NOISE_SHARE?" in result.stderr


def test_the_list_of_settings_has_a_source_only_where_one_is_set(home: Home) -> None:
    lines = home.echod("config", "show", ECHOD_QUIET_SECONDS="5").stdout.splitlines()

    assert max(map(len, lines)) <= 80
    assert [line for line in lines if "quiet_seconds" in line] == [
        f"* {'quiet_seconds':<30} {'5.0':<12} ECHOD_QUIET_SECONDS"
    ]
    assert [line for line in lines if "max_attempts" in line] == [f"  {'max_attempts':<30} 5"]

"""Checked settings are kept for the next process, which uses them only while nothing has changed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from echod.errors import ConfigurationError
from echod.files import file_version
from echod.settings import schema
from echod.settings.schema import Settings, check_in_child, check_in_process, effective_settings
from tests.support import Home


@dataclass
class Household:
    """A settings file, a cache, and how often the settings were checked."""

    file: Path
    cache: Path
    checks: list[Mapping[str, str]] = field(default_factory=list)

    def write(self, text: str) -> None:
        """Write the settings file, long ago."""
        self.file.write_text(text)
        self.settle()

    def settle(self) -> None:
        """Wait until the file's change time is older than a tick of the clock."""
        while schema._may_change_unnoticed(schema._cache_key(self.file, {})):
            time.sleep(0.01)

    def load(self, environ: Mapping[str, str] | None = None) -> Settings:
        """Return the settings in force."""

        def check(file: Path, environ: Mapping[str, str]) -> Settings:
            self.checks.append(environ)
            return check_in_process(file, environ)

        return effective_settings(self.file, environ or {}, self.cache, check=check)

    def rewrite_cache(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the cache in place, which stays private."""
        content = json.loads(self.cache.read_text())
        change(content)
        self.cache.write_text(json.dumps(content))


@pytest.fixture
def household(tmp_path: Path) -> Household:
    found = Household(tmp_path / "config.toml", tmp_path / "run" / "settings.json")
    found.write('max_attempts = 7\nprojects = ["~/src/*"]\n[policy]\npin_days = 3\n')
    return found


def test_unchanged_settings_are_checked_once(household: Household) -> None:
    checked = household.load()

    assert household.load() == checked == check_in_process(household.file, {})
    assert (checked.max_attempts, checked.projects, checked.policy.pin_days) == (7, ("~/src/*",), 3)
    assert len(household.checks) == 1


def test_without_file_and_variables_nothing_is_kept(tmp_path: Path) -> None:
    assert effective_settings(tmp_path / "none.toml", {}, tmp_path / "cache") == Settings()
    assert not (tmp_path / "cache").exists()


def test_the_cache_is_private(household: Household) -> None:
    household.load()

    assert household.cache.stat().st_mode & 0o777 == 0o600
    assert household.cache.parent.stat().st_mode & 0o777 == 0o700


def test_a_changed_file_is_checked_again(household: Household) -> None:
    household.load()
    status = household.file.stat()
    household.write(household.file.read_text().replace("7", "8"))
    os.utime(household.file, ns=(status.st_atime_ns, status.st_mtime_ns))
    household.settle()

    assert household.load().max_attempts == 8


def test_another_file_with_the_same_content_is_checked_again(household: Household) -> None:
    household.load()
    other = household.file.with_name("other.toml")
    other.write_bytes(household.file.read_bytes())
    household.file = other

    household.load()

    assert len(household.checks) == 2


def test_each_variable_counts_and_foreign_ones_do_not(household: Household) -> None:
    assert household.load({"ECHOD_MAX_ATTEMPTS": "8"}).max_attempts == 8
    assert household.load({"ECHOD_MAX_ATTEMPTS": "9"}).max_attempts == 9
    assert household.load().max_attempts == 7
    assert household.load({"HOME": "/elsewhere", "ECHOD_STATE_DIR": "/s"}).max_attempts == 7

    assert len(household.checks) == 3
    assert household.load({"ECHOD_MAX_ATTEMPTS": "8"}).max_attempts == 8
    assert len(household.checks) == 3, "variants are kept side by side"


def test_only_variables_that_set_something_are_written_down(household: Household) -> None:
    household.load({"ECHOD_TOKEN": "platypus", "TOKEN": "platypus", "ECHOD_MAX_ATTEMPTS": "8"})

    assert "platypus" not in household.cache.read_text()


def test_no_more_than_a_handful_of_variants_is_kept(household: Household) -> None:
    for number in range(1, 20):
        household.load({"ECHOD_MAX_ATTEMPTS": str(number)})

    assert len(json.loads(household.cache.read_text())["variants"]) == 8


def test_another_version_of_echod_checks_again(household: Household) -> None:
    household.load()
    household.rewrite_cache(lambda content: content.update(echod="0.0.1"))

    household.load()

    assert len(household.checks) == 2


def test_a_file_that_was_just_written_is_not_kept(household: Household) -> None:
    household.file.write_text("max_attempts = 6\n")

    household.load()

    assert not household.cache.exists()


def test_errors_are_never_kept(household: Household) -> None:
    household.write("max_attempts = 0\n")

    for _ in range(2):
        with pytest.raises(ConfigurationError):
            household.load()

    assert len(household.checks) == 2
    assert not household.cache.exists()


def _replace_by_fifo(cache: Path) -> None:
    cache.unlink()
    os.mkfifo(cache)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda cache: cache.write_text("{"), id="not-json"),
        pytest.param(lambda cache: cache.write_text("[]"), id="a-list"),
        pytest.param(lambda cache: cache.write_text("[" * 100_000), id="a-deep-list"),
        pytest.param(lambda cache: cache.write_bytes(b"\xff"), id="not-utf-8"),
        pytest.param(lambda cache: cache.write_text(cache.read_text() + " " * 300_000), id="too-large"),
        pytest.param(lambda cache: cache.chmod(0o640), id="readable-by-others"),
        pytest.param(lambda cache: (cache.rename(f"{cache}.x"), cache.symlink_to(f"{cache}.x")), id="a-link"),
        pytest.param(lambda cache: (cache.unlink(), cache.mkdir()), id="a-directory"),
        pytest.param(_replace_by_fifo, id="a-fifo"),
    ],
)
def test_a_cache_that_cannot_be_trusted_is_ignored(household: Household, spoil: Callable[[Path], object]) -> None:
    household.load()
    spoil(household.cache)

    assert household.load().max_attempts == 7
    assert len(household.checks) == 2


def test_a_cache_of_another_user_is_ignored(household: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    household.load()
    monkeypatch.setattr("echod.settings.schema.os.getuid", lambda: household.cache.stat().st_uid + 1)

    household.load()

    assert len(household.checks) == 2


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("max_attempts",), "7"),
        (("max_attempts",), True),
        (("max_attempts",), 0),
        (("quiet_seconds",), -1),
        (("quiet_seconds",), float("nan")),
        (("reconcile_minutes",), 0),
        (("mode",), "sometimes"),
        (("projects",), "~/src/*"),
        (("projects",), ["src/*"]),
        (("gate",), None),
        (("policy", "pin_days"), 3.5),
        (("policy", "noise_share"), 2),
    ],
)
def test_a_cache_with_an_impossible_value_is_ignored(
    household: Household, keys: tuple[str, ...], value: object
) -> None:
    household.load()

    def tamper(content: dict[str, Any]) -> None:
        *tables, name = keys
        values = content["variants"][0][1]
        for table in tables:
            values = values[table]
        values[name] = value

    household.rewrite_cache(tamper)

    assert household.load().max_attempts == 7
    assert len(household.checks) == 2


def test_where_no_cache_can_be_written_the_settings_are_checked_each_time(household: Household) -> None:
    household.cache.parent.write_text("a file where the directory would be")

    assert [household.load().max_attempts for _ in range(2)] == [7, 7]
    assert len(household.checks) == 2


def test_settings_survive_the_way_through_json(household: Household) -> None:
    settings = household.load()

    assert schema.from_plain(json.loads(json.dumps(schema.to_plain(settings)))) == settings
    assert schema.from_plain(schema.to_plain(Settings())) == Settings()


def test_config_and_doctor_check_whatever_the_cache_has(household: Household) -> None:
    """Here the cache has a value for exactly these settings that the file does not contain."""
    home = Home(household.file.parent, {"ECHOD_CONFIG": str(household.file)})
    home.runtime.mkdir(mode=0o700, parents=True)
    household.cache = home.runtime / "settings.json"
    home.run("projects")
    household.rewrite_cache(lambda content: content["variants"][0][1].update(max_attempts=9))
    assert [variant[1]["max_attempts"] for variant in json.loads(household.cache.read_text())["variants"]] == [9]

    shown = {setting["key"]: setting["value"] for setting in home.json("config", "show")["settings"]}
    assert shown["max_attempts"] == 7
    household.rewrite_cache(
        lambda content: content["variants"][0][0].__setitem__(1, _version_of("max_attempts = 0\n", household))
    )
    assert home.echod("config", "check").returncode == 78
    assert '"problem"' in home.echod("doctor", "--json").stdout


def _version_of(text: str, household: Household) -> list[int]:
    """Write a settings file and return its version as the cache has it."""
    household.write(text)
    return list(file_version(household.file.stat()))


class TestInChild:
    def test_the_result_is_that_of_this_process(self, household: Household) -> None:
        environ = {**os.environ, "ECHOD_QUIET_SECONDS": "5"}

        assert check_in_child(household.file, environ) == check_in_process(household.file, environ)

    def test_what_is_wrong_is_reported_in_the_same_words(self, household: Household) -> None:
        household.write("max_attempts = 0\nmode = 'x'\n")
        messages = []
        for check in (check_in_child, check_in_process):
            with pytest.raises(ConfigurationError) as caught:
                check(household.file, os.environ)
            messages.append(str(caught.value))

        assert messages[0] == messages[1]
        assert len(messages[0].splitlines()) == 2

    def test_a_child_that_cannot_start_is_replaced_by_a_check_here(
        self, household: Household, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("echod.settings.schema.sys.executable", "/nowhere/python")

        assert check_in_child(household.file, {}).max_attempts == 7

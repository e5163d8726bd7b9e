"""What commands load: `echod status` only what it needs to answer at once, the service nothing it never uses."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import Home, make_project, running_daemon, until

HEAVY_PACKAGES = {
    "click",
    "rich",
    "pydantic",
    "structlog",
    "sqlite3",
    "watchdog",
    "apscheduler",
    "filelock",
    "psutil",
    "yaml",
}

SETTINGS_OF_TESTS = {"ECHOD_QUIET_SECONDS", "ECHOD_DEBOUNCE_SECONDS", "ECHOD_DEBOUNCE_MAX_SECONDS"}
"""The variables that a home of the tests sets. A user's home sets none, and defaults are not checked."""

PROGRAM = """
import json, sys
before = {name for name, module in sys.modules.items() if module}
sys.argv = ["echod", *sys.argv[1:]]
from echod.cli.main import main
try:
    main()
finally:
    json.dump(sorted({name for name, module in sys.modules.items() if module} - before), sys.stderr)
"""


PLANNING_MODULES = (
    "echod.app.services",
    "echod.inspection.inspect",
    "echod.jobs",
    "echod.memory.document",
    "echod.memory.policy",
    "echod.scheduler.worker",
    "echod.store.commit.commit",
)


def loaded_packages(home: Home, *words: str) -> set[str]:
    """The packages that a command loads."""
    return {name.partition(".")[0] for name in loaded_modules(home, *words)}


def loaded_modules(home: Home, *words: str, environ: Mapping[str, str] | None = None) -> set[str]:
    """The modules that a command loads."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env=home.environ if environ is None else environ,
        cwd=home.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    names = json.loads(done.stderr.splitlines()[-1])
    assert "echod.cli.main" in names
    return set(names)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root)


@pytest.mark.parametrize("words", [["status"], ["status", "--json"]], ids=" ".join)
def test_what_the_daemon_keeps_ready_is_shown_without_anything_heavy(
    home: Home, tmp_path: Path, words: list[str]
) -> None:
    home.run("add", make_project(tmp_path / "p"))

    with running_daemon(home):
        found = loaded_packages(home, *words)

    assert found & HEAVY_PACKAGES == set()


def test_without_a_daemon_nothing_is_loaded_that_works_on_memories(home: Home, tmp_path: Path) -> None:
    home.run("add", make_project(tmp_path / "p"))
    home.echod("status")  # inspects the files and stores that

    found = loaded_modules(home, "status")

    assert "echod.status.collect" in found
    assert found & set(PLANNING_MODULES) == set()
    assert {name.partition(".")[0] for name in found} & {"click", "rich"} == set()


@pytest.mark.parametrize(
    "words",
    [
        "projects",
        "jobs",
        "log",
        "gate p",
        "show p",
        "review p",
        "explain 4f1c p",
        "audit",
        "packs list",
        "init p --dry-run",
        "prune p --dry-run",
        "run --once p",
        "undo --last p",
        "workflow begin x --project p",
        "staus",
        "jobs --limit few",
    ],
)
def test_a_command_loads_no_pydantic_where_there_are_no_settings_to_be_checked(
    home: Home, tmp_path: Path, words: str
) -> None:
    home.run("add", make_project(home.root / "p"))

    found = loaded_modules(home, *words.split(), environ=_environ_without_settings(home))

    assert {name.partition(".")[0] for name in found} & {"pydantic", "pydantic_settings", "rich"} == set()


@pytest.mark.parametrize("words", ["status", "projects", "gate p"])
def test_a_command_loads_no_pydantic_where_its_settings_were_checked_before(home: Home, words: str) -> None:
    home.run("add", make_project(home.root / "p"))
    file = home.root / "settings.toml"
    file.write_text(f'projects = ["{home.root}/*"]\n')
    environ = {**home.environ, "ECHOD_CONFIG": str(file)}
    time.sleep(0.2)  # a file that was just written may change within one tick of the clock

    first, second = (loaded_modules(home, *words.split(), environ=environ) for _ in range(2))

    assert "pydantic" in first
    assert second & {"pydantic", "pydantic_settings", "tomllib"} == set()


@pytest.mark.parametrize(
    "words", ["--help", "gate --help", "jobs -h", "review accept --help", "completion bash", "staus"]
)
def test_help_loads_nothing_but_the_commands_and_click(home: Home, words: str) -> None:
    found = loaded_modules(home, *words.split())

    assert {name.partition(".")[0] for name in found} & HEAVY_PACKAGES == {"click"}
    assert "echod.cli.context" not in found


def test_the_short_way_says_what_the_long_way_says(home: Home, tmp_path: Path) -> None:
    home.run("add", make_project(tmp_path / "p"))
    without = (home.echod("status"), home.echod("--no-color", "status"))
    with running_daemon(home):
        running = (home.echod("status", "--json"), home.echod("--no-color", "status", "--json"))

    assert [done.returncode for done in (*without, *running)] == [3, 3, 0, 0]
    assert without[0].stdout == without[1].stdout
    assert _without_uptime(running[0].stdout) == _without_uptime(running[1].stdout)


@pytest.mark.parametrize("settings", ["", "max_attempts = 3\n"], ids=["defaults", "settings-file"])
def test_the_service_keeps_nothing_in_memory_that_it_never_uses(home: Home, tmp_path: Path, settings: str) -> None:
    environ = _environ_without_settings(home)
    if settings:
        environ["ECHOD_CONFIG"] = str(tmp_path / "settings.toml")
        (tmp_path / "settings.toml").write_text(settings)
    output = tmp_path / "said"
    with output.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "run"], env=environ, cwd=home.root, stdout=stderr, stderr=stderr
        )
    try:
        until((home.runtime / "heartbeat.json").exists, "the service's heartbeat")
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()

    loaded_names = {name.partition(".")[0] for name in json.loads(output.read_text().splitlines()[-1])}
    assert {"structlog", "watchdog", "apscheduler"} <= loaded_names
    assert loaded_names & {"click", "pydantic", "pydantic_settings", "rich", "pygments"} == set()


def _environ_without_settings(home: Home) -> dict[str, str]:
    return {name: value for name, value in home.environ.items() if name not in SETTINGS_OF_TESTS}


def _without_uptime(report: str) -> Mapping[str, object]:
    values = json.loads(report)
    del values["daemon"]["uptime_seconds"]
    return dict(values)

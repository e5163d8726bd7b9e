"""The modules that commands load: `echod status` few to answer at once, the service nothing that it never uses."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from echod.cli.root import SECTIONS
from tests.support import Home, make_project, running_daemon, until

HEAVY_PACKAGES = {
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
import json, os, sys
os._exit = sys.exit  # a short command ends its process at once
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
    """Return the packages that a command loads."""
    return {name.partition(".")[0] for name in loaded_modules(home, *words)}


def loaded_modules(home: Home, *words: str, environ: Mapping[str, str] | None = None) -> set[str]:
    """Return the modules that a command loads."""
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
def test_the_snapshot_of_the_daemon_is_shown_without_a_heavy_import(
    home: Home, tmp_path: Path, words: list[str]
) -> None:
    home.run("add", make_project(tmp_path / "p"))

    with running_daemon(home):
        found = loaded_packages(home, *words)

    assert found & HEAVY_PACKAGES == set()


def test_without_a_daemon_status_loads_nothing_that_changes_memory(home: Home, tmp_path: Path) -> None:
    home.run("add", make_project(tmp_path / "p"))
    home.echod("status")  # inspects the files and stores that

    found = loaded_modules(home, "status")

    assert "echod.status.collect" in found
    assert found & set(PLANNING_MODULES) == set()
    assert {name.partition(".")[0] for name in found} & {"rich"} == set()


@pytest.mark.slow
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


@pytest.mark.slow
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
    "words", ["--help", "help", "completion bash", "help --help", "completion --help", "staus", "help staus"]
)
def test_the_list_of_commands_loads_no_command(home: Home, words: str) -> None:
    found = loaded_modules(home, *words.split())

    assert {name.partition(".")[0] for name in found} & HEAVY_PACKAGES == set()
    assert "echod.cli.context" not in found
    assert {name for name in found if name.startswith("echod.cli.commands.")} == set()


@pytest.mark.parametrize(
    "words", ["gate --help", "config -h", "review accept --help", "help prune", "jobs --limit few", "undo --lost"]
)
def test_help_and_a_usage_error_load_no_function_of_a_command(home: Home, words: str) -> None:
    found = loaded_modules(home, *words.split())

    assert {name for name in found if name.startswith("echod.cli.commands.")} == set()
    assert len({name for name in found if name.startswith("echod.cli.declarations.")}) <= 2  # `help` itself is one
    assert found & set(PLANNING_MODULES) == set()
    assert {name.partition(".")[0] for name in found} & HEAVY_PACKAGES == set()


def test_no_declaration_loads_what_only_running_needs() -> None:
    sections = sorted({entry.target.partition(":")[0] for _, entries in SECTIONS for entry in entries})
    program = (
        f"import sys, {', '.join(f'echod.cli.declarations.{section}' for section in sections)}; print(*sys.modules)"
    )

    found = set(
        subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    )

    assert {name for name in found if name.startswith("echod.cli.commands.")} == set()
    assert "echod.cli.context" not in found
    assert found & set(PLANNING_MODULES) == set()
    assert {name.partition(".")[0] for name in found} & HEAVY_PACKAGES == set()


@pytest.mark.slow
@pytest.mark.parametrize("words", ["remember Hi --project p", "run --once p"])
def test_a_command_that_writes_loads_nothing_of_the_daemon(home: Home, words: str) -> None:
    home.run("add", make_project(home.root / "p"))

    found = loaded_modules(home, *words.split(), environ=_environ_without_settings(home))

    assert "echod.app.services" in found
    assert {name for name in found if name.startswith("echod.daemon")} == set()
    assert {name.partition(".")[0] for name in found} & {"watchdog", "apscheduler"} == set()


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
    assert loaded_names & {"pydantic", "pydantic_settings", "rich", "pygments"} == set()


def _environ_without_settings(home: Home) -> dict[str, str]:
    return {name: value for name, value in home.environ.items() if name not in SETTINGS_OF_TESTS}


@pytest.mark.parametrize("words", [["mcp"], ["-q", "mcp"]], ids=" ".join)
def test_the_library_of_the_mcp_server_gets_what_it_imports(home: Home, words: list[str]) -> None:
    pytest.importorskip("mcp")

    done = home.echod(*words)  # the input of a test is at its end

    assert (done.returncode, done.stderr) == (0, "")

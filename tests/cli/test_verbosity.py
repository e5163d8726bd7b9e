"""The output of quiet commands, progress on a terminal, and colours."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from echod.cli.context import ProgressLine, colorize
from echod.cli.root import app
from tests.support import NO_PRUNING, Home, finding_text, make_project

pytestmark = pytest.mark.slow

CLEAR_LINE = "\r\x1b[K"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root, NO_PRUNING)


def test_a_quiet_command_that_works_prints_nothing(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    role = root / ".rune/echoes/reviewer"
    (role / "ward-findings.md").write_text(finding_text("Timeouts are missing"))
    changing = (
        ("run", "--once", root),
        ("pause", root),
        ("resume", root),
        ("undo", "--last", root, "--yes"),
        ("workflow", "begin", "x", "--project", root),
        ("workflow", "end", "x", "--project", root),
        ("scrub", root),
    )

    for words in changing:
        done = home.echod(*words, "--quiet")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), words


def test_a_quiet_command_prints_requested_output_and_errors(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    archive = root / ".rune/echoes/reviewer/archive"
    archive.write_text("in the way")
    (archive.parent / "ward-findings.md").write_text(finding_text("Timeouts are missing"))

    failed = home.echod("--quiet", "run", "--once", root)

    assert failed.returncode == 1
    assert "failed" in failed.stdout
    assert "reviewer" in home.echod("--quiet", "jobs").stdout
    assert "no memory" in home.echod("--quiet", "add", tmp_path).stderr


class TestProgress:
    def test_short_work_prints_nothing(self) -> None:
        terminal = io.StringIO()

        with ProgressLine(terminal) as progress:
            progress.show("1 of 2")

        assert terminal.getvalue() == ""

    def test_long_work_leaves_no_line_behind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        terminal = io.StringIO()
        now = time.monotonic()
        progress = ProgressLine(terminal)
        monkeypatch.setattr(time, "monotonic", lambda: now + 10)

        with progress:
            progress.show("file 1 of 2: \x1b[31mred" + "x" * 200)

        shown, end = terminal.getvalue().removeprefix(CLEAR_LINE).split(CLEAR_LINE)
        assert shown.startswith("file 1 of 2:  [31mred")
        assert len(shown) < 80
        assert end == ""


def test_progress_is_on_standard_error_of_a_terminal_only(home: Home, tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    (root / "tmp").mkdir()
    (root / "tmp/.rune-work-1.json").write_text('{"status": "active"}')

    verbose = run_on_terminal(home, "run", "--once", str(root), "--wait", "1.5")
    quiet = run_on_terminal(home, "--quiet", "run", "--once", str(root), "--wait", "1.5")

    assert "waiting for 1 deferred job" in verbose
    assert verbose.endswith(CLEAR_LINE)
    assert quiet == ""


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let progress be shown without its initial delay, on a standard error that is a terminal."""
    monkeypatch.setattr("echod.cli.context._INITIAL_DELAY_SECONDS", 0.0)
    monkeypatch.setattr("echod.cli.context._UPDATE_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)


LONG_COMMANDS = (
    ("add {root}", "reading file 1 of 1: reviewer"),
    ("doctor {root}", "checked {root}"),
    ("verify {root}", "file 1 of 1: reviewer"),
    ("run --once {root}", "inspecting project 1 of 1"),
    ("run --once {root}", "job 1 of 1"),
    ("search timeout {root}", "reading {root}"),
    ("prune --dry-run {root}", "reading file 1 of 1: reviewer"),
    ("scrub {root}", "file 1: "),
)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(("command", "progress"), LONG_COMMANDS)
@pytest.mark.parametrize("hidden", ["", "--quiet", "--json"])
def test_long_work_shows_its_progress_unless_a_script_reads_it(
    home: Home, tmp_path: Path, command: str, progress: str, hidden: str
) -> None:
    root = make_project(tmp_path / "p")
    (root / ".rune/echoes/reviewer/ward-findings.md").write_text(finding_text("Timeouts are missing"))
    words = [*command.format(root=root).split(), *([hidden] if hidden else [])]

    shown = CliRunner().invoke(app, words, prog_name="echod", env={**home.environ, "TERM": "xterm", "NO_COLOR": "1"})

    expected = CLEAR_LINE + progress.format(root=root)[:60]
    assert (expected in shown.stderr) is (hidden == "")


@pytest.mark.parametrize(
    ("words", "environ", "coloured"),
    [
        (("status",), {}, True),
        (("status", "--no-color"), {}, False),
        (("status",), {"NO_COLOR": "1"}, False),
        (("status",), {"TERM": "dumb"}, False),
        (("status", "--json"), {}, False),
        (("doctor",), {}, True),
    ],
)
def test_colours_are_only_printed_on_terminals_that_have_them(
    home: Home, words: tuple[str, ...], environ: dict[str, str], coloured: bool
) -> None:
    shown = run_on_terminal(home, *words, out=True, **environ)

    assert ("\x1b[31m" in shown) is coloured
    assert "not running" in shown


def test_colours_change_neither_words_nor_widths() -> None:
    screen = (
        "echod needs attention\n! It failed.\n  > Mend it.\n    reviewer      900/150 lines OVER  12 traced\nok  fine"
    )

    shown = colorize(screen)

    assert shown.count("\x1b[0m") == 5
    assert re.sub(r"\x1b\[\d+m", "", shown) == screen


def run_on_terminal(home: Home, *words: str, out: bool = False, **changed: str) -> str:
    """Run a command whose standard error, or output, is a terminal. Return what it prints there."""
    parent_end, child_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "echod", *words],
        env={**home.environ, "TERM": "xterm", "NO_COLOR": "", **changed},
        stdin=subprocess.DEVNULL,
        stdout=child_end if out else subprocess.PIPE,
        stderr=subprocess.PIPE if out else child_end,
    )
    os.close(child_end)
    seen = b""
    try:
        while part := os.read(parent_end, 4096):
            seen += part
    except OSError:
        pass  # the other side is closed
    finally:
        os.close(parent_end)
    rest = b"".join(part for part in process.communicate(timeout=60) if part)
    assert CLEAR_LINE.encode() not in rest
    return seen.decode()

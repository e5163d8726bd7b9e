"""Errors of the command line, and the exit of an interrupted program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from echod.cli.root import run_command_line
from tests.support import Home

USAGE_ERRORS = (
    ("an unknown command", "staus", "There is no command `echod staus`. Did you mean pause or status?"),
    ("an unknown command below another", "config shw", "There is no command `echod config shw`. Did you mean show?"),
    ("a misspelt command below one with a path", "review acept x", "There is no command `echod review acept`."),
    ("an unknown option", "status --jsn", "echod status has no option --jsn. Did you mean --json?"),
    ("an option that is cut short", "log --lim 3", "echod log has no option --lim. Did you mean --limit?"),
    ("no argument", "explain", "ENTRY is missing. See: echod help explain"),
    ("none of several arguments", "record-access", "ENTRY is missing."),
    ("an argument too many", "add a b", "echod add does not take b as a further argument."),
    ("an option without its value", "jobs --limit", "--limit needs a value. See: echod help"),
    ("a flag with a value", "status --json=1", "--json takes no value."),
    ("no number", "jobs --limit few", "--limit must be a whole number from 1 to 10000, not 'few'."),
    (
        "no number where it may be broken",
        "run --once --wait 5s",
        "--wait must be a number of at least 0, not '5s'.",
    ),
    ("a number that is too small", "jobs --limit 0", "--limit must be a whole number from 1 to 10000, not 0."),
    ("a number that is too large", "log --limit 10001", "must be a whole number from 1 to 10000, not 10001."),
    ("a negative time", "run --once --wait -1", "must be a number of at least 0, not -1.0."),
    ("no time at all", "workflow begin x --ttl 0", "must be a number of at least 0.01, not 0.0."),
    ("no process", "workflow begin x --pid 0", "must be a whole number of at least 1, not 0."),
    ("no number of a job", "jobs retry x", "ID must be a whole number of at least 1, not 'x'."),
    (
        "a number that no job can have",
        "jobs retry 99999999999999999999",
        "ID must be a whole number of at least 1",
    ),
    ("no layer", "raise 4f1c gold", "LAYER must be one of etched, notes, inscribed, not 'gold'."),
    ("no shell", "completion csh", "SHELL must be one of bash, zsh, fish, not 'csh'."),
    ("what goes with --once alone", "run here", "paths and --wait require --once"),
    ("an option of echod itself behind --", "projects -- --quiet", "does not take --quiet as a further argument."),
    ("a word of other programs", "logs", "Run: echod service logs"),
    ("another word of other programs", "start", "Run: echod service start"),
    ("no command", "--quiet", "A command is missing. See: echod help"),
)

INTERRUPTED_PROGRAM = """
import os, signal, sys, time
from echod.cli.context import CommandContext
from echod.cli.main import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with it ignored

def stopped(*words, **options):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

CommandContext.from_process = stopped
sys.argv = ["echod", "projects"]
main()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.parametrize(
    ("words", "sentence"), [case[1:] for case in USAGE_ERRORS], ids=[case[0] for case in USAGE_ERRORS]
)
def test_wrong_usage_is_reported_in_a_sentence_and_exits_with_2(
    words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_command_line(words.split())

    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.startswith("echod: ")
    assert len(captured.err.splitlines()) == 1
    assert sentence in captured.err


@pytest.mark.parametrize(("words", "code"), [((), 2), (("-h",), 0), (("--help",), 0), (("--config", "x", "-h"), 0)])
def test_echod_without_a_command_prints_its_help(
    words: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(words) == code

    captured = capsys.readouterr()
    shown = captured.err if code else captured.out
    assert shown.startswith("Usage: echod [OPTIONS] COMMAND [ARGS]...")
    assert "Get started:" in shown


def test_its_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--version"]) == 0

    assert capsys.readouterr().out.split()[0] == "echod"


@pytest.mark.parametrize("words", ["add", "gate", "pause", "show", "consolidate", "reset --yes"])
def test_a_project_path_that_is_not_utf_8_is_refused_and_does_not_affect_other_projects(home: Home, words: str) -> None:
    root = Path(os.fsdecode(os.fsencode(home.root) + b"/caf\xe9"))
    try:
        (root / ".rune/echoes/reviewer").mkdir(parents=True)
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")

    refused = home.echod(*words.split(), root)

    assert refused.returncode == 2
    assert "is not UTF-8" in refused.stderr
    assert home.json("status")["stores"] == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_unencodable_characters_are_escaped_and_stay_valid_json(home: Home, encoding: str) -> None:
    project = home.root / "project"
    memory = project / ".rune/echoes/reviewer/MEMORY.md"
    memory.parent.mkdir(parents=True)
    memory.write_text(
        "# Memory\n\n## Inscribed \u2014 Z\u00f6lle \u2192 \U0001f600 (2026-11-01)\n\n- a fact\n", "utf-8"
    )
    home.run("add", project)

    def printed(words: str, codes: frozenset[int] = frozenset({0})) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "echod", *words.split()],
            env={**home.environ, "PYTHONIOENCODING": encoding},
            cwd=project,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode in codes, done.stderr
        # click treats an ASCII terminal as one without an encoding, and prints UTF-8.
        return done.stdout.decode("utf-8" if encoding == "ascii" else encoding)

    for words in ("show reviewer", "prune --dry-run", "packs list"):
        assert printed(words)
    assert "reviewer" in printed("status -v", frozenset({3}))
    shown = json.loads(printed("show reviewer --json"))
    assert "Z\u00f6lle \u2192 \U0001f600" in json.dumps(shown, ensure_ascii=False)


def test_an_interrupt_ends_a_command_quietly(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_PROGRAM],
        env=home.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("words", [("--help",), ("projects",), ("config", "show"), ("log", "--json")], ids=" ".join)
def test_a_closed_pipe_is_not_an_error(home: Home, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    done = subprocess.run(
        [sys.executable, "-m", "echod", *words],
        env=home.environ,
        cwd=home.root,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (0, b"")

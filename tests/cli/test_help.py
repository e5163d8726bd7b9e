"""Every command has help with an example, and docs/commands.md contains the same text."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from echod.cli.root import SECTIONS, app, run_command_line
from tests.cli.reference import MANUAL, PAGE, all_command_paths, find_command, help_text, render_manual, render_page

LISTING_COMMANDS = {"status", "gate", "jobs", "projects", "log", "review"}


@pytest.mark.parametrize("path", all_command_paths(), ids=" ".join)
def test_every_command_explains_itself_with_an_example(path: tuple[str, ...]) -> None:
    text = help_text(path)

    assert f"Example: echod {' '.join(path)}" in text
    assert len(text.splitlines()) > 6
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("path", all_command_paths(), ids=" ".join)
def test_the_function_of_a_command_takes_what_is_declared(path: tuple[str, ...]) -> None:
    """Options and function are in two modules, and are joined only when the command runs."""
    command = find_command(path)
    assert command.callback is not None
    find_function = inspect.getclosurevars(command.callback).nonlocals.get("find_function")
    if find_function is None:
        assert isinstance(command, click.Group) or path in {("help",), ("completion",)}
        return

    declared = dict.fromkeys(parameter.name or "" for parameter in command.params if parameter.expose_value)

    inspect.signature(find_function()).bind(None, **declared)


@pytest.mark.parametrize("path", [path for path in all_command_paths() if path[-1] in LISTING_COMMANDS], ids=" ".join)
def test_every_listing_offers_json(path: tuple[str, ...]) -> None:
    assert "--json" in help_text(path)


def test_the_command_reference_is_the_help_of_the_commands() -> None:
    assert PAGE.read_text() == render_page(), "write it again: make reference"


def test_the_manual_page_is_made_from_the_commands() -> None:
    assert MANUAL.read_text() == render_manual(), "write it again: make reference"


def test_man_shows_the_manual_page_of_every_command_without_a_warning() -> None:
    if (man := shutil.which("man")) is None or shutil.which("groff") is None:
        pytest.skip("there is no man with groff")
    environ = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MANROFFOPT": "-c", "MAN_KEEP_FORMATTING": ""}

    done = subprocess.run(
        [man, "--warnings=w", "-l", str(MANUAL)], env=environ, capture_output=True, text=True, timeout=60, check=True
    )

    shown = re.sub(r".\x08", "", done.stdout)
    assert done.stderr == ""
    assert [path for path in all_command_paths() if f"echod {' '.join(path)}" not in shown] == []
    assert max(map(len, shown.splitlines())) <= 80


def test_help_shows_every_command_once_and_its_summary_in_one_line() -> None:
    names = [entry.name for _, entries in SECTIONS for entry in entries]
    lines = help_text(()).splitlines()

    assert len(names) == len(set(names))
    assert {path[0] for path in all_command_paths()} <= set(names)
    for _, entries in SECTIONS:
        width = max(len(entry.name) for entry in entries)
        assert {f"  {entry.name:<{width}}  {entry.summary}" for entry in entries} <= set(lines)


def test_no_group_cuts_a_summary_off() -> None:
    groups = sorted({path[:-1] for path in all_command_paths() if len(path) > 1})

    assert [
        line for group in groups for line in help_text(group).splitlines() if re.match(r"  \S+ .*\.\.\.$", line)
    ] == []


@pytest.mark.parametrize(
    "words", [["help", "prune"], ["help", "review", "accept"], ["help", "help"], ["help"]], ids=" ".join
)
def test_help_as_a_command_shows_what_the_option_shows(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(words) == 0

    assert capsys.readouterr().out == help_text(tuple(words[1:]))


def test_help_of_an_unknown_command_suggests_similar_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["help", "prun"]) == 2

    assert "Did you mean prune or run?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--quiet", "projects"], ["projects", "--quiet"], ["projects", "--no-color"]])
def test_options_of_echod_itself_are_understood_anywhere(words: list[str], tmp_path: Path) -> None:
    environ = {"ECHOD_STATE_DIR": str(tmp_path / "state"), "ECHOD_RUNTIME_DIR": str(tmp_path / "run")}

    assert CliRunner().invoke(app, words, prog_name="echod", env=environ).exit_code == 0


def test_the_table_of_commands_agrees_with_the_commands_own_help() -> None:
    context = click.Context(app)
    own = {}
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        assert command.name == name
        own[name] = (command.help or "").partition("\n")[0]

    assert {entry.name: entry.summary for _, entries in SECTIONS for entry in entries} == own

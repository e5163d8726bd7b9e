"""Every command has help with an example, and docs/commands.md says the same."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from echod.cli.root import SECTIONS, app
from tests.cli.reference import PAGE, all_command_paths, help_text, render_page

LISTING_COMMANDS = {"status", "gate", "jobs", "projects", "log", "review"}


@pytest.mark.parametrize("path", all_command_paths(), ids=" ".join)
def test_every_command_explains_itself_with_an_example(path: tuple[str, ...]) -> None:
    text = help_text(path)

    assert f"Example: echod {' '.join(path)}" in text
    assert len(text.splitlines()) > 6
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("path", [path for path in all_command_paths() if path[-1] in LISTING_COMMANDS], ids=" ".join)
def test_every_listing_offers_json(path: tuple[str, ...]) -> None:
    assert "--json" in help_text(path)


def test_the_command_reference_is_what_the_commands_say() -> None:
    assert PAGE.read_text() == render_page(), "renew it: python -m tests.cli.reference > docs/commands.md"


def test_help_shows_every_command_once_in_the_order_in_which_a_person_meets_them() -> None:
    shown = [name for _, entries in SECTIONS for name in (entry.name for entry in entries)]

    assert len(shown) == len(set(shown))
    assert {path[0] for path in all_command_paths()} <= set(shown)


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

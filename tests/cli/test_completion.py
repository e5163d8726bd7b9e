"""Completion by a real shell that has read the output of `echod completion`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from echod.cli.root import app
from tests.cli.reference import all_command_paths
from tests.support import Home

COMPLETION_PROGRAM = """
. {script}
COMP_WORDS=({words}) COMP_CWORD={at} COMP_LINE='{words}'
"$(complete -p echod | sed 's/.*-F \\([^ ]*\\).*/\\1/')" echod
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def bash_completions(tmp_path: Path, *words: str) -> list[str]:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    home = Home(tmp_path)
    script = tmp_path / "completion.sh"
    script.write_text(home.run("completion", "bash"))
    program = tmp_path / "echod"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m echod "$@"\n')
    program.chmod(0o755)
    quoted = " ".join(f"'{word}'" for word in ("echod", *words))
    completion_program = COMPLETION_PROGRAM.format(script=script, words=quoted.replace("'", ""), at=len(words))
    done = subprocess.run(
        [bash, "--norc", "-c", completion_program],
        env={**home.environ, "PATH": f"{tmp_path}:{home.environ['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_and_their_options(tmp_path: Path) -> None:
    assert bash_completions(tmp_path, "unp") == ["unpin"]
    assert bash_completions(tmp_path, "help", "rev") == ["review"]
    assert bash_completions(tmp_path, "config", "") == ["show", "path", "check"]
    assert "--dry-run" in bash_completions(tmp_path, "prune", "--d")


def test_bash_completes_the_choices_of_an_argument(tmp_path: Path) -> None:
    assert bash_completions(tmp_path, "raise", "4f1c", "e") == ["etched"]
    assert bash_completions(tmp_path, "completion", "") == ["bash", "zsh", "fish"]


@pytest.mark.parametrize("path", all_command_paths(), ids=" ".join)
def test_arguments_named_path_or_file_are_completed_as_paths(path: tuple[str, ...]) -> None:
    """A parameter of type path makes the script of each shell complete files."""
    command: click.Command = app
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found

    for parameter in (*app.params, *command.params):
        named = parameter.metavar or str(parameter.name).upper()
        assert isinstance(parameter.type, click.Path) == bool(
            {"PATH", "FILE", "ROOT", "OLD", "NEW"} & set(re.findall(r"[A-Z]+", named))
        )


@pytest.mark.parametrize("question", ["bash", "complete_bash", "csh_complete", "_", "bash_"])
def test_an_invalid_completion_request_prints_nothing(home: Home, question: str) -> None:
    done = home.echod("projects", _ECHOD_COMPLETE=question)

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o nosort -F"), ("zsh", "compdef"), ("fish", "complete")]
)
def test_each_shell_gets_a_script_of_its_own_and_no_file_changes(home: Home, shell: str, word: str) -> None:
    script = home.run("completion", shell)

    assert word in script
    assert "_ECHOD_COMPLETE" in script
    assert list(home.root.iterdir()) == []


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)

"""Completion by a real shell that has read the output of `echod completion`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from echod.cli.root import app
from tests.cli.reference import all_command_paths
from tests.support import Home, finding_text, make_project, until

pytestmark = pytest.mark.slow

COMPLETION_PROGRAM = """
compopt() {{ :; }}  # only a shell that a user types into has it
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
    assert bash_completions(tmp_path, "config", "") == ["show", "path", "check", "init", "edit"]
    assert "--dry-run" in bash_completions(tmp_path, "prune", "--d")


def test_bash_completes_the_choices_of_an_argument(tmp_path: Path) -> None:
    assert bash_completions(tmp_path, "raise", "4f1c", "e") == ["etched"]
    assert bash_completions(tmp_path, "completion", "") == ["bash", "zsh", "fish"]


def test_bash_completes_entries_roles_jobs_and_projects(tmp_path: Path) -> None:
    home = Home(tmp_path)
    root = make_project(tmp_path / "p", "reviewer")
    (root / ".rune/echoes/reviewer/MEMORY.md").write_text(
        "<!-- echo-schema: v1 -->\n# Reviewer Memory\n\n" + finding_text("Retries need a key")
    )
    home.run("add", root)
    entry = home.json("show", root)["entries"][0]["id"]

    assert bash_completions(tmp_path, "pin", entry[:4]) == [entry]
    assert bash_completions(tmp_path, "show", "rev") == ["reviewer"]
    assert str(root) in bash_completions(tmp_path, "remove", "")
    home.run("forget", entry, root, "--yes")
    assert bash_completions(tmp_path, "undo", "") == ["1"]


@pytest.fixture
def planner(tmp_path: Path) -> Home:
    """A home with a project in `p`, and an `echod` in `bin`."""
    home = Home(tmp_path)
    root = make_project(tmp_path / "p", "planner")
    text = finding_text("Retries need a key, always")
    (root / ".rune/echoes/planner/MEMORY.md").write_text(f"<!-- echo-schema: v1 -->\n# Planner Memory\n\n{text}")
    home.run("add", root)
    program = tmp_path / "bin" / "echod"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m echod "$@"\n')
    program.chmod(0o755)
    return home


def shell_environ(home: Home) -> dict[str, str]:
    return {**home.environ, "PATH": f"{home.root / 'bin'}:{home.environ['PATH']}", "TERM": "xterm"}


def test_fish_completes_roles_and_shows_the_titles_of_entries(planner: Home) -> None:
    if (fish := shutil.which("fish")) is None:
        pytest.skip("there is no fish")
    script = planner.root / "completion.fish"
    script.write_text(planner.run("completion", "fish"))
    program = (
        f'source {script}; complete -C "echod show pl"; complete -C "echod pin "; complete -C "echod packs install fa"'
    )

    done = subprocess.run(
        [fish, "--no-config", "-c", program], env=shell_environ(planner), cwd=planner.root / "p", capture_output=True,
        text=True, timeout=60, check=True,
    )  # fmt: skip

    assert done.stdout.splitlines()[0] == "planner"
    assert "\tplanner: Retries need a key, always" in done.stdout
    assert "fastapi\tFastAPI" in done.stdout


@pytest.mark.slow
def test_zsh_completes_roles_and_paths(planner: Home) -> None:
    zsh, tmux = shutil.which("zsh"), shutil.which("tmux")
    if zsh is None or tmux is None:
        pytest.skip("there is no zsh, or no tmux to type into it")
    script = planner.root / "completion.zsh"
    script.write_text(planner.run("completion", "zsh"))
    server = [tmux, "-S", str(planner.root / "tmux")]
    options: dict[str, Any] = {"env": shell_environ(planner), "cwd": planner.root / "p", "timeout": 60}

    def screen() -> str:
        done = subprocess.run([*server, "capture-pane", "-p"], capture_output=True, text=True, check=True, **options)
        return str(done.stdout)

    start = ["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "24", f"{zsh} -f"]
    subprocess.run([*server, *start], check=True, **options)
    try:
        line = f"autoload -Uz compinit; compinit -u; source {script}; echo load''ed"
        subprocess.run([*server, "send-keys", line, "Enter"], check=True, **options)
        until(lambda: "\nloaded" in screen(), "zsh has read the script")
        subprocess.run([*server, "send-keys", "-l", "echod show pla"], check=True, **options)
        subprocess.run([*server, "send-keys", "Tab"], check=True, **options)
        until(lambda: "echod show planner" in screen(), "zsh completes the role")
        directory = planner.root / "p" / ".rune"  # beside the path of the project, which has another prefix
        subprocess.run([*server, "send-keys", "C-u"], check=True, **options)
        subprocess.run([*server, "send-keys", "-l", f"echod remove {str(directory)[:-2]}"], check=True, **options)
        subprocess.run([*server, "send-keys", "Tab"], check=True, **options)
        until(lambda: f"echod remove {directory}/" in screen().replace("\n", ""), "zsh completes the path")
        subprocess.run([*server, "send-keys", "C-u"], check=True, **options)
        subprocess.run([*server, "send-keys", "-l", f"echod remove {planner.root}/p"], check=True, **options)
        subprocess.run([*server, "send-keys", "Tab"], check=True, **options)
        until(lambda: f"echod remove {planner.root}/p/" in screen().replace("\n", ""), "zsh keeps the word")
        subprocess.run([*server, "send-keys", "C-u"], check=True, **options)
        subprocess.run([*server, "send-keys", "-l", "echod remove "], check=True, **options)
        subprocess.run([*server, "send-keys", "Tab"], check=True, **options)
        until(lambda: f"echod remove {planner.root}/p" in screen().replace("\n", ""), "zsh completes the project")
    finally:
        subprocess.run([*server, "kill-server"], check=False, **options)


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


def test_a_subcommand_is_completed_with_its_whole_summary() -> None:
    group = app.get_command(click.Context(app), "service")
    assert group is not None

    (item,) = group.shell_complete(click.Context(group), "sta")

    assert (item.value, item.help) == ("start", "Start the installed service, and wait until it answers.")

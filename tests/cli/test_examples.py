"""Every command line in README and docs/ is valid, and the README's first steps work."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import pytest

from echod.cli.root import app
from tests.cli.reference import all_command_paths, help_text
from tests.life.files import grown_memory
from tests.support import Home

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = tuple(
    page
    for page in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").glob("*")),
    )
    if page.name != "commands.md"  # written from the commands; their examples are looked at by themselves
)
CODE_BLOCK: Final = re.compile(r"^```(?:sh|console|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLACEHOLDERS: Final = {"JOB": "7", "ID": "7", "N": "7", "DATE": "2026-11-20", "PID": "7", "SECONDS": "7", "...": ""}

SKIPPED_COMMANDS: Final = {
    "make": "the demo and the tests are run by themselves",
    "pipx": "it would install into this machine",
    "uv": "it would install into this machine",
    "echod demo": "tests/cli/test_demo.py runs it",
    "echod service": "there need be no service manager; tests/service has a real one",
}
"""Commands in the README that are only parsed here, with the reason."""

ASKING_COMMANDS: Final = frozenset({"prune", "undo", "remove"})
"""Commands that ask for confirmation. They run with `--yes` here."""


@dataclass(frozen=True)
class CommandExample:
    """A command line on a page. In a block it is complete."""

    page: str
    line: str
    complete: bool


def find_examples() -> Iterator[CommandExample]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in CODE_BLOCK.findall(text):
            yield from (
                CommandExample(page.name, line, complete=True)
                for line in parse_block(block)
                if line.startswith("echod ")
            )
        for inline in re.findall(r"`(echod [^`]+)`", CODE_BLOCK.sub("", text)):
            yield CommandExample(page.name, " ".join(inline.split()), complete=False)
    for path in all_command_paths():
        if path != ("hook",):  # not for people
            yield CommandExample("help", help_text(path).rpartition("Example: ")[2].strip(), complete=True)


def parse_block(block: str) -> list[str]:
    """Return the commands of a block, without prompts, comments and output."""
    lines = block.splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line.partition("  #")[0].strip() for line in lines]


def expand_alternatives(line: str) -> Iterator[list[str]]:
    """Yield the words of a line, once for each alternative of `add|remove`."""
    line = re.split(r" (?:>>?|<) ", line)[0]
    words = [PLACEHOLDERS.get(word, word) for word in shlex.split(line.replace("|", "\\|"))]
    places = [at for at, word in enumerate(words[:3]) if "|" in word]
    if not places:
        yield words
        return
    at = places[0]
    yield from ([*words[:at], one, *words[at + 1 :]] for one in words[at].split("|"))


def usage_error(words: list[str], *, complete: bool) -> str | None:
    """Return why a command line is invalid, or None. Nothing is run."""
    command: Any = app
    context = None
    name, rest = words[0], words[1:]
    while True:
        if hasattr(command, "commands") and not rest:
            return None if not complete or command.invoke_without_command else f"{name} alone says nothing"
        try:
            context = command.make_context(name, list(rest), parent=context)
        except click.exceptions.Exit as ended:  # --help and --version answer at once
            return None if ended.exit_code == 0 else str(ended)
        except Exception as error:
            if not complete and type(error).__name__ == "MissingParameter":
                return None
            return f"{type(error).__name__}: {error}"
        if not isinstance(command, click.Group):
            return None
        rest = [*context._protected_args, *context.args]
        if not rest:
            return None
        name = rest[0]
        found = command.get_command(context, name)
        if found is None:
            return f"there is no command {name}"
        command, rest = found, rest[1:]


EXAMPLES: Final = tuple(dict.fromkeys(find_examples()))


@pytest.mark.parametrize("page", sorted({example.page for example in EXAMPLES}))
def test_every_command_line_on_a_page_is_valid(page: str) -> None:
    page_examples = [example for example in EXAMPLES if example.page == page]

    wrong = {
        example.line: why
        for example in page_examples
        for words in expand_alternatives(example.line)
        if (why := usage_error(words, complete=example.complete)) is not None
    }

    assert wrong == {}


def test_a_command_that_does_not_exist_is_detected() -> None:
    assert usage_error(["echod", "staus"], complete=False) == "there is no command staus"
    assert "No such option" in str(usage_error(["echod", "status", "--jsn"], complete=False))
    assert usage_error(["echod", "explain"], complete=False) is None
    assert "MissingParameter" in str(usage_error(["echod", "explain"], complete=True))


def test_every_command_is_in_the_readme_or_on_a_page() -> None:
    documentation = " ".join(page.read_text(encoding="utf-8") for page in PAGES if page.name != "CHANGELOG.md")

    missing = [
        path for path in all_command_paths() if not re.search(rf"echod (\S+\|)*{' '.join(path)}\b", documentation)
    ]

    assert [path for path in missing if path[0] not in {"hook", "packs", "service"}] == []


def test_every_page_is_named_in_the_readme_and_every_link_leads_somewhere() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"(docs/{page.name})" not in readme] == []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_readme_works_from_top_to_bottom(tmp_path: Path) -> None:
    """In a separate home, with a memory that was never maintained."""
    home = Home(tmp_path)
    root = tmp_path / "src" / "my-project"
    role = root / ".rune" / "echoes" / "reviewer"
    role.mkdir(parents=True)
    (tmp_path / "src" / "other").mkdir()
    (role / "MEMORY.md").write_text(grown_memory())
    lines = [line for block in CODE_BLOCK.findall((ROOT / "README.md").read_text()) for line in parse_block(block)]
    entry, ran = "", []

    for line in lines:
        if line.startswith(tuple(SKIPPED_COMMANDS)) or not line.startswith("echod "):
            assert line.startswith((*SKIPPED_COMMANDS, "cd ")), line
            continue
        words = [str(tmp_path) + word[1:] if word.startswith("~") else word for word in shlex.split(line)[1:]]
        words = [entry if word == "ENTRY" else word for word in words]
        if words[0] in ASKING_COMMANDS and "--dry-run" not in words:
            words.append("--yes")
        result = home.echod(*words, cwd=root)
        assert result.returncode == (3 if words[0] == "status" else 0), f"{line}: {result.stdout}{result.stderr}"
        ran.append(words[0])
        if words[:2] == ["prune", "--dry-run"]:
            entry = next(found["id"] for found in home.json("show", root)["entries"] if found["layer"] == "traced")
        if words[0] == "undo":
            assert (role / "MEMORY.md").read_text() == grown_memory(), "to the byte"

    assert {"add", "init", "show", "prune", "explain", "undo", "remember", "remove", "config"} <= set(ran)
    assert (root / ".rune/echoes/notes/MEMORY.md").exists()
    shutil.rmtree(home.state)
    shutil.rmtree(home.root / "run")
    remaining = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert all(path.startswith("src/") for path in remaining), remaining
    assert json.dumps(sorted(remaining)).count(".echod") == 0

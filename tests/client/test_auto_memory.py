"""echod counts the index of auto memory as the real client does, and finds the directory that the client uses."""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from echod.auto_memory.places import default_directory, find_places
from echod.memory.auto_memory.notes import load_index
from tests.client.conftest import Client

pytestmark = pytest.mark.timeout(900)  # on a busy machine the client alone takes a minute to start
_WARNING = re.compile(r"starting at line (\d+)(?: \(\\?\"- \[(\w+)\])?")


def pointers(first: int, last: int, hook: str = "x" * 15) -> str:
    return "".join(f"- [P{number:04d}](a{number}.md) {hook}\n" for number in range(first, last))


MEASURED_WITH = (2, 1, 332)

INDEXES = {
    "lines": pointers(1, 261),
    "comments": pointers(1, 101) + "<!-- a\nb\n-->\n\n<!-- c -->\n- [P9999](b.md) <!-- d -->\n" + pointers(101, 231),
    "front matter and code": "---\nname: x\n---\n" + pointers(1, 101) + "```\n<!-- a -->\n```\n" + pointers(101, 231),
    "characters": pointers(1, 191, "x" * 130),
    "emoji": pointers(1, 181, chr(0x1F600) * 80),
    "all of it": "\n\n" + pointers(1, 201),
}


@cache
def version_of(program: str) -> tuple[int, ...]:
    """Return the version of the client."""
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, shown.split()[0].split(".")))


@pytest.mark.parametrize("name", INDEXES)
def test_the_first_line_that_is_cut_is_the_one_that_the_client_names(client: Client, name: str) -> None:
    if version_of(os.environ["CLAUDE_CODE_BINARY"]) < MEASURED_WITH:
        pytest.skip("older clients word the warning differently, and count otherwise")
    directory = default_directory(client.home.root / "claude", client.project)
    directory.mkdir(parents=True)
    (directory / "MEMORY.md").write_text(INDEXES[name])
    (client.project / ".git").mkdir()

    sent = client.session("Say hello.", ["Hello."]).api.sent_text()
    loaded = load_index(INDEXES[name])

    assert "P0001" in sent
    named = _WARNING.search(sent)
    assert (named is None) == (loaded.first_cut is None)
    if named is not None and loaded.first_cut is not None:
        assert f"[{named[2]}]" in INDEXES[name].split("\n")[loaded.first_cut - 1]


@pytest.mark.parametrize("scopes", [("user",), ("project",), ("local",), ("project", "user"), ("local", "project")])
def test_the_directory_of_a_setting_is_the_one_that_the_client_uses(client: Client, scopes: tuple[str, ...]) -> None:
    root = client.home.root
    (client.project / ".git").mkdir()
    (client.project / ".claude").mkdir(exist_ok=True)
    files = {
        "user": root / "claude/settings.json",
        "project": client.project / ".claude/settings.json",
        "local": client.project / ".claude/settings.local.json",
    }
    for scope in scopes:
        (root / f"memory-{scope}").mkdir()
        files[scope].write_text(json.dumps({"autoMemoryDirectory": str(root / f"memory-{scope}")}))

    sent = client.session("Say hello.", ["Hello."]).api.sent_text()
    place = find_places(root / "claude", (), only=client.project, managed=Path("/nonexistent")).places[0]

    assert place.path == root / f"memory-{scopes[0]}"
    assert str(place.path) in sent

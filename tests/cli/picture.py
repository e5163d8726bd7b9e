"""Draw `docs/before-after.svg` from the real program: `python -m tests.cli.picture > docs/before-after.svg`.

The commands run in this process, on a made-up memory file and at a fixed time, so that the picture is the same each time.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path

import time_machine
from click.testing import CliRunner

from echod.cli.commands.demo import long_memory
from echod.cli.root import app

PICTURE = Path(__file__).parents[2] / "docs" / "before-after.svg"
_MOMENT = 1_795_860_000.0
_MAX_COLUMNS, _LINE_HEIGHT, _CHARACTER_WIDTH = 80, 19, 8.4
_COMMANDS = (
    ("show", 3),
    ("prune --dry-run", 9),
    ("explain ENTRY", 9),
    ("prune --yes", 4),
    ("show", 3),
    ("undo --last --yes", 4),
)
"""Each command, and the number of its lines that the picture shows."""


def record() -> list[str]:
    """Run the commands on a project and return the lines of the screen."""
    with tempfile.TemporaryDirectory() as directory, _environment(Path(directory)) as project:
        memory = project / ".rune/echoes/planner/MEMORY.md"
        memory.parent.mkdir(parents=True)
        memory.write_text(long_memory())
        before, entry, lines = memory.read_bytes(), "", list[str]()
        run("add", str(project))
        for command, limit in _COMMANDS:
            words = command.replace("ENTRY", entry)
            output = run(*words.split(), str(project)).splitlines()
            entry = entry or next((line.split()[2] for line in output if line.startswith("  archive ")), "")
            hidden = len(output) > limit
            lines += [f"$ echod {words.removesuffix(' --yes')}", *output[:limit], *(["  ..."] if hidden else []), ""]
        assert memory.read_bytes() == before
        return [*lines, "# the file is as it was, byte for byte"]


def run(*words: str) -> str:
    """Run one command in this process. Return what it prints."""
    result = CliRunner().invoke(app, words, prog_name="echod")
    assert result.exit_code == 0, result.output
    return result.output


class _environment:  # noqa: N801  used as a function
    """A home directory with a project in it, at a fixed time and in a fixed zone."""

    def __init__(self, home: Path) -> None:
        self._home, self._saved = home, dict(os.environ)
        self._clock = time_machine.travel(_MOMENT, tick=False)

    def __enter__(self) -> Path:
        for name in [name for name in os.environ if name.startswith(("ECHOD_", "CLAUDE_", "XDG_"))]:
            del os.environ[name]
        os.environ |= {"HOME": str(self._home), "TZ": "UTC", "NO_COLOR": "1"}
        os.environ |= {f"ECHOD_{name}_DIR": str(self._home / name.lower()) for name in ("STATE", "RUNTIME")}
        time.tzset()
        self._clock.start()
        return self._home / "shop"

    def __exit__(self, *_: object) -> None:
        self._clock.stop()
        os.environ.clear()
        os.environ.update(self._saved)
        time.tzset()


def draw(lines: list[str]) -> str:
    """Return the picture of a terminal with these lines."""
    width, height = round(_MAX_COLUMNS * _CHARACTER_WIDTH) + 40, len(lines) * _LINE_HEIGHT + 50
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">\n',
            "<title>A memory file before and after echod</title>\n",
            f'<rect width="{width}" height="{height}" rx="8" fill="#16181d"/>\n',
            '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">\n',
            *_texts(lines),
            "</g>\n</svg>\n",
        ]
    )


def _texts(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if line:
            colour = "#7ee787" if line.startswith("$") else "#8b949e" if line.startswith(("#", "  ...")) else "#d6dae0"
            y = 32 + number * _LINE_HEIGHT
            yield f'<text x="20" y="{y}" fill="{colour}">{escape(line)}</text>\n'


if __name__ == "__main__":
    sys.stdout.write(draw(record()))

"""What a project does not want, and what the settings forbid, is not done: not by the service, `--once` or a command."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.life.files import HEAD, learning, observation
from tests.support import Home, daemon, finding, project, until

MEMORY_LIMIT, KNOWLEDGE_LIMIT = 150, 300
WISHES = {
    "no prune": "echoes:\n  prune: false\n",
    "no compress, no consolidate": "echoes:\n  compress: false\n  consolidate: false\n",
}


@dataclass(frozen=True)
class Place:
    """A project whose files are all too long, and in which findings wait."""

    root: Path

    @property
    def role(self) -> Path:
        return self.root / ".rune/echoes/reviewer"

    def lines(self, name: str) -> int:
        return (self.role / name).read_text().count("\n")

    def tree(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.role)): p.read_bytes() for p in self.role.rglob("*") if p.is_file()}

    @property
    def pruned(self) -> bool:
        return self.lines("MEMORY.md") <= MEMORY_LIMIT

    @property
    def compressed(self) -> bool:
        return self.lines("knowledge.md") <= KNOWLEDGE_LIMIT

    @property
    def consolidated(self) -> bool:
        return not list(self.role.glob("*-findings.md"))

    @property
    def done(self) -> tuple[bool, bool, bool]:
        return self.pruned, self.compressed, self.consolidated


def place(root: Path, wishes: str = "", *, tracked: bool = False) -> Place:
    here = Place(project(root))
    # Less than half of the memory goes, so that the service does not hold it for a day.
    memory = HEAD + "".join(learning(f"learning {n}") for n in range(12))
    (here.role / "MEMORY.md").write_text(memory + "".join(observation(f"task {n}") for n in range(12)))
    knowledge = "".join(learning(f"point {n}", lines=9) for n in range(60))
    (here.role / "knowledge.md").write_text(f"# Reviewer Knowledge\n\n{knowledge}")
    (here.role / "ward-findings.md").write_text(finding("What was found"))
    (root / ".rune/talisman.yml").write_text(wishes)
    if tracked:
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        subprocess.run(["git", "-C", str(root), "add", "."], check=True)
    return here


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Place]:
    made = {name: place(tmp_path / f"p{number}", wishes) for number, (name, wishes) in enumerate(WISHES.items())}
    return {**made, "tracked by git": place(tmp_path / "tracked", tracked=True)}


UNASKED = {
    "no prune": (False, True, True),
    "no compress, no consolidate": (True, False, False),
    "tracked by git": (False, False, True),
}
"""What is done where nobody asks: pruned, compressed, consolidated."""

ASKED = {**UNASKED, "tracked by git": (True, True, True)}
"""And where a person asks for each of them."""


def by_the_service(home: Home, places: dict[str, Place]) -> None:
    for here in places.values():
        home.done("add", here.root)
    with daemon(home):
        _until_all_did(places, UNASKED)
        until(lambda: _queued(home) == 0, "the queue to be empty")


def by_once(home: Home, places: dict[str, Place]) -> None:
    home.done("run", "--once", *(here.root for here in places.values()))


def by_once_that_is_handed_over(home: Home, places: dict[str, Place]) -> None:
    with daemon(home):
        by_once(home, places)
        _until_all_did(places, UNASKED)


def by_commands(home: Home, places: dict[str, Place]) -> None:
    for here in places.values():
        home.done("add", here.root)
    for command in COMMANDS:
        home.done(*command)  # from outside all projects: it means each of them


COMMANDS = (("consolidate",), ("prune", "--yes"), ("compress", "--yes"))
WAYS: dict[str, Callable[[Home, dict[str, Place]], None]] = {
    "the service": by_the_service,
    "run --once": by_once,
    "run --once, handed over": by_once_that_is_handed_over,
    "commands": by_commands,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_project_gets_what_it_wants_and_nothing_else(home: Home, places: dict[str, Place], way: str) -> None:
    before = places["no compress, no consolidate"].role.joinpath("knowledge.md").read_bytes()

    WAYS[way](home, places)

    assert {name: here.done for name, here in places.items()} == (ASKED if way == "commands" else UNASKED)
    assert places["no compress, no consolidate"].role.joinpath("knowledge.md").read_bytes().startswith(before)


@pytest.mark.parametrize("way", ["the service", "run --once", "commands"])
def test_where_the_mode_is_report_nothing_is_written_and_all_of_it_is_told(
    home: Home, tmp_path: Path, way: str
) -> None:
    home = Home(home.root, {"ECHOD_MODE": "report"})
    here = place(tmp_path / "p")
    before = here.tree()

    if way == "commands":
        for command in COMMANDS:
            refused = home.echod(*command, here.root)
            assert refused.returncode == 1
            assert "report" in refused.stderr
        assert "archived" in home.done("prune", here.root, "--dry-run")
    else:
        home.done("add", here.root)
        _in_report_mode(home, here, way)
        assert _reported(home) == ["compress", "consolidate", "prune"]

    assert here.tree() == before


def _in_report_mode(home: Home, here: Place, way: str) -> None:
    if way == "run --once":
        home.done("run", "--once", here.root)
        return
    with daemon(home):
        until(lambda: len(_reported(home)) == 3, "all three jobs to have reported")


def _reported(home: Home) -> list[str]:
    jobs: Iterable[dict[str, str]] = home.json("jobs")["jobs"]
    return sorted({job["kind"] for job in jobs if "report only" in (job["result"] or "")})


def _until_all_did(places: dict[str, Place], wanted: dict[str, tuple[bool, bool, bool]]) -> None:
    def all_did() -> bool:
        return all(
            did or not wish for name, here in places.items() for did, wish in zip(here.done, wanted[name], strict=True)
        )

    until(all_did, "every project to have what it wants")


def _queued(home: Home) -> int:
    return int(home.json("status")["queue"]["queued"])

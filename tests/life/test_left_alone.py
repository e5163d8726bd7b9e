"""Work that a project or the settings disabled is not done by the service, `--once` or a command."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.life.files import MEMORY_HEADER, learning_text, observation_text
from tests.support import Home, finding_text, make_project, running_daemon, until

MEMORY_LIMIT, KNOWLEDGE_LIMIT = 150, 300
PROJECT_SETTINGS = {
    "no prune": "echoes:\n  prune: false\n",
    "no compress, no consolidate": "echoes:\n  compress: false\n  consolidate: false\n",
}


@dataclass(frozen=True)
class OversizedProject:
    """A project whose files are all too long, with waiting findings."""

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


def make_oversized_project(root: Path, settings: str = "", *, tracked: bool = False) -> OversizedProject:
    oversized = OversizedProject(make_project(root))
    # Less than half of the memory is removed, so that the service does not hold the first prune for a day.
    memory = MEMORY_HEADER + "".join(learning_text(f"learning {n}") for n in range(12))
    (oversized.role / "MEMORY.md").write_text(memory + "".join(observation_text(f"task {n}") for n in range(12)))
    knowledge = "".join(learning_text(f"point {n}", lines=9) for n in range(60))
    (oversized.role / "knowledge.md").write_text(f"# Reviewer Knowledge\n\n{knowledge}")
    (oversized.role / "ward-findings.md").write_text(finding_text("What was found"))
    (root / ".rune/talisman.yml").write_text(settings)
    if tracked:
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        subprocess.run(["git", "-C", str(root), "add", "."], check=True)
    return oversized


@pytest.fixture
def places(tmp_path: Path) -> dict[str, OversizedProject]:
    made = {
        name: make_oversized_project(tmp_path / f"p{number}", wishes)
        for number, (name, wishes) in enumerate(PROJECT_SETTINGS.items())
    }
    return {**made, "tracked by git": make_oversized_project(tmp_path / "tracked", tracked=True)}


DONE_AUTOMATICALLY = {
    "no prune": (False, True, True),
    "no compress, no consolidate": (True, False, False),
    "tracked by git": (False, False, True),
}
"""The automatic work in each project: pruned, compressed, consolidated."""

DONE_ON_REQUEST = {**DONE_AUTOMATICALLY, "tracked by git": (True, True, True)}
"""The work in each project after a typed command for each of them."""


def run_service(home: Home, places: dict[str, OversizedProject]) -> None:
    for here in places.values():
        home.run("add", here.root)
    with running_daemon(home):
        _wait_until_all_done(places, DONE_AUTOMATICALLY)
        until(lambda: _queued_count(home) == 0, "the queue to be empty")


def run_once(home: Home, places: dict[str, OversizedProject]) -> None:
    home.run("run", "--once", *(here.root for here in places.values()))


def run_once_handed_over(home: Home, places: dict[str, OversizedProject]) -> None:
    with running_daemon(home):
        run_once(home, places)
        _wait_until_all_done(places, DONE_AUTOMATICALLY)


def run_commands(home: Home, places: dict[str, OversizedProject]) -> None:
    for here in places.values():
        home.run("add", here.root)
    for command in COMMANDS:
        home.run(*command, "--all")


COMMANDS = (("consolidate",), ("prune", "--yes"), ("compress", "--yes"))
RUNNERS: dict[str, Callable[[Home, dict[str, OversizedProject]], None]] = {
    "the service": run_service,
    "run --once": run_once,
    "run --once, handed over": run_once_handed_over,
    "commands": run_commands,
}


@pytest.mark.parametrize("way", RUNNERS)
def test_a_project_gets_the_maintenance_it_enabled_and_no_other(
    home: Home, places: dict[str, OversizedProject], way: str
) -> None:
    before = places["no compress, no consolidate"].role.joinpath("knowledge.md").read_bytes()

    RUNNERS[way](home, places)

    assert {name: here.done for name, here in places.items()} == (
        DONE_ON_REQUEST if way == "commands" else DONE_AUTOMATICALLY
    )
    assert places["no compress, no consolidate"].role.joinpath("knowledge.md").read_bytes().startswith(before)


@pytest.mark.parametrize("way", ["the service", "run --once", "commands"])
def test_in_report_mode_nothing_is_written_and_everything_is_reported(home: Home, tmp_path: Path, way: str) -> None:
    home = Home(home.root, {"ECHOD_MODE": "report"})
    here = make_oversized_project(tmp_path / "p")
    before = here.tree()

    if way == "commands":
        for command in COMMANDS:
            refused = home.echod(*command, here.root)
            assert refused.returncode == 1
            assert "report" in refused.stderr
        assert "rolled up" in home.run("prune", here.root, "--dry-run")
    else:
        home.run("add", here.root)
        _run_in_report_mode(home, here, way)
        assert _reported_kinds(home) == ["compress", "consolidate", "prune"]

    assert here.tree() == before


def _run_in_report_mode(home: Home, here: OversizedProject, way: str) -> None:
    if way == "run --once":
        home.run("run", "--once", here.root)
        return
    with running_daemon(home):
        until(lambda: len(_reported_kinds(home)) == 3, "all three jobs to have reported")


def _reported_kinds(home: Home) -> list[str]:
    jobs: Iterable[dict[str, str]] = home.json("jobs")["jobs"]
    return sorted({job["kind"] for job in jobs if "report only" in (job["result"] or "")})


def _wait_until_all_done(places: dict[str, OversizedProject], expected: dict[str, tuple[bool, bool, bool]]) -> None:
    def all_did() -> bool:
        return all(
            did or not wish
            for name, here in places.items()
            for did, wish in zip(here.done, expected[name], strict=True)
        )

    until(all_did, "every project to have what it wants")


def _queued_count(home: Home) -> int:
    return int(home.json("status")["queue"]["queued"])

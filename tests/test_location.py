"""To which project a path belongs, and where a new one begins."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from echod.projects.discovery import ProjectLocator, discover_stores, repository_root
from tests.support import make_project


@pytest.fixture
def home(tmp_path: Path) -> Path:
    root = (tmp_path / "hôme").resolve()
    root.mkdir()
    return root


@pytest.fixture
def locator(home: Path) -> ProjectLocator:
    return ProjectLocator(home, home / ".claude")


def make_repository(root: Path) -> Path:
    (root / ".git").mkdir(parents=True)
    return root


def test_the_nearest_memory_counts(home: Path, locator: ProjectLocator) -> None:
    outer = make_project(home / "src/outer")
    inner = make_project(outer / "packages/inner", store=".claude/echoes")
    (inner / "a b").mkdir()

    assert locator.find_project(inner / "a b") == inner
    assert locator.find_project(outer / "packages") == outer


def test_a_memory_above_the_repository_is_another_projects(home: Path, locator: ProjectLocator) -> None:
    make_project(home / "src")
    repository = make_repository(home / "src/shop")
    (repository / "deep/er").mkdir(parents=True)

    assert locator.find_project(repository / "deep/er") is None
    assert locator.find_init_root(repository / "deep/er") == repository
    assert locator.find_project(home / "src") == home / "src"


def test_what_lies_in_the_home_directory_is_no_project(home: Path, locator: ProjectLocator) -> None:
    make_project(home)
    make_project(home, "global", store=".claude/echoes")
    below = home / "notes"
    below.mkdir()

    assert locator.find_project(home) is None
    assert locator.find_project(below) is None
    assert locator.find_stores(home) == ()
    assert locator.find_init_root(below) == below


def test_a_home_directory_that_is_a_repository_ends_the_search_too(home: Path, locator: ProjectLocator) -> None:
    make_repository(home)
    below = home / "src/p"
    below.mkdir(parents=True)

    assert locator.find_init_root(below) == below
    assert repository_root(below) == home


def test_the_agents_directory_is_no_project_but_a_repository_in_it_may_be_one(
    home: Path, locator: ProjectLocator
) -> None:
    agent = home / ".claude"
    (agent / "plugins").mkdir(parents=True)
    repository = make_repository(agent / "plugins/ours")

    assert locator.exclusion_reason(locator.find_init_root(agent / "plugins")) is not None
    assert locator.find_init_root(repository) == repository


def test_the_root_of_the_file_system_is_no_project(locator: ProjectLocator) -> None:
    assert locator.exclusion_reason(Path("/")) is not None
    assert locator.find_project(Path("/")) is None


def test_a_worktree_without_a_memory_belongs_to_its_project(home: Path, locator: ProjectLocator) -> None:
    project, copy = home / "p", home / "elsewhere/copy"
    project.mkdir()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["worktree", "add", "-q", str(copy)]):
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
            cwd=project,
            check=True,
            capture_output=True,
        )
    make_project(project)

    assert locator.find_project(copy) == project


def test_listed_directories_that_are_never_projects_are_named(home: Path, locator: ProjectLocator) -> None:
    make_project(home)
    project = make_project(home / "p")

    found = discover_stores([home, project], locator)

    assert found.projects == (project,)
    assert [excluded.root for excluded in found.excluded] == [home]

"""`echod init` creates the memory of a project, keeps existing files, and can be repeated."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from echod.cli.commands.demo import long_memory
from echod.store.create import DEFAULT_ROLES
from tests.support import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    root.mkdir()
    return Home(root)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = (tmp_path / "my project").resolve()
    root.mkdir()
    return root


@pytest.fixture
def repository(project: Path) -> Path:
    (project / ".git").mkdir()
    return project


def read_files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_project_gets_every_role_with_its_header(home: Home, repository: Path) -> None:
    output = home.run("init", repository)

    assert "created 8 roles" in output
    store = repository / ".rune/echoes"
    assert sorted(path.name for path in store.iterdir()) == sorted(DEFAULT_ROLES)
    assert (store / "reviewer/MEMORY.md").read_text() == "<!-- echo-schema: v1 -->\n# Reviewer Memory\n"
    assert (repository / ".gitignore").read_text() == ".rune/echoes/\n"
    assert home.json("projects")["projects"][0]["path"] == str(repository)


def test_a_second_init_changes_nothing(home: Home, project: Path) -> None:
    home.run("init", project)
    before = read_files(project)

    output = home.run("init", project)

    assert read_files(project) == before
    assert "nothing was missing" in output
    assert "registered already" in output


def test_existing_files_are_kept_and_missing_roles_created(home: Home, project: Path) -> None:
    memory = project / ".rune/echoes/reviewer/MEMORY.md"
    memory.parent.mkdir(parents=True)
    memory.write_text("mine")
    (project / ".rune/echoes/planner").mkdir()

    assert "created 7 roles" in home.run("init", project)
    assert memory.read_text() == "mine"
    assert (project / ".rune/echoes/planner/MEMORY.md").exists()


def test_only_the_named_roles_are_created(home: Home, project: Path) -> None:
    home.run("init", project, "--roles", "reviewer, meta-qa")

    assert sorted(path.name for path in (project / ".rune/echoes").iterdir()) == ["meta-qa", "reviewer"]


@pytest.mark.parametrize("roles", ["../x", "", "a,,b", "a b", ".hidden"])
def test_an_invalid_role_name_is_refused_before_anything_is_created(home: Home, project: Path, roles: str) -> None:
    done = home.echod("init", project, f"--roles={roles}")

    assert done.returncode == 2
    assert "Invalid role name" in done.stderr
    assert list(project.iterdir()) == []


@pytest.mark.parametrize(
    ("there", "arguments", "store"),
    [
        ([], [], ".rune/echoes"),
        ([".claude"], [], ".claude/echoes"),
        ([".claude", ".rune"], [], ".rune/echoes"),
        ([".claude/echoes", ".rune"], [], ".claude/echoes"),
        ([".rune"], ["--layout", "claude"], ".claude/echoes"),
        ([".claude"], ["--layout", "rune"], ".rune/echoes"),
    ],
)
def test_the_memory_is_where_the_project_has_its_own(
    home: Home, repository: Path, there: list[str], arguments: list[str], store: str
) -> None:
    for name in there:
        (repository / name).mkdir(parents=True)

    home.run("init", repository, *arguments)

    assert (repository / store / "team/MEMORY.md").exists()
    assert f"{store}/" in (repository / ".gitignore").read_text()


def test_an_unknown_layout_is_an_error(home: Home, project: Path) -> None:
    done = home.echod("init", project, "--layout", "other")

    assert (done.returncode, list(project.iterdir())) == (2, [])


def test_a_dry_run_creates_nothing(home: Home, project: Path) -> None:
    assert "would create planner" in home.run("init", project, "--dry-run")
    assert list(project.iterdir()) == []
    assert not home.state.exists()


def test_a_memory_that_git_should_track_is_not_ignored(home: Home, repository: Path) -> None:
    home.run("init", repository)
    (repository / ".gitignore").write_bytes(b"build\r\n.rune/echoes/\r\n# end")
    (repository / ".rune/talisman.yml").write_text("echoes:\n  version_controlled: true\n")

    output = home.run("init", repository)

    assert "git tracks the memory" in output
    assert (repository / ".gitignore").read_bytes() == b"build\r\n# end"


@pytest.mark.parametrize("line", [".rune/echoes", "/.rune/echoes/", " .rune/echoes/ "])
def test_an_equivalent_line_is_enough(home: Home, repository: Path, line: str) -> None:
    (repository / ".gitignore").write_text(f"build\n{line}\n")

    home.run("init", repository)

    assert (repository / ".gitignore").read_text() == f"build\n{line}\n"


def test_a_file_without_a_last_line_end_gets_the_line_on_its_own(home: Home, repository: Path) -> None:
    (repository / ".gitignore").write_text("build")

    home.run("init", repository)

    assert (repository / ".gitignore").read_text() == "build\n.rune/echoes/\n"


def test_a_link_out_of_the_project_is_refused(home: Home, project: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (project / ".rune").symlink_to(tmp_path / "elsewhere")

    done = home.echod("init", project, "--layout", "rune")

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_worktree_of_a_project_is_refused_with_the_name_of_the_project(
    home: Home, project: Path, tmp_path: Path
) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], cwd=project, check=True)
    subprocess.run(["git", "worktree", "add", "-q", str(tmp_path / "copy")], cwd=project, check=True)

    done = home.echod("init", tmp_path / "copy")

    assert done.returncode == 2
    assert f"echod init {project}" in done.stderr


def test_without_a_path_the_surrounding_project_is_used(home: Home, project: Path) -> None:
    home.run("init", project, "--roles", "team")
    below = project / "src/deep"
    below.mkdir(parents=True)
    inside = Home(below, {**home.environ})

    inside.run("init", "--roles", "reviewer")

    assert (project / ".rune/echoes/reviewer/MEMORY.md").exists()
    assert not (below / ".rune").exists()


def test_a_new_memory_accepts_observations_at_once(home: Home, project: Path) -> None:
    from tests.hooks.events import run_hook, teammate_event

    home.run("init", project)
    run_hook("task-completed", teammate_event(project), home.environ)

    home.run("run", "--once")

    assert "Task: Review the session store" in (project / ".rune/echoes/orchestrator/MEMORY.md").read_text()


def test_outside_of_a_repository_no_gitignore_is_written(home: Home, project: Path) -> None:
    home.run("init", project)

    assert not (project / ".gitignore").exists()


def test_gitignore_is_left_alone_on_request(home: Home, repository: Path) -> None:
    assert ".gitignore" not in home.run("init", repository, "--no-ignore")

    assert not (repository / ".gitignore").exists()


def test_the_line_in_gitignore_is_announced(home: Home, repository: Path) -> None:
    assert ".rune/echoes/" in home.run("init", repository, "--dry-run").partition(".gitignore")[2]
    assert not (repository / ".gitignore").exists()

    assert "--no-ignore" in home.run("init", repository)


def test_a_project_begins_at_the_root_of_its_repository(home: Home, repository: Path) -> None:
    below = repository / "packages/a b"
    below.mkdir(parents=True)

    assert "root of the repository" in " ".join(home.run("init", below).split())

    assert (repository / ".rune/echoes/team").is_dir()
    assert list(below.iterdir()) == []


def test_the_home_directory_never_becomes_a_project(home: Home) -> None:
    (home.root / "claude/echoes/global").mkdir(parents=True)

    for words in (("init",), ("init", "~"), ("add", "~"), ("init", "claude"), ("init", "claude/echoes")):
        refused = home.echod(*words)
        assert refused.returncode == 2, words
        assert "home directory" in refused.stderr or "configuration directory" in refused.stderr

    assert not (home.root / ".rune").exists()
    assert not (home.root / ".gitignore").exists()


def test_a_home_directory_that_is_a_repository_is_no_project(home: Home) -> None:
    (home.root / ".git").mkdir()
    below = home.root / "src/shop"
    below.mkdir(parents=True)

    home.run("init", below)

    assert (below / ".rune/echoes/team").is_dir()
    assert not (home.root / ".rune").exists()


def test_what_is_empty_is_named_in_one_line_and_not_role_by_role(home: Home, repository: Path) -> None:
    home.run("init", repository)
    home.run("remember", "Use uv, never pip.", "--project", repository)

    shown = home.run("show", repository)
    plan = home.run("consolidate", repository, "--dry-run")
    found = home.run("search", "never", "pip", repository)

    assert "1 note; " in shown
    assert f"{len(DEFAULT_ROLES) - 1} empty roles: " in shown
    assert "no entries" not in shown
    assert plan == f"Nothing to consolidate in {len(DEFAULT_ROLES)} roles: no findings wait.\n"
    assert found.startswith("1 document found:\n")


def test_the_reason_why_no_file_is_pruned_by_itself_is_given_once(home: Home, repository: Path) -> None:
    for role in ("planner", "reviewer"):
        memory = repository / ".rune/echoes" / role / "MEMORY.md"
        memory.parent.mkdir(parents=True)
        memory.write_text(long_memory())

    output = home.echod("add", repository, ECHOD_MODE="report").stdout

    assert output.count("the first maintenance") == 2
    assert output.count('mode = "report"') == 1

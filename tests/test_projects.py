"""The list of projects and the pauses: plain files that survive edits by hand, crashes and concurrent writers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from echod.errors import ConfigurationError, StateError, UsageError
from echod.projects.registry import LineFile, ProjectRegistry, RegisteredProject, expand_globs


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "projects"


@pytest.fixture
def projects(file: Path) -> ProjectRegistry:
    return ProjectRegistry(file)


@pytest.fixture
def make(tmp_path: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        root = tmp_path / "src" / name
        root.mkdir(parents=True)
        return root

    return make


@pytest.fixture
def latin(tmp_path: Path) -> Path:
    """A directory whose name is not UTF-8."""
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/latin/caf\xe9"))
    try:
        root.mkdir(parents=True)
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    return root


def write(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


class TestList:
    def test_no_project_is_registered_at_first(self, projects: ProjectRegistry, file: Path) -> None:
        assert projects.list_projects().projects == ()
        assert not file.exists()

    def test_projects_keep_the_order_in_which_they_were_added(
        self, projects: ProjectRegistry, make: Callable[[str], Path]
    ) -> None:
        b, a = make("b"), make("a")

        assert projects.add(b)
        assert projects.add(a)

        assert projects.roots() == (b, a)

    @pytest.mark.parametrize(
        "name", ["with space", " leading", "trailing ", "tab\there", "ünï-çødé", "#hash", "~tilde", "*", "e\u0301"]
    )
    def test_any_name_comes_back_as_it_was(
        self, projects: ProjectRegistry, make: Callable[[str], Path], name: str
    ) -> None:
        root = make(name)

        projects.add(root)

        assert projects.list_projects().projects == (RegisteredProject(root, missing=False),)
        assert projects.remove(root)
        assert projects.roots() == ()

    def test_a_name_that_is_not_utf8_is_refused_with_a_sentence(self, projects: ProjectRegistry, latin: Path) -> None:
        """Neither the database nor a status can contain it, so one such project would stop the work on all."""
        for wanted in (projects.add, projects.pause):
            with pytest.raises(UsageError, match=r"caf\\udce9' is not UTF-8"):
                wanted(latin)

        assert projects.roots() == ()

    def test_a_line_that_is_not_utf8_is_reported_and_stays_as_it_was(
        self, projects: ProjectRegistry, file: Path, make: Callable[[str], Path], latin: Path
    ) -> None:
        file.parent.mkdir()
        file.write_bytes(os.fsencode(latin) + b"\n")
        root = make("a")
        projects.add(root)

        listing = projects.list_projects()

        assert [project.root for project in listing.projects] == [root]
        assert listing.warnings == (f"{file}:1: this is not an absolute path in UTF-8; correct or remove the line.",)
        assert os.fsencode(latin) in file.read_bytes()

    def test_globs_skip_paths_that_are_not_utf8(self, tmp_path: Path, make: Callable[[str], Path], latin: Path) -> None:
        root = make("a")
        for one in (root, latin):
            (one / ".rune/echoes").mkdir(parents=True)

        assert expand_globs([f"{root.parent}/*", f"{latin.parent}/*"]) == (root,)

    @pytest.mark.parametrize("name", ["line\nbreak", "carriage\rreturn"])
    def test_a_name_with_a_line_break_is_refused_with_a_sentence(
        self, projects: ProjectRegistry, make: Callable[[str], Path], name: str
    ) -> None:
        root = make(name)

        with pytest.raises(UsageError, match="line break"):
            projects.add(root)
        with pytest.raises(UsageError, match="line break"):
            projects.pause(root)

    def test_a_path_that_is_not_a_directory_is_refused_with_a_sentence(
        self, projects: ProjectRegistry, tmp_path: Path
    ) -> None:
        (tmp_path / "file").touch()

        for path in (tmp_path / "file", tmp_path / "nowhere"):
            with pytest.raises(UsageError, match="not a directory"):
                projects.add(path)

    def test_one_project_under_two_names_is_one(
        self, projects: ProjectRegistry, make: Callable[[str], Path], tmp_path: Path
    ) -> None:
        root = make("a")
        (tmp_path / "link").symlink_to(root)

        assert projects.add(root)
        assert not projects.add(tmp_path / "link")
        assert not projects.add(root / ".." / "a")

        assert projects.roots() == (root,)
        assert projects.remove(tmp_path / "link")

    def test_a_relative_path_is_made_absolute(
        self, projects: ProjectRegistry, make: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root = make("a")
        monkeypatch.chdir(root)

        projects.add(Path())

        assert projects.roots() == (root,)

    def test_a_vanished_project_is_kept_and_reported(
        self, projects: ProjectRegistry, make: Callable[[str], Path]
    ) -> None:
        root = make("a")
        projects.add(root)

        root.rmdir()
        assert projects.list_projects().projects == (RegisteredProject(root, missing=True),)

        root.mkdir()
        assert projects.list_projects().projects == (RegisteredProject(root, missing=False),)

    def test_a_vanished_project_can_be_removed(self, projects: ProjectRegistry, make: Callable[[str], Path]) -> None:
        root = make("a")
        projects.add(root)
        root.rmdir()

        assert projects.remove(root)
        assert not projects.remove(root)
        assert projects.roots() == ()


class TestByHand:
    def test_comments_and_blank_lines_are_tolerated_and_kept(
        self, projects: ProjectRegistry, file: Path, make: Callable[[str], Path]
    ) -> None:
        a, b = make("a"), make("b")
        write(file, f"# mine\n\n   \n  {a}\r\n")

        projects.add(b)

        assert projects.roots() == (a, b)
        assert projects.list_projects().warnings == ()
        assert file.read_text() == f"# mine\n\n   \n  {a}\n{b}\n"

    def test_a_missing_last_line_end_does_not_join_two_projects(
        self, projects: ProjectRegistry, file: Path, make: Callable[[str], Path]
    ) -> None:
        a, b = make("a"), make("b")
        write(file, f"{a}")

        projects.add(b)

        assert projects.roots() == (a, b)

    def test_duplicates_are_one_and_go_together(
        self, projects: ProjectRegistry, file: Path, make: Callable[[str], Path], tmp_path: Path
    ) -> None:
        a = make("a")
        (tmp_path / "link").symlink_to(a)
        write(file, f"{a}\n{tmp_path / 'link'}\n{a}\n")

        assert projects.roots() == (a,)
        projects.remove(a)
        assert projects.roots() == ()

    def test_home_is_understood(
        self, projects: ProjectRegistry, file: Path, make: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a = make("a")
        monkeypatch.setenv("HOME", str(a.parent))
        write(file, "~/a\n")

        assert projects.roots() == (a,)

    @pytest.mark.parametrize("line", ["src/a", "a\\b", "~nobody-of-that-name/x", "/nul\0here"])
    def test_a_line_that_names_no_project_is_reported_not_guessed(
        self, projects: ProjectRegistry, file: Path, line: str
    ) -> None:
        write(file, f"# mine\n\n{line}\n")

        listing = projects.list_projects()

        assert listing.projects == ()
        assert listing.warnings == (f"{file}:3: this is not an absolute path in UTF-8; correct or remove the line.",)

    def test_a_list_that_is_a_link_stays_a_link(
        self, projects: ProjectRegistry, file: Path, make: Callable[[str], Path], tmp_path: Path
    ) -> None:
        file.parent.mkdir()
        (tmp_path / "dotfiles").touch()
        file.symlink_to(tmp_path / "dotfiles")

        projects.add(make("a"))

        assert file.is_symlink()
        assert (tmp_path / "dotfiles").read_text() == f"{projects.roots()[0]}\n"


class TestPauses:
    def test_no_project_is_paused_at_first(self, projects: ProjectRegistry, make: Callable[[str], Path]) -> None:
        assert not projects.is_paused(make("a"))
        assert not projects.resume(None)

    def test_one_project_is_paused_until_it_is_resumed(
        self, projects: ProjectRegistry, file: Path, make: Callable[[str], Path]
    ) -> None:
        a, b = make("a"), make("b")

        assert projects.pause(a)
        assert not projects.pause(a)

        assert (projects.is_paused(a), projects.is_paused(b)) == (True, False)
        assert ProjectRegistry(file).is_paused(a)  # a restart changes nothing
        assert projects.resume(a)
        assert not projects.resume(a)
        assert not projects.is_paused(a)

    def test_everything_is_paused_until_everything_is_resumed(
        self, projects: ProjectRegistry, make: Callable[[str], Path]
    ) -> None:
        a, b = make("a"), make("b")
        projects.pause(a)

        assert projects.pause(None)
        assert not projects.pause(None)
        assert projects.is_paused(b)
        assert not projects.resume(b)
        assert projects.is_paused(b)

        assert projects.resume(None)
        assert (projects.is_paused(a), projects.is_paused(b)) == (True, False)

    def test_a_project_is_paused_under_any_of_its_names(
        self, projects: ProjectRegistry, make: Callable[[str], Path], tmp_path: Path
    ) -> None:
        a = make("a")
        (tmp_path / "link").symlink_to(a)

        projects.pause(tmp_path / "link")

        assert projects.is_paused(a)

    def test_a_removed_project_is_not_paused_when_it_is_added_again(
        self, projects: ProjectRegistry, make: Callable[[str], Path]
    ) -> None:
        a = make("a")
        projects.add(a)
        projects.pause(a)

        projects.remove(a)
        projects.add(a)

        assert not projects.is_paused(a)

    def test_the_pauses_are_readable_text(
        self, projects: ProjectRegistry, file: Path, make: Callable[[str], Path]
    ) -> None:
        a = make("a")
        projects.pause(a)
        projects.pause(None)

        assert file.with_name("paused").read_text() == f"{a}\n*\n"
        assert projects.pauses().roots == (a,)
        assert projects.pauses().all_projects


class TestFile:
    def test_it_is_private_and_nothing_else_is_left_behind(
        self, projects: ProjectRegistry, file: Path, make: Callable[[str], Path]
    ) -> None:
        projects.add(make("a"))

        assert {entry.name for entry in file.parent.iterdir()} == {"projects", "projects.lock"}
        assert {entry.stat().st_mode & 0o777 for entry in file.parent.iterdir()} == {0o600}
        assert file.parent.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize(
        "act", [ProjectRegistry.roots, ProjectRegistry.pauses, lambda projects: projects.is_paused(Path("/a"))]
    )
    def test_unreadable_is_not_empty(self, tmp_path: Path, act: Callable[[ProjectRegistry], object]) -> None:
        (tmp_path / "projects").mkdir()
        (tmp_path / "paused").mkdir()

        with pytest.raises(StateError, match="cannot be read"):
            act(ProjectRegistry(tmp_path / "projects"))

    def test_a_full_disk_keeps_the_old_list(
        self, projects: ProjectRegistry, file: Path, make: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        a, b = make("a"), make("b")
        projects.add(a)

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("echod.projects.registry.os.fsync", full)
        with pytest.raises(StateError, match="no space left"):
            projects.add(b)
        monkeypatch.undo()

        assert projects.roots() == (a,)
        assert {entry.name for entry in file.parent.iterdir()} == {"projects", "projects.lock"}

    def test_a_change_that_fails_half_way_changes_nothing(self, tmp_path: Path) -> None:
        lines = LineFile(tmp_path / "file")

        def fails() -> None:
            with lines.edit() as content:
                content.append("half")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fails()
        assert lines.read() == ()

    def test_a_lock_that_is_held_for_long_is_a_sentence_not_a_hang(self, tmp_path: Path) -> None:
        holder = LineFile(tmp_path / "file")
        program = (
            "import sys; from pathlib import Path; from echod.projects.registry import LineFile; from echod.errors import StateError\n"
            "try:\n"
            "    with LineFile(Path(sys.argv[1]), lock_seconds=0.1).edit(): pass\n"
            "except StateError as error: print(error)"
        )
        with holder.edit():
            completed = subprocess.run(
                [sys.executable, "-c", program, str(tmp_path / "file")],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )

        assert "being changed by another process" in completed.stdout

    def test_processes_that_add_at_the_same_time_lose_nothing(
        self, projects: ProjectRegistry, file: Path, make: Callable[[str], Path]
    ) -> None:
        roots = [make(f"p{number}") for number in range(12)]
        program = (
            "import sys; from pathlib import Path; from echod.projects.registry import ProjectRegistry; sys.stdin.readline()\n"
            "for root in sys.argv[2:]: ProjectRegistry(Path(sys.argv[1])).add(Path(root))"
        )
        adders = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(file), *map(str, roots[first::4])], stdin=subprocess.PIPE
            )
            for first in range(4)
        ]
        for adder in adders:
            adder.communicate(b"go\n", timeout=60)

        assert [adder.returncode for adder in adders] == [0] * 4
        assert sorted(projects.roots()) == sorted(roots)


class TestGlobs:
    def test_only_directories_that_hold_a_store_are_projects(self, make: Callable[[str], Path]) -> None:
        old, new, both, bare = make("old"), make("new"), make("both"), make("bare")
        (old / ".claude/echoes").mkdir(parents=True)
        (new / ".rune/echoes").mkdir(parents=True)
        (both / ".claude/echoes").mkdir(parents=True)
        (both / ".rune/echoes").mkdir(parents=True)
        (bare / ".claude").mkdir()
        (bare / ".claude/echoes").touch()

        assert expand_globs([f"{old.parent}/*"]) == (both, new, old)

    def test_home_is_understood_and_each_project_comes_once(
        self, make: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        root = make("a")
        (root / ".rune/echoes").mkdir(parents=True)
        (tmp_path / "src" / "link").symlink_to(root)
        monkeypatch.setenv("HOME", str(tmp_path))

        assert expand_globs(["~/src/*", f"{tmp_path}/**", "~/nothing/*"]) == (root,)

    def test_a_relative_pattern_is_refused_with_a_sentence(self) -> None:
        with pytest.raises(ConfigurationError, match="not absolute"):
            expand_globs(["src/*"])
